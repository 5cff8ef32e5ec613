"""Vectors of a versioned store: which there are, which are missing, and writes of them."""

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from time import time_ns
from typing import Protocol

from polymnia.errors import BadInput, StoreError
from polymnia.model import CosineScale, EmbeddingModel, Perspective, Within
from polymnia.search.templates import OWN_TEXT, render_document
from polymnia.stores.contract import TEXT
from polymnia.stores.versioned.port import DatabasePort, Row

logger = logging.getLogger(__name__)

_US_PER_SECOND = 1_000_000
_MAX_ID = 2**63 - 1


class VersionVectors:
    """Reads of vectors."""

    def __init__(self, port: DatabasePort) -> None:
        self._port = port

    def models(self) -> list[EmbeddingModel]:
        return list(map(_as_model, self._port.run("models_all")))

    def perspectives(self) -> list[Perspective]:
        return [Perspective(*row) for row in self._port.run("perspectives_all")]

    def nearest(
        self,
        model: int,
        vector: bytes,
        k: int,
        within: Within | None = None,
        *,
        perspective: str = TEXT,
    ) -> dict[int, float]:
        template, _ = find_template(self._port, perspective)
        if not self._port.run("model_dimension", model):
            raise StoreError("the vectors of this model were removed; ask again")
        return self._port.vectors.nearest(model, template, vector, k, within)

    def vectors(
        self, model: int, passages: Collection[int], *, perspective: str = TEXT
    ) -> dict[int, bytes]:
        template, _ = find_template(self._port, perspective)
        return self._port.vectors.vectors(model, template, passages)

    def means(self, model: int, *, perspective: str = TEXT) -> dict[str, bytes]:
        template, _ = find_template(self._port, perspective)
        return self._port.vectors.means(model, template)

    def pending(
        self,
        model: int,
        limit: int,
        *,
        above: int = 0,
        below: int | None = None,
        perspective: str = TEXT,
    ) -> list[tuple[int, str]]:
        number, template = find_template(self._port, perspective)
        rows = self._port.run("pending_vectors", model, number, limit, above, below or _MAX_ID)
        texts = []
        for passage, text, name, kind, at, is_named in rows:
            if template == OWN_TEXT:
                texts.append((passage, f"{name}: {text}" if is_named else text))
            else:
                document = render_document(template, text=text, name=name, kind=kind, at=at)
                texts.append((passage, document))
        return texts

    def last_passage(self) -> int:
        rows = self._port.run("last_change")
        return rows[0][2] if rows else 0

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        template, _ = find_template(self._port, perspective)
        embedded, total = self._port.vectors.coverage(model, template)
        return min(embedded, total), total


class VectorIndexes(Protocol):
    """Indexes that a database keeps beside its vectors."""

    def after_writing(self, model: int, template: int, count: int, dimension: int) -> None:
        """Notice that vectors were written."""

    def drop(self, *, model: int | None = None, template: int | None = None) -> None:
        """Drop the indexes of a model or a template."""


class VersionVectorStore:
    """Writes of vectors. Each call is one transaction."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[DatabasePort]],
        server: str,
        indexes: VectorIndexes | None = None,
    ) -> None:
        self._transaction = transaction
        self._server = server
        self._indexes = indexes
        self._has_checked_lengths = False

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        with self._transaction() as port:
            # A removed model's number must not be given to another: the time is never given twice.
            port.run("insert_model", time_ns() // 1000, identity, url, dimension)
            return _as_model(port.run("model_of", identity)[0])

    def set_scale(self, model: int, scale: CosineScale) -> None:
        with self._transaction() as port:
            port.run("set_scale", model, scale.zero, scale.unit)

    def remove_vectors(self, limit: int, *, model: int | None = None) -> bool:
        return self._remove_unused(limit) if model is None else self._remove_model(model, limit)

    def set_perspective(self, perspective: Perspective) -> None:
        name, document, query = perspective.name, perspective.document, perspective.query
        if name == TEXT:
            raise BadInput(
                f"the perspective {TEXT!r} is the passages' own text and cannot be changed; "
                "add another one"
            )
        with self._transaction() as port:
            port.run("insert_template", document)
            port.run("upsert_perspective", name, document, query)

    def remove_perspective(self, name: str) -> None:
        if name == TEXT:
            raise BadInput(
                f"the perspective {TEXT!r} is the passages' own text and cannot be removed"
            )
        with self._transaction() as port:
            if not port.run("delete_perspective", name):
                raise _no_perspective(name)

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
        with self._transaction() as port:
            template, _ = find_template(port, perspective, document)
            for (dimension,) in port.run("model_dimension", model):
                _require_dimension(vectors, dimension)
            port.vectors.put(model, template, vectors)
        if self._indexes is not None:
            dimension = len(vectors[0][1]) // 4
            self._indexes.after_writing(model, template, len(vectors), dimension)

    def lease(self, name: str, seconds: float) -> bool:
        now = time_ns() // 1000
        until = now + int(seconds * _US_PER_SECOND)
        with self._transaction() as port:
            if not seconds:
                port.run("release_lease", name, self._server)
                return False
            port.server.acquire()  # other servers then see that this one runs
            for (holder,) in port.run("lease_holder", name):
                # A process may hold several stores, which add their number to its name.
                process, _, _ = holder.partition("/")
                if not port.server.is_running(process):
                    port.run("release_lease", name, holder)
            return bool(port.run("take_lease", name, self._server, until, now))

    def _remove_model(self, model: int, limit: int) -> bool:
        with self._transaction() as port:
            is_last = len(port.run("delete_vectors_of_model", model, limit)) < limit
            if is_last:
                port.run("delete_model", model)
        if is_last and self._indexes is not None:
            self._indexes.drop(model=model)
        return is_last

    def _remove_unused(self, limit: int) -> bool:
        with self._transaction() as port:
            if not self._has_checked_lengths:  # it reads all vectors, so once in a process
                self._has_checked_lengths = True
                if broken := port.run("delete_broken_vectors"):
                    logger.warning("removed %d vectors with a wrong length", len(broken))
            templates = [number for (number,) in port.run("unused_templates")]
            if not templates:
                return True
            is_last = len(port.run("delete_unused_vectors", templates, limit)) < limit
            if is_last:
                port.run("delete_templates", templates)
        if is_last and self._indexes is not None:
            for template in templates:
                self._indexes.drop(template=template)
        return is_last


def _require_dimension(vectors: Sequence[tuple[int, bytes]], dimension: int) -> None:
    """Raise StoreError for a vector that cannot be compared with the others of its model."""
    for _, vector in vectors:
        if len(vector) != 4 * dimension:
            raise StoreError(
                f"the embedder returned a vector of {len(vector) // 4} numbers, and its model has "
                f"{dimension}; nothing was stored, check the embedder"
            )


def _as_model(row: Row) -> EmbeddingModel:
    number, identity, url, dimension, zero, unit = row
    scale = None if zero is None else CosineScale(zero, unit)
    return EmbeddingModel(number, identity, url, dimension, scale)


def find_template(
    port: DatabasePort, perspective: str, document: str | None = None
) -> tuple[int, str]:
    """Return the id and the text of a perspective's document template.

    Raise BadInput if there is no such perspective, or if its template is not `document`.
    """
    rows = port.run("template_of", perspective)
    if not rows or document not in (None, rows[0][1]):
        raise _no_perspective(perspective)
    number, template = rows[0]
    return number, template


def _no_perspective(name: str) -> BadInput:
    return BadInput(
        f"there is no perspective {name!r}; `polymnia perspective list` shows which there are"
    )
