"""Vectors in SQLite: one table, compared in memory with numpy or, without it, one by one."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from heapq import nlargest
from importlib.util import find_spec
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING

import apsw

from polymnia.errors import BadInput, StoreError
from polymnia.model import EmbeddingModel, Perspective, Within
from polymnia.search.embedding import cosine, length, shorten, unpack_vector, widen
from polymnia.search.templates import render_document
from polymnia.stores.contract import TEXT
from polymnia.stores.sqlite.rows import QUERIES, as_json, run, run_many
from polymnia.stores.sqlite.search import bind_within

if TYPE_CHECKING:
    from polymnia.stores.sqlite.vector_index import VectorIndex

# Vectors read from the file at once.
_READ_BATCH = 5_000
_MICROSECONDS = 1_000_000
_NO_BOUND = 2**63 - 1

Transaction = Callable[[], AbstractContextManager[apsw.Connection]]


class VectorCache:
    """The vector indexes that a store keeps in memory, one per model and template."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._indexes: dict[tuple[int, int], VectorIndex] = {}

    @property
    def is_available(self) -> bool:
        """True if numpy is installed."""
        return find_spec("numpy") is not None

    def find(self, model: int, template: int) -> "VectorIndex | None":
        """Return the index of a model and template, if there is one yet."""
        with self._lock:
            return self._indexes.get((model, template))

    def add(
        self, model: int, template: int, dimension: int, in_use: Collection[int]
    ) -> "VectorIndex":
        """Return a new index of a model and template. Drop those of templates that are no longer in use."""
        from polymnia.stores.sqlite.vector_index import (
            VectorIndex,
        )  # numpy: 70 MB that many servers never need

        with self._lock:
            self._indexes = {key: index for key, index in self._indexes.items() if key[1] in in_use}
            return self._indexes.setdefault((model, template), VectorIndex(dimension))

    def clear(self) -> None:
        """Forget everything; the next search reads the vectors again."""
        with self._lock:
            self._indexes.clear()


class SqliteVectorReader:
    """The vectors in the file, as the connection's transaction sees them."""

    def __init__(self, connection: apsw.Connection, cache: VectorCache) -> None:
        self._connection = connection
        self._cache = cache

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
        allowed = None
        if within is not None:
            allowed = [
                row[0] for row in run(self._connection, "passages_within", *bind_within(within))
            ]
        return self.nearest_of(model, vector, k, allowed, perspective=perspective)

    def nearest_of(
        self,
        model: int,
        vector: bytes,
        k: int,
        allowed: Collection[int] | None,
        *,
        perspective: str = TEXT,
    ) -> dict[int, float]:
        """Return the k nearest of the allowed passages; None allows all."""
        number, _ = self._template(perspective)
        if self._cache.is_available:
            with self._index(model, number) as index:
                found = index.nearest(vector, k, allowed)
        else:
            found = self._one_by_one(model, number, vector, k, allowed)
        living = {row[0] for row in run(self._connection, "living_passages", as_json(found))}
        return {passage: score for passage, score in found.items() if passage in living}

    def vectors(
        self, model: int, passages: Collection[int], *, perspective: str = TEXT
    ) -> dict[int, bytes]:
        number, _ = self._template(perspective)
        if self._cache.is_available:
            with self._index(model, number) as index:
                return index.vectors(passages)
        rows = run(self._connection, "vectors_by_passage", model, number, as_json(passages))
        dimension = self._dimension(model)
        return {passage: widen(vector, dimension) for passage, vector in rows}

    def means(self, model: int, *, perspective: str = TEXT) -> dict[str, bytes]:
        number, _ = self._template(perspective)
        owners = run(self._connection, "observation_owners")
        with self._index(model, number) as index:
            return index.means([(passage, name) for passage, name in owners])

    def pending(
        self,
        model: int,
        limit: int,
        *,
        above: int = 0,
        below: int | None = None,
        perspective: str = TEXT,
    ) -> list[tuple[int, str]]:
        stretch = (above, _NO_BOUND if below is None else below)
        number, template = self._template(perspective)
        rows = run(self._connection, "pending_vectors", model, number, limit, *stretch)
        return [
            (passage, render_document(template, text=text, name=name, kind=kind, at=at))
            for passage, text, name, kind, at in rows
        ]

    def last_passage(self) -> int:
        last = run(self._connection, "last_change")
        return last[0][2] if last else 0

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        number, _ = self._template(perspective)
        if not self._cache.is_available:
            return int(
                run(self._connection, "count_vectors", model, number)[0][0]
            ), self._count_embeddable()
        with self._index(model, number) as index:
            return min(len(index), index.embeddable), index.embeddable

    @contextmanager
    def _index(self, model: int, template: int) -> "Iterator[VectorIndex]":
        """Yield the index in memory, up to date, for this thread alone."""
        index = self._cache.find(model, template)
        if index is None:
            in_use = {row[0] for row in run(self._connection, "templates_in_use")}
            index = self._cache.add(model, template, self._dimension(model), in_use)
        with index.lock:
            self._bring_up_to_date(index, model, template)
            yield index

    def _bring_up_to_date(self, index: "VectorIndex", model: int, template: int) -> None:
        """Add vectors that were written since, remove passages that ended since. An index never goes back in time."""
        change: int = (run(self._connection, "last_change") or [(0,)])[0][0]
        ((purge,),) = run(self._connection, "last_purge")
        if purge > index.change:
            index.clear()  # passages may have ended and been purged meanwhile
        for batch in self._written_since(model, template, index.vector):
            index.add([row[1] for row in batch], [row[2] for row in batch])
            index.vector = batch[-1][0]
        if change > index.change:
            index.remove([row[0] for row in run(self._connection, "ended_since", index.change)])
            missing = run(self._connection, "vectors_missing_since", index.change, model, template)
            index.remove([row[0] for row in missing])
            index.embeddable = self._count_embeddable()
            index.change = change

    def _written_since(
        self, model: int, template: int, vector: int
    ) -> Iterator[list[tuple[int, int, bytes]]]:
        while rows := run(self._connection, "vectors_since", model, template, vector, _READ_BATCH):
            yield [(number, passage, blob) for number, passage, blob in rows]
            vector = rows[-1][0]

    def _one_by_one(
        self, model: int, template: int, vector: bytes, k: int, allowed: Collection[int] | None
    ) -> dict[int, float]:
        own, norm = unpack_vector(vector), length(vector)
        wanted = None if allowed is None else set(allowed)
        # Row by row: together they may be larger than memory.
        rows = self._connection.execute(QUERIES["vectors_since"], (model, template, 0, -1))
        scores = (
            (cosine(own, norm, widen(blob, len(own)), length(widen(blob, len(own)))), passage)
            for _, passage, blob in rows
            if wanted is None or passage in wanted
        )
        return {passage: score for score, passage in nlargest(k, scores)}

    def _count_embeddable(self) -> int:
        return int(run(self._connection, "count_embeddable")[0][0])

    def _dimension(self, model: int) -> int:
        rows = run(self._connection, "model_dimension", model)
        if not rows:
            raise StoreError("the vectors of this model were removed; ask again")
        return int(rows[0][0])

    def _template(self, perspective: str) -> tuple[int, str]:
        return find_template(self._connection, perspective)


class SqliteVectorStore:
    """Writes of vectors. Each call is one transaction."""

    def __init__(self, transaction: Transaction, server: str) -> None:
        self._transaction = transaction
        self._server = server

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        with self._transaction() as connection:
            run(connection, "insert_model", identity, url, dimension)
            return EmbeddingModel(*run(connection, "model_of", identity)[0])

    def remove_model(self, model: int, limit: int) -> bool:
        with self._transaction() as connection:
            removed = run(connection, "delete_vectors_of_model", model, limit)
            if len(removed) < limit:
                run(connection, "delete_model", model)
        return len(removed) < limit

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
            if not run(connection, "count_unused_templates")[0][0]:
                return True
            removed = run(connection, "delete_unused_vectors", limit)
            if len(removed) < limit:
                run(connection, "delete_unused_templates")
        return len(removed) < limit

    def put(
        self,
        model: int,
        vectors: Sequence[tuple[int, bytes]],
        *,
        perspective: str = TEXT,
        document: str | None = None,
    ) -> None:
        with self._transaction() as connection:
            number, _ = find_template(connection, perspective, document)
            rows = [(passage, number, model, shorten(vector)) for passage, vector in vectors]
            run_many(connection, "insert_vector", rows)

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
    connection: apsw.Connection, perspective: str, document: str | None = None
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
