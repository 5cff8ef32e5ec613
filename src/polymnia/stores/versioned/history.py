"""History of a store whose rows are versions: what a change touched, and what lived at a time.

Every such store has the named queries that are run here, with the same parameters and columns.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from polymnia.errors import BadInput
from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    ChangeSize,
    Entity,
    Fact,
    FactSet,
    Mark,
    Note,
    PassageKey,
    Relation,
    RowCounts,
    Rows,
)
from polymnia.stores.clock import is_ahead, now_us
from polymnia.stores.contract.limits import check_cancelled
from polymnia.stores.versioned.port import DatabasePort, Row
from polymnia.stores.versioned.rows import (
    ENTITY_COLUMNS,
    assemble,
    unpack_entity,
    unpack_fact,
    unpack_note,
    unpack_relations,
)

# Above the id of every change.
_NO_CHANGE = 1 << 62
# The column of a card that is read with its versions: the last change to the entity.
_TOUCHED = 2 + ENTITY_COLUMNS
# A question about this moment arrives a little later.
_PRESENT_US = 2_000_000


class VersionHistory:
    """The history in versioned rows."""

    def __init__(self, port: DatabasePort) -> None:
        self._port = port

    def changes(self, query: ChangeQuery) -> list[Change]:
        changes: list[Change] = []
        for rows in _consecutive(self._select(query)):
            oldest_first = assemble_changes(self._port, rows[::-1])
            changes += reversed(oldest_first)
        return changes

    def change_heads(self, query: ChangeQuery) -> list[Change]:
        heads = []
        for number, at, actor, operation, *_ in self._select(query):
            heads.append(Change(operation, actor, at, id=number))
        return heads

    def change_sizes(self, changes: Collection[int]) -> dict[int, ChangeSize]:
        sizes = {}
        for number, *counts in self._port.run("change_sizes", changes):
            sizes[number] = ChangeSize(RowCounts(*counts[:4]), RowCounts(*counts[4:]))
        return sizes

    def all_names(self, names: Collection[str]) -> set[str]:
        known = self._port.run("identities_named", names)
        return {*names, *(name for _, name in known)}

    def _select(self, query: ChangeQuery) -> list[Row]:
        """Return rows of the change table, newest first."""
        above = max(query.after, 0)  # below it, a key would be that of another workspace
        if query.since is not None:
            above = max(above, self._last_before(query.since))
        below = _NO_CHANGE
        if query.until is not None:
            below = self._last_before(query.until) + 1
        if query.before is not None:
            below = min(below, query.before)
        ids = None if query.ids is None else set(query.ids)
        if query.names is not None:
            touching = self._touching(query.names)
            ids = touching if ids is None else ids & touching
        return self._port.run(
            "latest_changes", above, below, query.actors, query.operations, ids, query.limit
        )

    def actors(self) -> list[str]:
        return [name for (name,) in self._port.run("actor_names")]

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        rows = self._port.run_keyed("authors_of", passages)
        return {(name, ordinal): Author(*author) for name, ordinal, *author in rows}

    def state_at(self, time: int, names: Collection[str] | None = None) -> Rows:
        (((change,),), last) = self._port.run_together(("change_at", time), ("last_change",))
        # Changes whose time is ahead of the clock have been made all the same.
        if last and is_ahead(last[0][1]) and time >= now_us() - _PRESENT_US:
            change = last[0][0]
        return self._state_after(change, names)

    def state_before(self, change: int, names: Collection[str] | None = None) -> Rows:
        return self._state_after(change - 1, names)

    def latest_time(self) -> int:
        return int(self._port.run("latest_time")[0][0])

    def _state_after(self, change: int, names: Collection[str] | None) -> Rows:
        if not change:
            return Rows()
        ((purged,),) = self._port.run("last_purge")
        if change < purged:
            raise BadInput("what was remembered at that time has been purged; ask for a later time")
        if names is None:
            return self._all_at(change)
        return self._named_at(change, names)

    def _last_before(self, time: int) -> int:
        """Return the last change before that time."""
        return int(self._port.run("last_change_before", time)[0][0])

    def _touching(self, names: Collection[str]) -> set[int]:
        """Return the changes that touched a note or an entity that has or had one of the names."""
        known = self._port.run("identities_named", names)
        identities = {entity for entity, _ in known}
        all_names = {*names, *(name for _, name in known)}
        changes: set[int] = set()
        # A row has the change that created something and the one that ended it, if any.
        for row in self._port.run("changes_of", identities, all_names):
            changes.update(change for change in row if change is not None)
        return changes

    def mark(self, name: str) -> Mark | None:
        rows = self._port.run("mark_named", name)
        return Mark(*rows[0]) if rows else None

    def set_mark(self, name: str, mark: Mark) -> None:
        self._port.write("set_mark", name, mark.change, mark.at)

    def _all_at(self, change: int) -> Rows:
        cards = self._port.run("all_cards_until", change)
        facts = self._port.run("all_observations_until", change)
        entities = self._entities_at(change, cards, facts)
        relations = unpack_relations(self._port.run("relations_at", change))
        notes = [unpack_note(self._port, row) for row in self._port.run("notes_at", change)]
        return Rows(entities=tuple(entities), relations=tuple(relations), notes=tuple(notes))

    def _named_at(self, change: int, names: Collection[str]) -> Rows:
        ids = [row[0] for row in self._port.run("entities_called", names, change)]
        cards = self._port.run("cards_until", change, ids)
        facts = self._port.run("observations_until", change, ids)
        entities = self._entities_at(change, cards, facts)
        names_then = [entity.name for entity in entities]
        # A relation between two of the entities is found from both ends.
        touching = set(self._port.run("relations_of_at", change, names_then))
        relations = unpack_relations(self._port.sort(touching))
        return Rows(entities=tuple(entities), relations=tuple(relations))

    def _entities_at(self, change: int, cards: list[Row], facts: list[Row]) -> list[Entity]:
        """Return the entities that lived after the change, from all their versions until then."""
        living_cards = [row[2:_TOUCHED] for row in cards if _lives(row, change)]
        living_facts = [row[2:] for row in facts if _lives(row, change)]
        entities = assemble(
            self._port, self._port.sort(living_cards), self._port.sort(living_facts)
        )
        ids = sorted([row[0] for row in living_cards])
        # Entities have the time of their last update, which may have been after the change.
        touched = self._touched_before(change, cards, facts)
        for place, number in enumerate(ids):
            if number in touched:
                entities[place] = replace(entities[place], updated_at=touched[number])
        return entities

    def _touched_before(self, change: int, cards: list[Row], facts: list[Row]) -> dict[int, int]:
        """Return when entities were last updated until a change, if they were touched after it."""
        touched_later = {row[2] for row in cards if row[_TOUCHED] > change}
        their_cards = [row for row in cards if row[2] in touched_later]
        return last_updates(self._port, change, their_cards, facts)


def last_updates(
    port: DatabasePort, change: int, cards: list[Row], facts: list[Row]
) -> dict[int, int]:
    """Return when the entities of these cards were last updated until a change.

    The versions until then tell, and the updates that a purge recorded.
    """
    last: defaultdict[int, int] = defaultdict(int)
    for since, _, entity, *_ in cards:
        last[entity] = max(last[entity], since)
    for since, until, entity, *_ in facts:
        if entity not in last:
            continue
        has_ended = until is not None and until <= change
        last[entity] = max(last[entity], until if has_ended else since)
    times: dict[int, int] = dict(port.run("change_times", set(last.values())))
    updates = {entity: (number, times[number]) for entity, number in last.items()}
    for number, at, entity in port.run("updates_until", change, last):
        if number >= updates[entity][0]:
            updates[entity] = (number, at)
    return {entity: at for entity, (_, at) in updates.items()}


def changes_by_server(port: DatabasePort, since: int, limit: int) -> list[tuple[str, Change]]:
    """Return the changes after an id, each with the server that made it."""
    rows = port.run("changes_since", since, limit)
    servers = [row[5] for row in rows]
    return list(zip(servers, assemble_changes(port, rows), strict=True))


def _consecutive(rows: list[Row]) -> list[list[Row]]:
    """Divide rows of the change table, newest first, into runs without a gap between their ids.

    The versions of a run are read together.
    """
    runs: list[list[Row]] = []
    for row in rows:
        if runs and runs[-1][-1][0] == row[0] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def assemble_changes(port: DatabasePort, changes: list[Row]) -> list[Change]:
    """Return the changes of consecutive rows of the change table, with the rows they touched."""
    if not changes:
        return []
    first_change, last_change = changes[0][0], changes[-1][0]
    # Rows are numbered through, and a change knows the last row that it created.
    rows_before = port.run("last_row_of", first_change - 1)
    first_row = rows_before[0][0] + 1 if rows_before else 1
    last_row = changes[-1][4]
    versions = _Versions(port, (first_row, last_row, first_change, last_change))
    assembled = []
    for number, at, actor, operation, *_ in changes:
        before, after = versions.ended_by(number), versions.created_by(number)
        assembled.append(Change(operation, actor, at, before, after, number))
    return assembled


T = TypeVar("T")


class _Version(Struct, Generic[T], frozen=True):
    """A row: the changes that created and ended it, the entity it belongs to, and its value."""

    since: int
    until: int | None
    entity: int
    value: T


class _ByChange(Generic[T]):
    """Rows by the change that created them, and by the one that ended them."""

    def __init__(self, versions: Iterable[_Version[T]]) -> None:
        self.created: defaultdict[int, list[_Version[T]]] = defaultdict(list)
        self.ended: defaultdict[int, list[_Version[T]]] = defaultdict(list)
        for version in versions:
            self.created[version.since].append(version)
            if version.until is not None:
                self.ended[version.until].append(version)


class _Side(Struct, frozen=True):
    """What a change created, or what it ended: its rows on one side, and the other side's cards."""

    cards: list[_Version[Entity]]
    facts: list[_Version[Fact]]
    relations: list[_Version[Relation]]
    notes: list[_Version[Note]]
    other_cards: list[_Version[Entity]]


class _Versions:
    """The rows that a span of changes created or ended."""

    def __init__(self, port: DatabasePort, span: tuple[int, int, int, int]) -> None:
        cards = port.run("cards_changed", *span)
        self._cards = _ByChange(
            [_Version(row[1], row[2], row[3], unpack_entity(port, row[3:])) for row in cards]
        )
        check_cancelled()
        facts = port.run("observations_changed", *span)
        check_cancelled()
        self._facts = _ByChange(
            [_Version(row[1], row[2], row[3], unpack_fact(*row[4:])) for row in facts]
        )
        check_cancelled()
        relations = port.run("relations_changed", *span)
        self._relations = _ByChange(
            [_Version(row[1], row[2], 0, Relation(*row[3:])) for row in relations]
        )
        notes = port.run("notes_changed", *span)
        self._notes = _ByChange(
            [_Version(row[1], row[2], 0, unpack_note(port, (row[0], *row[3:]))) for row in notes]
        )
        check_cancelled()
        self._names: defaultdict[int, list[Row]] = defaultdict(list)
        for entity, *version in port.run("card_versions", {row[3] for row in facts}):
            self._names[entity].append(tuple(version))

    def created_by(self, change: int) -> Rows:
        """Return the rows after the change: those that it created."""
        side = _Side(
            self._cards.created[change],
            self._facts.created[change],
            self._relations.created[change],
            self._notes.created[change],
            self._cards.ended[change],
        )
        return self._values(change, side)

    def ended_by(self, change: int) -> Rows:
        """Return the rows before the change: those that it ended."""
        side = _Side(
            self._cards.ended[change],
            self._facts.ended[change],
            self._relations.ended[change],
            self._notes.ended[change],
            self._cards.created[change],
        )
        return self._values(change, side)

    def _values(self, change: int, side: _Side) -> Rows:
        """Return one side of a change as values.

        An entity on this side only carries its facts.
        """
        check_cancelled()
        on_this_side = {card.entity for card in side.cards}
        whole = on_this_side - {card.entity for card in side.other_cards}
        facts: defaultdict[int, list[Fact]] = defaultdict(list)
        for version in side.facts:
            facts[version.entity].append(version.value)
        for group in facts.values():
            group.sort(key=lambda fact: fact.ordinal)
        entities = []
        for card in side.cards:
            # What is taken out here belongs to a whole entity; the rest gets sets of its own.
            own = facts.pop(card.entity, []) if card.entity in whole else []
            entities.append(replace(card.value, facts=tuple(own)))
        sets = []
        for entity, group in facts.items():
            sets.append(FactSet(self._name(entity, change), tuple(group)))
        relations = [relation.value for relation in side.relations]
        notes = [note.value for note in side.notes]
        return Rows(tuple(entities), tuple(sets), tuple(relations), tuple(notes))

    def _name(self, entity: int, change: int) -> str:
        """Return the name that the entity had at the time of the change; empty if it was purged."""
        for name, since, until in self._names[entity]:
            if since <= change and (until is None or until >= change):
                return str(name)
        return ""


def _lives(row: Row, change: int) -> bool:
    return row[1] is None or row[1] > change
