"""Read history from SQLite: the rows a change created and ended, and the rows that lived at a time."""

from collections import defaultdict
from collections.abc import Callable, Collection
from itertools import groupby
from typing import Generic, TypeVar

import apsw
from msgspec import Struct
from msgspec.structs import replace

from polymnia.errors import BadInput
from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    Entity,
    EventCounts,
    Mark,
    Note,
    Observation,
    ObservationSet,
    PassageKey,
    Relation,
    Rows,
)
from polymnia.stores.sqlite.rows import (
    Row,
    as_json,
    assemble,
    run,
    sort_rows,
    unpack_entity,
    unpack_note,
    unpack_observation,
    unpack_relations,
)

# Changes read at once, so that a large import elsewhere arrives in steps.
MAX_FEED_CHANGES = 100
_NO_LIMIT = -1
# Above the id of every change.
_NO_CHANGE = 1 << 62


class SqliteHistory:
    """The history in the file, as the connection's transaction sees it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def changes(self, since: int = 0, limit: int | None = None) -> list[Change]:
        rows = run(self._connection, "changes_since", since, _NO_LIMIT if limit is None else limit)
        return assemble_changes(self._connection, rows)

    def latest(self, query: ChangeQuery) -> list[Change]:
        above = self._last_before(query.since) if query.since is not None else 0
        below = self._last_before(query.until) + 1 if query.until is not None else _NO_CHANGE
        below = below if query.before is None else min(below, query.before)
        touching = as_json(self._touching(query.names)) if query.names is not None else None
        wanted = [None if each is None else as_json(each) for each in (query.actors, query.operations)]
        rows = run(self._connection, "latest_changes", above, below, *wanted, touching, query.limit)
        # Those that follow one another are read together.
        runs = [[row for _, row in group] for _, group in groupby(enumerate(rows), lambda pair: pair[0] + pair[1][0])]
        return [each for group in runs for each in reversed(assemble_changes(self._connection, group[::-1]))]

    def actors(self) -> list[str]:
        return [name for (name,) in run(self._connection, "actor_names")]

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        rows = run(self._connection, "authors_of", as_json(passages))
        return {(name, ordinal): Author(*author) for name, ordinal, *author in rows}

    def at(self, time: int, names: Collection[str] | None = None) -> Rows:
        found = run(self._connection, "change_at", time)
        if not found:
            return Rows()
        change: int = found[0][0]
        ((purged,),) = run(self._connection, "last_purge")
        if change < purged:
            raise BadInput("what was remembered at that time has been purged; ask for a later time")
        if names is None:
            return self._all_at(change)
        return self._named_at(change, names)

    def _last_before(self, time: int) -> int:
        """Return the last change before that time."""
        return int(run(self._connection, "last_change_before", time)[0][0])

    def _touching(self, names: Collection[str]) -> set[int]:
        """Return the changes that touched an entity of one of the names, under whatever name, or a note."""
        known = run(self._connection, "identities_named", as_json(names))
        identities = as_json({entity for entity, _ in known})
        rows = run(self._connection, "changes_of", identities, as_json({*names, *(name for _, name in known)}))
        return {change for row in rows for change in row if change is not None}

    def count_events(self, since: int = 0) -> EventCounts:
        last = run(self._connection, "last_change")
        before = run(self._connection, "last_row_of", since)
        ((creates, updates, deletes),) = run(self._connection, "count_events", since, before[0][0] if before else 0)
        return EventCounts(creates, updates, deletes, last[0][0] if last else 0)

    def mark(self, name: str) -> Mark | None:
        rows = run(self._connection, "mark_named", name)
        return Mark(*rows[0]) if rows else None

    def set_mark(self, name: str, mark: Mark) -> None:
        run(self._connection, "set_mark", name, mark.change, mark.at)

    def _all_at(self, change: int) -> Rows:
        cards = run(self._connection, "all_cards_until", change)
        observations = run(self._connection, "all_observations_until", change)
        relations = unpack_relations(run(self._connection, "relations_at", change))
        notes = [unpack_note(row) for row in run(self._connection, "notes_at", change)]
        return Rows(tuple(self._entities_at(change, cards, observations)), (), tuple(relations), tuple(notes))

    def _named_at(self, change: int, names: Collection[str]) -> Rows:
        entities = as_json([row[0] for row in run(self._connection, "entities_called", as_json(names), change)])
        cards = run(self._connection, "cards_until", change, entities)
        observations = run(self._connection, "observations_until", change, entities)
        found = self._entities_at(change, cards, observations)
        touching = run(self._connection, "relations_of_at", change, as_json([each.name for each in found]))
        return Rows(tuple(found), (), tuple(unpack_relations(sort_rows(set(touching)))))

    def _entities_at(self, change: int, cards: list[Row], observations: list[Row]) -> list[Entity]:
        """Return the entities that lived after the change, from all their versions until then."""
        lived = [row[2:12] for row in cards if _lives(row, change)]
        then = sort_rows([row[2:] for row in observations if _lives(row, change)])
        entities = assemble(sort_rows(lived), then)
        touched = self._touched_before(change, cards, observations)
        order = sorted([row[0] for row in lived])
        return [
            replace(each, updated_at=touched[number]) if number in touched else each
            for number, each in zip(order, entities, strict=True)
        ]

    def _touched_before(self, change: int, cards: list[Row], observations: list[Row]) -> dict[int, int]:
        """Return when entities were last updated until a change, for those that were touched again after it."""
        later = {row[2] for row in cards if row[12] > change}
        return last_updates(self._connection, change, [row for row in cards if row[2] in later], observations)


def last_updates(connection: apsw.Connection, change: int, cards: list[Row], observations: list[Row]) -> dict[int, int]:
    """Return when the entities of these cards were last updated until a change, by the versions until then."""
    last: defaultdict[int, int] = defaultdict(int)
    for since, _, entity, *_ in cards:
        last[entity] = max(last[entity], since)
    for since, until, entity, *_ in observations:
        if entity in last:
            last[entity] = max(last[entity], until if until is not None and until <= change else since)
    times: dict[int, int] = dict(run(connection, "change_times", as_json(set(last.values()))))
    found = {entity: (number, times[number]) for entity, number in last.items()}
    for number, at, entity in run(connection, "updates_until", change, as_json(last)):
        if number >= found[entity][0]:
            found[entity] = (number, at)
    return {entity: at for entity, (_, at) in found.items()}


class SqliteChangeFeed:
    """The changes that other servers make to one file."""

    def __init__(self, server: str, since: int, read: Callable[[int, int], list[tuple[str, Change]]]) -> None:
        self._server = server
        self._since = since
        self._read = read

    def read(self) -> list[Change]:
        found = self._read(self._since, MAX_FEED_CHANGES)
        if found:
            self._since = found[-1][1].id
        return [change for server, change in found if server != self._server]


def changes_by_server(connection: apsw.Connection, since: int, limit: int) -> list[tuple[str, Change]]:
    """Return the changes after an id, each with the server that made it."""
    rows = run(connection, "changes_since", since, limit)
    return list(zip([row[5] for row in rows], assemble_changes(connection, rows), strict=True))


def assemble_changes(connection: apsw.Connection, rows: list[Row]) -> list[Change]:
    """Return the changes of consecutive rows of the change table, with the rows each created and ended."""
    if not rows:
        return []
    first, last = rows[0][0], rows[-1][0]
    before = run(connection, "last_row_of", first - 1)
    span = ((before[0][0] if before else 0) + 1, rows[-1][4], first, last)
    versions = _Versions(connection, span)
    return [
        Change(operation, actor, at, versions.ended_by(number), versions.created_by(number), number)
        for number, at, actor, operation, *_ in rows
    ]


T = TypeVar("T")


class _Version(Struct, Generic[T], frozen=True):
    """A row: the changes that created and ended it, the entity it belongs to, and its value."""

    since: int
    until: int | None
    entity: int
    value: T


class _Side(Struct, frozen=True):
    """What a change created, or what it ended: the rows on this side, and the entities with a card on the other."""

    cards: list[_Version[Entity]]
    observations: list[_Version[Observation]]
    relations: list[_Version[Relation]]
    notes: list[_Version[Note]]
    kept: set[int]


class _Versions:
    """The rows that a span of changes created or ended."""

    def __init__(self, connection: apsw.Connection, span: tuple[int, int, int, int]) -> None:
        cards = run(connection, "cards_changed", *span)
        self._cards = [_Version(row[1], row[2], row[3], unpack_entity(row[3:], ())) for row in cards]
        observations = run(connection, "observations_changed", *span)
        self._observations = [_Version(row[1], row[2], row[3], unpack_observation(*row[4:])) for row in observations]
        relations = run(connection, "relations_changed", *span)
        self._relations = [_Version(row[1], row[2], 0, Relation(*row[3:])) for row in relations]
        notes = run(connection, "notes_changed", *span)
        self._notes = [_Version(row[1], row[2], 0, unpack_note((row[0], *row[3:]))) for row in notes]
        self._names: defaultdict[int, list[Row]] = defaultdict(list)
        entities = {each.entity for each in self._observations}
        for entity, *version in run(connection, "card_versions", as_json(entities)):
            self._names[entity].append(tuple(version))

    def created_by(self, change: int) -> Rows:
        """Return what is new, or as it is, after the change."""
        kept = {each.entity for each in self._cards if each.until == change}
        return self._rows(
            change,
            _Side(
                [each for each in self._cards if each.since == change],
                [each for each in self._observations if each.since == change],
                [each for each in self._relations if each.since == change],
                [each for each in self._notes if each.since == change],
                kept,
            ),
        )

    def ended_by(self, change: int) -> Rows:
        """Return what is gone, or as it was, before the change."""
        kept = {each.entity for each in self._cards if each.since == change}
        return self._rows(
            change,
            _Side(
                [each for each in self._cards if each.until == change],
                [each for each in self._observations if each.until == change],
                [each for each in self._relations if each.until == change],
                [each for each in self._notes if each.until == change],
                kept,
            ),
        )

    def _rows(self, change: int, side: _Side) -> Rows:
        """Return one side of a change as values. An entity on this side only carries its observations."""
        whole = {each.entity for each in side.cards} - side.kept
        of: defaultdict[int, list[Observation]] = defaultdict(list)
        for each in side.observations:
            of[each.entity].append(each.value)
        for group in of.values():
            group.sort(key=lambda observation: observation.ordinal)
        return Rows(
            tuple([_with(each.value, of[each.entity] if each.entity in whole else []) for each in side.cards]),
            tuple(
                [
                    ObservationSet(self._name(entity, change), tuple(group))
                    for entity, group in of.items()
                    if entity not in whole and group
                ]
            ),
            tuple([each.value for each in side.relations]),
            tuple([each.value for each in side.notes]),
        )

    def _name(self, entity: int, change: int) -> str:
        """Return the name that the entity had when the change was made; empty if that was purged."""
        for name, since, until in self._names[entity]:
            if since <= change and (until is None or until >= change):
                return str(name)
        return ""


def _with(entity: Entity, observations: list[Observation]) -> Entity:
    return replace(entity, observations=tuple(observations))


def _lives(row: Row, change: int) -> bool:
    return row[1] is None or row[1] > change
