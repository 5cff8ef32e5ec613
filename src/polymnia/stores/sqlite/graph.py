"""The graph in SQLite: rows become values here, and changes become rows."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import apsw

from polymnia.model import (
    Change,
    Counts,
    Entity,
    Graph,
    Neighbours,
    Observation,
    Passage,
    PassageKey,
    Relation,
    RelationKey,
    TrashItem,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.stores.sqlite import words
from polymnia.stores.sqlite.fulltext import rows_matching
from polymnia.stores.sqlite.layout import ORDINAL_BITS, ORDINALS, QUERIES, Row, as_json, run
from polymnia.stores.sqlite.rows import entity_of
from polymnia.stores.sqlite.search import rows_containing
from polymnia.stores.sqlite.trash import trashed
from polymnia.stores.sqlite.writing import apply_change

if TYPE_CHECKING:
    from polymnia.stores.sqlite.notes import SqliteNotes

Keep = Callable[[apsw.Connection], "SqliteNotes"]
# What lets a transaction see everything indexed.
Index = Callable[[apsw.Connection], None]


class SqliteGraph:
    """What is in the file, as the connection's transaction sees it."""

    def __init__(
        self, connection: apsw.Connection, keep_notes: Keep, index: Index, applied: list[Change] | None = None
    ) -> None:
        """`applied` is where a change is noted when it is made."""
        self._connection = connection
        self._keep_notes = keep_notes
        self._index = index
        self._indexed = False
        self._applied = [] if applied is None else applied

    @property
    def notes(self) -> "SqliteNotes":
        return self._keep_notes(self._connection)

    def known(self, names: Collection[str]) -> set[str]:
        return {name for (name,) in run(self._connection, "known_names", as_json(names))}

    def find(self, names: Collection[str]) -> list[Entity]:
        if len(names) == 1:
            return self._with_observations(run(self._connection, "entity_named", *names))
        return self._with_observations(run(self._connection, "entities_named", as_json(names)))

    def entities(self) -> list[Entity]:
        entities = run(self._connection, "entities_all")
        return _assembled(entities, run(self._connection, "observations_all"))

    def containing(self, folded: str) -> list[Entity]:
        if not folded:
            return self.entities()
        found = rows_containing(self._connection, folded)
        return self._with_observations(run(self._connection, "entities_by_id", as_json(found)))

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        rows = run(self._connection, "relations_keyed", as_json(keys))
        return {relation.key: relation for relation in _relations(rows)}

    def touching(self, names: Collection[str]) -> list[Relation]:
        if len(names) == 1:
            return _relations(sorted(run(self._connection, "relations_of", *names)))
        return _relations(sorted(set(run(self._connection, "relations_of_many", as_json(names)))))

    def relations(self) -> list[Relation]:
        return _relations(run(self._connection, "relations_all"))

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        rows = run(self._connection, "entities_page", kind, -1 if limit is None else limit, offset)
        return self._with_observations(rows)

    def relations_like(self, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
        if source is not None:
            rows = run(self._connection, "relations_from", source, target, kind)
        elif target is not None:
            rows = run(self._connection, "relations_to", target, kind)
        else:
            rows = run(self._connection, "relations_typed", kind)
        return _relations(rows)

    def entity_types(self) -> list[TypeCount]:
        return [TypeCount(*row) for row in run(self._connection, "entity_types")]

    def relation_types(self) -> list[TypeCount]:
        return [TypeCount(*row) for row in run(self._connection, "relation_types")]

    def distinct_texts(self) -> tuple[int, int]:
        count, size = run(self._connection, "distinct_texts")[0]
        return count, size

    def counts(self) -> Counts:
        return Counts(*run(self._connection, "counts")[0])

    def weight(self, row: int, most: int) -> int:
        """The bytes of all texts, and so many for each row besides; at most so many rows of a kind are looked at."""
        return int(run(self._connection, "weight", row, most)[0][0])

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        self._see_all_indexed()
        return words.word_counts(self._connection, terms)

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        self._see_all_indexed()
        return words.vocabulary(self._connection, first, last, limit)

    def candidates(
        self, terms: Collection[str], limit: int, within: Within | None = None, *, every: bool = False
    ) -> list[Passage]:
        self._see_all_indexed()
        return words.candidates(self._connection, terms, limit, within, every=every)

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        self._see_all_indexed()
        return words.names_with(self._connection, terms, limit)

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        return words.observation_counts(self._connection, names)

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        return words.neighbours(self._connection, passages)

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        return words.passages_by_id(self._connection, ids)

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        return words.between(self._connection, start, end, limit)

    def matching(self, query: str) -> list[Entity]:
        """Entities that match an FTS5 query, best first; what is no valid query is searched as words."""
        self._see_all_indexed()
        ids = rows_matching(self._connection, query)
        rows = {row[0]: row for row in run(self._connection, "entities_by_id", as_json(ids))}
        return self._with_observations([rows[each] for each in ids if each in rows])

    def trashed(self) -> list[TrashItem]:
        return trashed(self._connection)

    def apply(self, change: Change) -> None:
        apply_change(self._connection, change)
        self._applied.append(change)
        self._indexed = False

    def _see_all_indexed(self) -> None:
        """Once for the transaction, or since the last change in it: where it cannot be done, trying takes time."""
        if not self._indexed:
            self._index(self._connection)
            self._indexed = True

    def _with_observations(self, entities: list[Row]) -> list[Entity]:
        if not entities:
            return []
        if len(entities) == 1:
            first = entities[0][0] << ORDINAL_BITS
            return _assembled(entities, run(self._connection, "observations_of", first, first | ORDINALS))
        ids = as_json(row[0] for row in entities)
        return _assembled(entities, run(self._connection, "observations_of_many", ids))


def look_up(connection: apsw.Connection, name: str) -> Graph:
    """What `Store.look_up` gives: one statement, so one moment, and one pass over its rows."""
    entity: Row | None = None
    observations: list[Observation] = []
    relations: list[Row] = []
    for row in connection.execute(QUERIES["look_up"], (name,)):
        if row[0] == 1:
            observations.append(Observation(row[1] & ORDINALS, row[2], row[3], row[4]))
        elif row[0] == 2:
            relations.append(row[1:6])
        else:
            entity = row[1:]
    if entity is None:
        return Graph([], [])
    return Graph([entity_of(entity, tuple(observations))], _relations(sorted(relations)))


def _assembled(entities: list[Row], observations: list[Row]) -> list[Entity]:
    of: dict[int, list[Observation]] = {row[0]: [] for row in entities}
    for row_id, text, created_at, valid_at in observations:
        of.setdefault(row_id >> ORDINAL_BITS, []).append(Observation(row_id & ORDINALS, text, created_at, valid_at))
    return [entity_of(row, tuple(of[row[0]])) for row in entities]


def _relations(rows: list[Row]) -> list[Relation]:
    return [Relation(source, target, kind, at) for _, source, target, kind, at in rows]
