"""What is in a workspace, as one transaction sees it: the graph here, the rest in the modules the properties name."""

from collections.abc import Collection, Iterable, Mapping
from time import time_ns
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

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
from polymnia.stores.postgres import search
from polymnia.stores.postgres.connection import Row
from polymnia.stores.postgres.database import LastChange, WorkspaceConnection
from polymnia.stores.postgres.rows import assemble, columns, run, unpack_entity
from polymnia.stores.postgres.write import Identities, apply_change
from polymnia.stores.version_history import unpack_relations

if TYPE_CHECKING:
    from polymnia.stores.postgres.presence import ServerPresence
    from polymnia.stores.postgres.tables import PostgresTables
    from polymnia.stores.postgres.vectors import PostgresVectorReader
    from polymnia.stores.version_history import VersionHistory
    from polymnia.stores.version_notes import VersionNotes, VersionSessions
    from polymnia.stores.version_trash import VersionTrash


class PostgresReader:
    """One snapshot of a workspace. The server's presence belongs to the database."""

    def __init__(self, connection: WorkspaceConnection, server: "ServerPresence") -> None:
        self._connection = connection
        self._server = server

    def known(self, names: Collection[str]) -> set[str]:
        return {name for (name,) in run(self._connection, "known_names", names)} if names else set()

    def find(self, names: Collection[str]) -> list[Entity]:
        return assemble(*self._find_rows(names)) if names else []

    def names_of(self, ids: Collection[str]) -> dict[str, str]:
        rows = run(self._connection, "entities_by_uid", ids) if ids else []
        return {uid: name for uid, _, name in rows if name is not None}

    def entities(self) -> list[Entity]:
        self._connection.send("entities_all")
        self._connection.send("observations_all")
        return assemble(*self._connection.fetch()[-2:])

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        rows = run(self._connection, "relations_keyed", *columns(keys)) if keys else []
        return {relation.key: relation for relation in unpack_relations(rows)}

    def touching(self, names: Collection[str]) -> list[Relation]:
        if len(names) == 1:
            return unpack_relations(run(self._connection, "relations_of", *names))
        return unpack_relations(run(self._connection, "relations_of_many", names)) if names else []

    def graph_of(self, names: Collection[str]) -> Graph:
        if not names:
            return Graph([], [])
        self._send_find(names)
        if len(names) == 1:
            self._connection.send("relations_of", *names)
        else:
            self._connection.send("relations_of_many", names)
        entities, observations, relations = self._connection.fetch()[-3:]
        found = {row[1] for row in entities}
        touching = [
            each
            for each in unpack_relations(relations)
            if each.source in found or each.target in found
        ]
        return Graph(assemble(entities, observations), touching)

    def relations(self) -> list[Relation]:
        return unpack_relations(run(self._connection, "relations_all"))

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        return self._with_observations(run(self._connection, "entities_page", kind, limit, offset))

    def outlines(
        self, names: Collection[str] | None = None, kind: str | None = None
    ) -> list[Entity]:
        if names is None:
            rows = run(self._connection, "outlines_all", kind)
        else:
            rows = run(self._connection, "outlines", names, kind)
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
        return [Heading(*row) for row in run(self._connection, "headings", found)]

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
        from polymnia.stores.postgres.history import PostgresRows
        from polymnia.stores.postgres.notes import PostgresNoteSearch
        from polymnia.stores.version_notes import VersionNotes

        return VersionNotes(
            PostgresRows(self._connection), PostgresNoteSearch(self._connection, self.vectors)
        )

    @property
    def sessions(self) -> "VersionSessions":
        from polymnia.stores.postgres.history import PostgresRows
        from polymnia.stores.postgres.notes import PostgresServers
        from polymnia.stores.version_notes import VersionSessions

        return VersionSessions(
            PostgresRows(self._connection), PostgresServers(self._connection, self._server)
        )

    @property
    def vectors(self) -> "PostgresVectorReader":
        from polymnia.stores.postgres.vectors import PostgresVectorReader

        return PostgresVectorReader(self._connection)

    @property
    def history(self) -> "VersionHistory":
        from polymnia.stores.postgres.history import PostgresRows
        from polymnia.stores.version_history import VersionHistory

        return VersionHistory(PostgresRows(self._connection))

    @property
    def tables(self) -> "PostgresTables":
        from polymnia.stores.postgres.tables import PostgresTables

        return PostgresTables(self._connection)

    @property
    def trash(self) -> "VersionTrash":
        from polymnia.stores.postgres.history import PostgresRows
        from polymnia.stores.version_trash import VersionTrash

        return VersionTrash(PostgresRows(self._connection))

    def _find_rows(self, names: Collection[str]) -> list[list[Row]]:
        """Return the rows of entities and of their observations."""
        self._send_find(names)
        return self._connection.fetch()[-2:]

    def _send_find(self, names: Collection[str]) -> None:
        """Queue the queries for entities and for their observations."""
        if len(names) == 1:
            self._connection.send("entity_named", *names)
            self._connection.send("observations_of", *names)
        else:
            self._connection.send("entities_named", names)
            self._connection.send("observations_of_names", names)

    def _by_id(self, ids: Iterable[int]) -> list[Entity]:
        """Return the living entities with these row ids, oldest first."""
        wanted = list(ids)
        self._connection.send("entities_by_id", wanted)
        self._connection.send("observations_of_many", wanted)
        return assemble(*self._connection.fetch()[-2:])

    def _with_observations(self, entities: list[Row]) -> list[Entity]:
        """Return the entities of these rows with their observations."""
        if not entities:
            return []
        return assemble(
            entities, run(self._connection, "observations_of_many", [row[0] for row in entities])
        )


class PostgresWriter(PostgresReader):
    """A transaction that locks its workspace with the first read, and may also apply a change."""

    def __init__(
        self, connection: WorkspaceConnection, server: "ServerPresence", name: str
    ) -> None:
        """`name` tells the changes of this store from those that others make."""
        super().__init__(connection, server)
        self._name = name
        self._identities: Identities = {}  # of the entities that were found, and their living cards
        self.key: UUID | None = None

    @property
    def last(self) -> LastChange:
        """The last change before this transaction. Raise StoreSealed if the workspace was archived."""
        return self._connection.last_change

    def clock(self) -> int:
        return max(time_ns() // 1000, self.last.at + 1)

    def find(self, names: Collection[str]) -> list[Entity]:
        if not names:
            return []
        entities, observations = self._find_rows(names)
        self._identities |= {row[1]: (row[0], row[-1]) for row in entities}
        return assemble(entities, observations)

    def apply(self, change: Change) -> int:
        self.key = uuid4()
        return apply_change(
            self._connection, change, self.last, self._identities, self._name, self.key
        )

    def set_updated(self, times: Mapping[str, int]) -> None:
        """Set when entities were last updated, by their ids: rows from elsewhere bring their own times."""
        for query in ("set_updated", "insert_own_updates"):
            self._connection.write(query, list(times), list(times.values()))
