"""Vectors in PostgreSQL with pgvector: compared one by one, or through an index of their own where there are many."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from time import time_ns

from polymnia.errors import BadInput, StoreError
from polymnia.model import EmbeddingModel, Perspective, Within
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.templates import render_document
from polymnia.stores.contract import TEXT
from polymnia.stores.postgres.database import Database, WorkspaceConnection
from polymnia.stores.postgres.rows import pack_half, pack_text, run, unpack_binary
from polymnia.stores.postgres.search import bind_within
from polymnia.stores.postgres.vector_index import VectorIndexes

_MICROSECONDS = 1_000_000
_NO_BOUND = 2**63 - 1

Transaction = Callable[[], AbstractContextManager[WorkspaceConnection]]


class PostgresVectorReader:
    """The vectors of a workspace, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection) -> None:
        self._connection = connection

    def models(self) -> list[EmbeddingModel]:
        return [EmbeddingModel(*row) for row in run(self._connection, "models_all")]

    def perspectives(self) -> list[Perspective]:
        return [Perspective(*row) for row in run(self._connection, "perspectives_all")]

    def nearest(
        self,
        model: int,
        vector: bytes,
        k: int,
        within: Within | None = None,
        *,
        perspective: str = TEXT,
    ) -> dict[int, float]:
        template, _ = self._template(perspective)
        self._require_model(model)
        if within is None:
            rows = run(self._connection, "nearest_vectors", model, template, pack_text(vector), k)
        else:
            bounds = bind_within(within)
            rows = run(
                self._connection, "nearest_within", model, template, pack_text(vector), k, *bounds
            )
        return dict(rows)

    def nearest_of(
        self, model: int, vector: bytes, k: int, allowed: Collection[int] | None
    ) -> dict[int, float]:
        """Return the k nearest of the allowed notes by the vectors that clients gave; None allows all."""
        ids = None if allowed is None else list(allowed)
        # More than asked for, because they are chosen by halves of floats.
        rows = run(self._connection, "nearest_notes", model, pack_half(vector), 2 * k + 20, ids)
        own, norm = unpack_vector(vector), length(vector)
        scores = {passage: cosine(own, norm, raw, length(raw)) for passage, raw in rows}
        return {
            passage: scores[passage]
            for passage in sorted(scores, key=lambda each: -scores[each])[:k]
        }

    def vectors(
        self, model: int, passages: Collection[int], *, perspective: str = TEXT
    ) -> dict[int, bytes]:
        template, _ = self._template(perspective)
        rows = run(self._connection, "vectors_by_passage", model, template, list(passages))
        return {passage: unpack_binary(vector) for passage, vector in rows}

    def means(self, model: int, *, perspective: str = TEXT) -> dict[str, bytes]:
        template, _ = self._template(perspective)
        return {
            name: unpack_binary(vector)
            for name, vector in run(self._connection, "mean_vectors", model, template)
        }

    def pending(
        self,
        model: int,
        limit: int,
        *,
        above: int = 0,
        below: int | None = None,
        perspective: str = TEXT,
    ) -> list[tuple[int, str]]:
        number, template = self._template(perspective)
        stretch = (above, _NO_BOUND if below is None else below)
        rows = run(self._connection, "pending_vectors", model, number, limit, *stretch)
        return [
            (passage, render_document(template, text=text, name=name, kind=kind, at=at))
            for passage, text, name, kind, at in rows
        ]

    def last_passage(self) -> int:
        rows = run(self._connection, "last_row")
        return rows[0][0] if rows else 0

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        template, _ = self._template(perspective)
        ((embedded, total),) = run(self._connection, "vector_coverage", model, template)
        return min(embedded, total), total

    def _template(self, perspective: str) -> tuple[int, str]:
        return find_template(self._connection, perspective)

    def _require_model(self, model: int) -> None:
        if not run(self._connection, "model_dimension", model):
            raise StoreError("the vectors of this model were removed; ask again")


class PostgresVectorStore:
    """Writes of vectors, each in a transaction of its own."""

    def __init__(
        self, database: Database, workspace: int, transaction: Transaction, server: str
    ) -> None:
        self._transaction = transaction
        self._server = server
        self.indexes = VectorIndexes(database, workspace)

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        with self._transaction() as connection:
            # A model that was removed must not have its number taken by another: the time is never taken twice.
            run(connection, "insert_model", time_ns() // 1000, identity, url, dimension)
            return EmbeddingModel(*run(connection, "model_of", identity)[0])

    def remove_model(self, model: int, limit: int) -> bool:
        with self._transaction() as connection:
            removed = len(run(connection, "delete_vectors_of_model", model, limit))
            if removed < limit:
                run(connection, "delete_model", model)
        if removed < limit:
            self.indexes.drop(model=model)
        return removed < limit

    def set_perspective(self, perspective: Perspective) -> None:
        if perspective.name == TEXT:
            raise BadInput(
                f"the perspective {TEXT!r} is the passages' own text and cannot be changed; add another one"
            )
        with self._transaction() as connection:
            run(connection, "insert_template", perspective.document)
            run(
                connection,
                "upsert_perspective",
                perspective.name,
                perspective.document,
                perspective.query,
            )

    def remove_perspective(self, name: str) -> None:
        if name == TEXT:
            raise BadInput(
                f"the perspective {TEXT!r} is the passages' own text and cannot be removed"
            )
        with self._transaction() as connection:
            if not run(connection, "delete_perspective", name):
                raise no_perspective(name)

    def remove_unused(self, limit: int) -> bool:
        with self._transaction() as connection:
            unused = [row[0] for row in run(connection, "unused_templates")]
            if not unused:
                return True
            removed = len(run(connection, "delete_unused_vectors", unused, limit))
            if removed < limit:
                run(connection, "delete_templates", unused)
        if removed < limit:
            for template in unused:
                self.indexes.drop(template=template)
        return removed < limit

    def put(
        self,
        model: int,
        vectors: Sequence[tuple[int, bytes]],
        *,
        perspective: str = TEXT,
        document: str | None = None,
    ) -> None:
        if not vectors:
            return
        passages, packed = zip(
            *[(passage, pack_half(vector)) for passage, vector in vectors], strict=True
        )
        with self._transaction() as connection:
            template, _ = find_template(connection, perspective, document)
            run(connection, "insert_vectors", model, template, passages, packed)
        self.indexes.after_writing(model, template, len(vectors), len(vectors[0][1]) // 4)

    def lease(self, name: str, seconds: float) -> bool:
        now = time_ns() // 1000
        with self._transaction() as connection:
            return bool(
                run(
                    connection,
                    "take_lease",
                    name,
                    self._server,
                    now + int(seconds * _MICROSECONDS),
                    now,
                )
            )

    def release(self, name: str) -> None:
        with self._transaction() as connection:
            run(connection, "release_lease", name, self._server)


def find_template(
    connection: WorkspaceConnection, perspective: str, document: str | None = None
) -> tuple[int, str]:
    """Return the id and the text of a perspective's document template. Raise BadInput if it is not `document`."""
    rows = run(connection, "template_of", perspective)
    if not rows or document not in (None, rows[0][1]):
        raise no_perspective(perspective)
    number, template = rows[0]
    return number, template


def no_perspective(name: str) -> BadInput:
    """Return the error for a perspective that does not exist."""
    return BadInput(
        f"there is no perspective {name!r}; `polymnia perspective list` shows which there are"
    )
