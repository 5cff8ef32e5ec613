"""Vectors in SQLite: what is still to be embedded, what was, and what another process did meanwhile."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import apsw

from polymnia.model import EmbeddingModel, Within
from polymnia.stores.sqlite.layout import ORDINAL_BITS, as_json, run, run_many

if TYPE_CHECKING:
    from polymnia.search.vectors import Row

Connected = Callable[[], AbstractContextManager[apsw.Connection]]


class SqliteVectors:
    """The vectors of one store, on the store's own connections."""

    def __init__(self, reading: Connected, writing: Connected) -> None:
        self._reading = reading
        self._writing = writing

    def models(self) -> list[EmbeddingModel]:
        with self._reading() as connection:
            return [EmbeddingModel(*row) for row in run(connection, "models_all")]

    def add_model(self, identity: str, url: str, dimension: int) -> EmbeddingModel:
        with self._writing() as connection:
            known = run(connection, "model_of", identity)
            run(connection, "insert_model", identity, url, dimension)
            model = EmbeddingModel(*run(connection, "model_of", identity)[0])
            if not known:
                run(connection, "queue_all", model.number)
        return model

    def remove_model(self, number: int, most: int) -> bool:
        with self._writing() as connection:
            removed = run(connection, "delete_vectors", number, most)
            run(connection, "forget_gone", number)
            if len(removed) == most:
                return False
            for query in ("unqueue_all", "delete_model"):
                run(connection, query, number)
        return True

    def queued(self, model: int, limit: int) -> list[tuple[int, str | None]]:
        with self._reading() as connection:
            return [(place, text) for place, text in run(connection, "queued", model, limit)]

    def put(self, model: int, embedded: Sequence[tuple[int, str | None, bytes]]) -> None:
        with self._writing() as connection:
            run_many(connection, "insert_vector", [(model, vector, place, text) for place, text, vector in embedded])
            run_many(connection, "unqueue", [(model, place) for place, *_ in embedded])

    def state(self) -> tuple[int, int]:
        with self._reading() as connection:
            written, gone = run(connection, "vectors_state")[0]
        return written, gone

    def since(self, model: int, vector: int, limit: int) -> tuple[int, list["Row"]]:
        from polymnia.search.vectors import Row

        with self._reading() as connection:
            rows = run(connection, "vectors_since", model, vector, limit)
        found = [Row(place, _group(place), valid_at, at, blob) for _, place, valid_at, at, blob in rows]
        return (rows[-1][0] if rows else vector), found

    def gone_since(self, model: int, number: int) -> tuple[int, list[int]] | None:
        with self._reading() as connection:
            rows = run(connection, "vectors_gone_since", model, number)
            forgotten = run(connection, "forgotten_of", model)
        if not forgotten or number < forgotten[0][0]:  # asked after the rows, in case they went in between
            return None
        return (rows[-1][0] if rows else number), [place for _, place in rows if place is not None]

    def places(self, model: int) -> set[int]:
        with self._reading() as connection:
            return {place for (place,) in run(connection, "places_of", model)}

    def forget_gone(self, keep: int) -> None:
        with self._reading() as connection:
            ((first, last),) = run(connection, "gone_bounds")
        if last - first < 2 * keep:
            return
        with self._writing() as connection:
            run(connection, "mark_forgotten", last - keep)
            run(connection, "forget_gone_until", last - keep)

    def counts(self, model: int) -> tuple[int, int]:
        with self._reading() as connection:
            embedded, total = run(connection, "vector_counts", model)[0]
        return embedded, total

    def groups(self, within: Within) -> list[int] | None:
        if within.names is None and within.types is None:
            return None
        names = None if within.names is None else as_json(within.names)
        with self._reading() as connection:
            if within.types is None:
                rows = run(connection, "groups_named", names)
            else:
                rows = run(connection, "groups_within", names, as_json(within.types))
        return [group for (group,) in rows]


def _group(place: int) -> int:
    """What a filter allows or not: an entity with all its observations, or a note."""
    return place >> ORDINAL_BITS if place > 0 else place
