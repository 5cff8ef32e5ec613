"""What is in the file, as one transaction sees it: the graph here, the rest in the modules that the properties name."""

from collections.abc import Collection, Iterable, Mapping
from time import time_ns
from typing import TYPE_CHECKING

import apsw

from polymnia.model import (
    Change,
    Counts,
    Entity,
    Graph,
    Heading,
    Match,
    Neighbours,
    Passage,
    PassageKey,
    PassageKind,
    Relation,
    RelationKey,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.expression import Expression
from polymnia.stores.sqlite import search
from polymnia.stores.sqlite.rows import (
    Row,
    as_json,
    assemble,
    find_identities,
    pack_uid,
    run,
    run_many,
    sort_rows,
    unpack_entity,
    unpack_relations,
)
from polymnia.stores.sqlite.write import apply_change

if TYPE_CHECKING:
    from polymnia.disk.lock import ServerLock
    from polymnia.stores.sqlite.tables import SqliteTables
    from polymnia.stores.sqlite.vectors import SqliteVectorReader, VectorCache
    from polymnia.stores.version_history import VersionHistory
    from polymnia.stores.version_notes import VersionNotes, VersionSessions
    from polymnia.stores.version_trash import VersionTrash


class SqliteReader:
    """One snapshot of the file. The server lock and the vector cache belong to the store."""

    def __init__(
        self, connection: apsw.Connection, server: "ServerLock", cache: "VectorCache"
    ) -> None:
        self._connection = connection
        self._server = server
        self._cache = cache

    def known(self, names: Collection[str]) -> set[str]:
        return {name for (name,) in run(self._connection, "known_names", as_json(names))}

    def find(self, names: Collection[str]) -> list[Entity]:
        if len(names) == 1:
            return self._with_observations(run(self._connection, "entity_named", *names))
        return self._with_observations(run(self._connection, "entities_named", as_json(names)))

    def names_of(self, ids: Collection[str]) -> dict[str, str]:
        return {
            uid: name for uid, _, name in find_identities(self._connection, ids) if name is not None
        }

    def entities(self) -> list[Entity]:
        entities = run(self._connection, "entities_all")
        return assemble(entities, sort_rows(run(self._connection, "observations_all")))

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        rows = run(self._connection, "relations_keyed", as_json(keys))
        return {relation.key: relation for relation in unpack_relations(rows)}

    def touching(self, names: Collection[str]) -> list[Relation]:
        if len(names) == 1:
            return unpack_relations(sort_rows(run(self._connection, "relations_of", *names)))
        return unpack_relations(
            sort_rows(set(run(self._connection, "relations_of_many", as_json(names))))
        )

    def graph_of(self, names: Collection[str]) -> Graph:
        entities = self.find(names)
        return Graph(
            entities, self.touching({entity.name for entity in entities}) if entities else []
        )

    def relations(self) -> list[Relation]:
        return unpack_relations(run(self._connection, "relations_all"))

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        rows = run(self._connection, "entities_page", kind, -1 if limit is None else limit, offset)
        return self._with_observations(rows)

    def outlines(
        self, names: Collection[str] | None = None, kind: str | None = None
    ) -> list[Entity]:
        if names is None:
            rows = run(self._connection, "outlines_all", kind)
        else:
            rows = run(self._connection, "outlines", as_json(names), kind)
        return [unpack_entity(row, ()) for row in rows]

    def recent(self, since: int, limit: int) -> list[Entity]:
        return [
            unpack_entity(row, ()) for row in run(self._connection, "recent_entities", since, limit)
        ]

    def relations_like(
        self, source: str | None, target: str | None, kind: str | None
    ) -> list[Relation]:
        if source is not None:
            rows = run(self._connection, "relations_from", source, target, kind)
        elif target is not None:
            rows = run(self._connection, "relations_to", target, kind)
        else:
            rows = run(self._connection, "relations_typed", kind)
        return unpack_relations(rows)

    def entity_types(self) -> list[TypeCount]:
        return [TypeCount(*row) for row in run(self._connection, "entity_types")]

    def relation_types(self) -> list[TypeCount]:
        return [TypeCount(*row) for row in run(self._connection, "relation_types")]

    def counts(self) -> Counts:
        return Counts(*run(self._connection, "counts")[0])

    def distinct_texts(self) -> tuple[int, int]:
        count, size = run(self._connection, "distinct_texts")[0]
        return count, size

    def containing(self, folded: str) -> list[Entity]:
        return (
            self._by_id(search.entities_containing(self._connection, folded))
            if folded
            else self.entities()
        )

    def headings(self, folded: str) -> list[Heading]:
        found = search.entities_containing(self._connection, folded)
        return [Heading(*row) for row in run(self._connection, "headings", as_json(found))]

    def match(
        self, expression: Expression, kinds: Collection[PassageKind], limit: int | None = None
    ) -> list[Match]:
        return search.match(self._connection, expression, kinds, limit)

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        return search.word_counts(self._connection, terms)

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        return search.vocabulary(self._connection, first, last, limit)

    def candidates(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None = None,
        *,
        every: bool = False,
    ) -> list[Passage]:
        return search.candidates(self._connection, terms, limit, within, every=every)

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        return search.names_with(self._connection, terms, limit)

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        return search.neighbours(self._connection, passages)

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        return search.passages_by_id(self._connection, ids)

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        return search.passages_containing(self._connection, folded, limit)

    def cards(self, names: Collection[str]) -> list[Passage]:
        return search.cards(self._connection, names)

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        return search.observation_counts(self._connection, names)

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        return search.between(self._connection, start, end, limit)

    # Each of the following is used by few servers, so it is imported when first needed.

    @property
    def notes(self) -> "VersionNotes":
        from polymnia.stores.sqlite.history import SqliteRows
        from polymnia.stores.sqlite.notes import SqliteNoteSearch
        from polymnia.stores.version_notes import VersionNotes

        return VersionNotes(
            SqliteRows(self._connection), SqliteNoteSearch(self._connection, self.vectors)
        )

    @property
    def sessions(self) -> "VersionSessions":
        from polymnia.stores.sqlite.history import SqliteRows
        from polymnia.stores.sqlite.notes import SqliteServer
        from polymnia.stores.version_notes import VersionSessions

        return VersionSessions(SqliteRows(self._connection), SqliteServer(self._server))

    @property
    def vectors(self) -> "SqliteVectorReader":
        from polymnia.stores.sqlite.vectors import SqliteVectorReader

        return SqliteVectorReader(self._connection, self._cache)

    @property
    def history(self) -> "VersionHistory":
        from polymnia.stores.sqlite.history import SqliteRows
        from polymnia.stores.version_history import VersionHistory

        return VersionHistory(SqliteRows(self._connection))

    @property
    def tables(self) -> "SqliteTables":
        from polymnia.stores.sqlite.tables import SqliteTables

        return SqliteTables(self._connection)

    @property
    def trash(self) -> "VersionTrash":
        from polymnia.stores.sqlite.history import SqliteRows
        from polymnia.stores.version_trash import VersionTrash

        return VersionTrash(SqliteRows(self._connection))

    def _by_id(self, ids: Iterable[int]) -> list[Entity]:
        """Return the living entities with these row ids, oldest first."""
        return self._with_observations(run(self._connection, "entities_by_id", as_json(ids)))

    def _with_observations(self, entities: list[Row]) -> list[Entity]:
        """Return the entities of these rows with their observations."""
        if not entities:
            return []
        if len(entities) == 1:
            return assemble(entities, run(self._connection, "observations_of", entities[0][0]))
        ids = as_json([row[0] for row in entities])
        return assemble(entities, run(self._connection, "observations_of_many", ids))


class SqliteWriter(SqliteReader):
    """A snapshot inside a write transaction, which may also apply a change."""

    def clock(self) -> int:
        last = run(self._connection, "last_change")
        return max(time_ns() // 1000, last[0][1] + 1) if last else time_ns() // 1000

    def apply(self, change: Change) -> int:
        return apply_change(self._connection, change, self._server.name)

    def set_updated(self, times: Mapping[str, int]) -> None:
        """Set when entities were last updated, by their ids: rows from elsewhere bring their own times."""
        own = [(at, pack_uid(uid)) for uid, at in times.items()]
        run_many(self._connection, "set_updated", own)
        run_many(self._connection, "insert_own_update", own)
