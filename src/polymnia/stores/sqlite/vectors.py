"""Vectors in SQLite: one table, compared in memory with numpy or, without it, one by one."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from heapq import nlargest
from importlib.util import find_spec
from typing import TYPE_CHECKING

from polymnia.errors import StoreError
from polymnia.model import Within
from polymnia.search.embedding import cosine, length, shorten, unpack_vector, widen
from polymnia.search.relevance import Scores
from polymnia.stores.sqlite.connection import QUERIES
from polymnia.stores.sqlite.port import SqlitePort
from polymnia.stores.sqlite.search import bind_within
from polymnia.stores.versioned.write import CLIENT_MODEL

if TYPE_CHECKING:
    from polymnia.stores.sqlite.vector_index import VectorIndex

# The template of a passage's own text.
_TEXT_TEMPLATE = 1


# The indexes that a store keeps in memory, by model and template.
VectorIndexes = dict[tuple[int, int], "VectorIndex"]


class SqliteVectors:
    """The vectors in the file, as a transaction sees them."""

    def __init__(self, port: SqlitePort, indexes: VectorIndexes) -> None:
        self._port = port
        self._indexes = indexes

    def nearest(
        self, model: int, template: int, vector: bytes, k: int, within: Within | None
    ) -> Scores:
        allowed = None
        if within is not None:
            rows = self._port.run("passages_within", *bind_within(within))
            allowed = [passage for (passage,) in rows]
        return self._nearest_of(model, template, vector, k, allowed)

    def nearest_notes(
        self, model: int, vector: bytes, k: int, allowed: Collection[int] | None
    ) -> Scores:
        return self._nearest_of(model, _TEXT_TEMPLATE, vector, k, allowed)

    def vectors(self, model: int, template: int, passages: Collection[int]) -> dict[int, bytes]:
        # Some vectors by id need no index of all. After a search by meaning there is one.
        if (model, template) in self._indexes:
            with self._index(model, template) as index:
                return index.vectors(passages)
        rows = self._port.run("vectors_by_passage", model, template, list(passages))
        dimension = self._dimension(model)
        return {passage: widen(vector, dimension) for passage, vector in rows}

    def means(self, model: int, template: int) -> dict[str, bytes]:
        owners = self._port.run("observation_owners")
        with self._index(model, template) as index:
            return index.means([(passage, name) for passage, name in owners])

    def coverage(self, model: int, template: int) -> tuple[int, int]:
        if not _has_numpy():
            ((embedded,),) = self._port.run("count_vectors", model, template)
            return embedded, self._count_embeddable()
        with self._index(model, template) as index:
            return len(index), index.embeddable

    def put(self, model: int, template: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        rows = [(passage, template, model, shorten(vector)) for passage, vector in vectors]
        self._port.write_rows("insert_vector", rows)

    def put_client_vector(self, identity: str, passage: int, vector: bytes) -> None:
        if not self._port.run("model_of", identity):
            self._port.run("insert_model", 0, identity, CLIENT_MODEL, len(vector) // 4)
        model = self._port.run("model_of", identity)[0][0]
        self._port.run("insert_vector", passage, _TEXT_TEMPLATE, model, vector)

    def _nearest_of(
        self,
        model: int,
        template: int,
        vector: bytes,
        k: int,
        allowed: Collection[int] | None,
    ) -> Scores:
        if _has_numpy():
            with self._index(model, template) as index:
                scores = index.nearest(vector, k, allowed)
        else:
            scores = self._one_by_one(model, template, vector, k, allowed)
        living = {passage for (passage,) in self._port.run("living_passages", list(scores))}
        return {passage: score for passage, score in scores.items() if passage in living}

    @contextmanager
    def _index(self, model: int, template: int) -> "Iterator[VectorIndex]":
        """Yield the index in memory, up to date, for this thread alone."""
        index = self._indexes.get((model, template))
        if index is None:
            from polymnia.stores.sqlite.vector_index import VectorIndex  # numpy needs 70 MB

            in_use = {row[0] for row in self._port.run("templates_in_use")}
            for key in list(self._indexes):
                if key[1] not in in_use:
                    self._indexes.pop(key, None)
            index = VectorIndex(self._dimension(model))
            # Another thread may have been first.
            index = self._indexes.setdefault((model, template), index)
        with index.lock:
            # Add vectors that were written since, remove passages that ended since. An index never
            # goes back in time.
            change: int = (self._port.run("last_change") or [(0,)])[0][0]
            ((purge,),) = self._port.run("last_purge")
            if purge > index.change:
                index.clear()  # passages may have ended and been purged meanwhile
            while rows := self._port.run("vectors_since", model, template, index.vector, 5_000):
                index.add([passage for _, passage, _ in rows], [vector for *_, vector in rows])
                index.vector = rows[-1][0]
            if change > index.change:
                index.remove([row[0] for row in self._port.run("ended_since", index.change)])
                missing = self._port.run("vectors_missing_since", index.change, model, template)
                index.remove([row[0] for row in missing])
                index.embeddable = self._count_embeddable()
                index.change = change
            yield index

    def _one_by_one(
        self, model: int, template: int, vector: bytes, k: int, allowed: Collection[int] | None
    ) -> dict[int, float]:
        own, norm = unpack_vector(vector), length(vector)
        wanted = None if allowed is None else set(allowed)
        # Row by row: together they may be larger than memory.
        rows = self._port.connection.execute(QUERIES["vectors_since"], (model, template, 0, -1))

        def scores() -> Iterator[tuple[float, int]]:
            for _, passage, blob in rows:
                if wanted is None or passage in wanted:
                    other = widen(blob, len(own))
                    yield cosine(own, norm, other, length(other)), passage

        return {passage: score for score, passage in nlargest(k, scores())}

    def _count_embeddable(self) -> int:
        return int(self._port.run("count_embeddable")[0][0])

    def _dimension(self, model: int) -> int:
        rows = self._port.run("model_dimension", model)
        if not rows:
            raise StoreError("the vectors of this model were removed; ask again")
        return int(rows[0][0])


def _has_numpy() -> bool:
    return find_spec("numpy") is not None
