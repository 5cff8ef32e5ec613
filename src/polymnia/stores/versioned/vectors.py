"""Vectors of a versioned store: which there are, which are missing, and writes of them."""

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from time import time_ns
from typing import Protocol

from polymnia.errors import BadInput, StoreError
from polymnia.model import CosineScale, EmbeddingModel, Perspective, Within
from polymnia.search.templates import OWN_TEXT, render_document, render_own
from polymnia.stores.contract import TEXT
from polymnia.stores.versioned.port import DatabasePort, Row

logger = logging.getLogger(__name__)


class VectorReader:
    """Vectors of passages, as little-endian float32.

    A vector is made from a passage's text in one perspective by one model. A passage's text never
    changes under its id, so a vector never becomes stale. Perspectives with the same document
    template share their vectors. A method with a `perspective` raises BadInput if there is none of
    that name.
    """

    def __init__(self, port: DatabasePort) -> None:
        self._port = port

    def models(self) -> list[EmbeddingModel]:
        """Return the models with vectors, oldest first."""
        return list(map(_as_model, self._port.run("models_all")))

    def perspectives(self) -> list[Perspective]:
        """Return the perspectives, oldest first. The first is TEXT."""
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
        """Return the ids of the k nearest living passages with their cosines, best first."""
        template, _ = find_template(self._port, perspective)
        if not self._port.run("model_dimension", model):
            raise StoreError("the vectors of this model were removed; ask again")
        return self._port.vectors.nearest(model, template, vector, k, within)

    def vectors(
        self, model: int, passages: Collection[int], *, perspective: str = TEXT
    ) -> dict[int, bytes]:
        """Return the vectors of those of the passages that have one."""
        template, _ = find_template(self._port, perspective)
        return self._port.vectors.vectors(model, template, passages)

    def means(self, model: int, *, perspective: str = TEXT) -> dict[str, bytes]:
        """Return the mean of the vectors of each entity's facts, by name.

        Entities without a vector are missing.
        A store that compares vectors in memory needs numpy for it.
        """
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
        """Return the living passages without a vector, newest first, with the text to embed.

        Only passages with above < id < below. `search.templates.render_document` makes the text.
        """
        number, template = find_template(self._port, perspective)
        rows = self._port.run("pending_vectors", model, number, limit, above, below or 2**63 - 1)
        texts = []
        for passage, text, name, kind, at, is_noted in rows:
            if template == OWN_TEXT:
                texts.append((passage, render_own(text, name) if is_noted else text))
            else:
                document = render_document(template, text=text, name=name, kind=kind, at=at)
                texts.append((passage, document))
        return texts

    def last_passage(self) -> int:
        """Return an id that no passage of this snapshot exceeds. Later passages have higher ids."""
        rows = self._port.run("last_change")
        return rows[0][2] if rows else 0

    def coverage(self, model: int, *, perspective: str = TEXT) -> tuple[int, int]:
        """Return how many living passages have a vector of the model, and how many should."""
        template, _ = find_template(self._port, perspective)
        embedded, total = self._port.vectors.coverage(model, template)
        return min(embedded, total), total


class VectorIndexes(Protocol):
    """Indexes that a database keeps beside its vectors."""

    def after_writing(self, model: int, template: int, count: int, dimension: int) -> None:
        """Notice that vectors were written."""

    def drop(self, *, model: int | None = None, template: int | None = None) -> None:
        """Drop the indexes of a model or a template."""


class VectorStore:
    """Writes of vectors. Each call is one transaction; safe for several threads and processes."""

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
        """Return the model with that identity, registered from now on."""
        with self._transaction() as port:
            # A removed model's number must not be given to another: the time is never given twice.
            port.run("insert_model", time_ns() // 1000, identity, url, dimension)
            return _as_model(port.run("model_of", identity)[0])

    def set_scale(self, model: int, scale: CosineScale) -> None:
        """Store the scale of a model's cosines."""
        with self._transaction() as port:
            port.run("set_scale", model, scale.zero, scale.unit)

    def remove_vectors(self, limit: int, *, model: int | None = None) -> bool:
        """Delete up to `limit` vectors that no perspective uses any more.

        Return True when there are none.
        With a model, delete all of its vectors, and the model with the last of them.
        """
        if model is not None:
            with self._transaction() as port:
                is_last = len(port.run("delete_vectors_of_model", model, limit)) < limit
                if is_last:
                    port.run("delete_model", model)
            if is_last and self._indexes is not None:
                self._indexes.drop(model=model)
            return is_last
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

    def set_perspective(self, perspective: Perspective) -> None:
        """Add a perspective or replace the one with that name.

        TEXT cannot be replaced: raise BadInput.
        A new document template starts without vectors, unless another perspective has the same.
        """
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
        """Remove a perspective. Raise BadInput for TEXT and if there is none of that name."""
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
        """Store the vectors of passages.

        Ignore passages that no longer live and those that have a vector already. Raise BadInput if
        there is no such perspective or, if `document` is given, its template has changed since.
        """
        if not vectors:
            return
        with self._transaction() as port:
            template, _ = find_template(port, perspective, document)
            for (dimension,) in port.run("model_dimension", model):
                for _, vector in vectors:
                    if len(vector) != 4 * dimension:
                        # It cannot be compared with the others of its model.
                        raise StoreError(
                            f"the embedder returned a vector of {len(vector) // 4} numbers, and "
                            f"its model has {dimension}; nothing was stored, check the embedder"
                        )
            port.vectors.put(model, template, vectors)
        if self._indexes is not None:
            dimension = len(vectors[0][1]) // 4
            self._indexes.after_writing(model, template, len(vectors), dimension)

    def lease(self, name: str, seconds: float) -> bool:
        """Take or renew a named lease for this server. Return False while another server holds it.

        A lease ends with its server, however that ends. A lease of 0 seconds gives it up.
        """
        now = time_ns() // 1000
        until = now + int(seconds * 1_000_000)
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
