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
    Erasure,
    Fact,
    FactSet,
    Mark,
    Note,
    PassageKey,
    PastFact,
    Relation,
    RowCounts,
    Rows,
    SupersededFact,
    Traces,
    TrashItem,
)
from polymnia.model.changes import FactRead
from polymnia.stores.clock import is_ahead, now_us
from polymnia.stores.contract.reads import check_cancelled
from polymnia.stores.versioned.port import DatabasePort, Row
from polymnia.stores.versioned.rows import (
    ChangeColumns,
    VersionedCard,
    VersionedFact,
    assemble,
    card_versions,
    fact_versions,
    unpack_entity,
    unpack_fact,
    unpack_note,
    unpack_relations,
)

# How many past versions of an entity's facts are read.
MAX_ENDED_FACTS = 1_000


class HistoryReader:
    """Changes in commit order, and the state at any time."""

    def __init__(self, port: DatabasePort) -> None:
        self._port = port

    def changes(self, query: ChangeQuery) -> list[Change]:
        # The versions of changes without a gap between their ids are read together.
        """Return the changes that the query selects, newest first.

        Purged rows are missing from them.
        """
        runs: list[list[ChangeColumns]] = []
        for row in self._select(query):
            if runs and runs[-1][-1].id == row.id + 1:
                runs[-1].append(row)
            else:
                runs.append([row])
        changes: list[Change] = []
        for newest_first in runs:
            changes += reversed(assemble_changes(self._port, newest_first[::-1]))
        return changes

    def change_heads(self, query: ChangeQuery) -> list[Change]:
        """Return the changes that the query selects, newest first, without their rows.

        The change of an import may have thousands of rows.
        """
        rows = self._select(query)
        return [Change(row.operation, row.actor, row.at, id=row.id) for row in rows]

    def change_sizes(self, changes: Collection[int]) -> dict[int, ChangeSize]:
        """Return how many rows these changes ended and created, without reading them."""
        sizes = {}
        for number, *counts in self._port.run("change_sizes", changes):
            sizes[number] = ChangeSize(RowCounts(*counts[:4]), RowCounts(*counts[4:]))
        return sizes

    def all_names(self, names: Collection[str]) -> set[str]:
        """Return these names and every other name of the entities that have or had one of them."""
        known = self._port.run("identities_named", names)
        return {*names, *(name for _, name in known)}

    def _select(self, query: ChangeQuery) -> list[ChangeColumns]:
        """Return the changes that the query selects, newest first."""
        above = max(query.after, 0)  # below it, a key would be that of another workspace
        if query.since is not None:
            above = max(above, self._last_before(query.since))
        # Above the id of every change.
        below = 1 << 62
        if query.until is not None:
            below = self._last_before(query.until) + 1
        if query.before is not None:
            below = min(below, query.before)
        ids = None if query.ids is None else set(query.ids)
        if query.names is not None:
            # A row has the change that created something and the one that ended it, if any.
            touching: set[int] = set()
            for row in self._port.run("changes_of", query.names):
                touching.update(change for change in row if change is not None)
            ids = touching if ids is None else ids & touching
        bounds = (above, below, query.actors, query.operations, query.limit)
        if ids is None:
            rows = self._port.run("latest_changes", *bounds)
        else:
            rows = self._port.run("changes_among", *bounds, ids)
        return [ChangeColumns(*row) for row in rows]

    def actors(self) -> list[str]:
        """Return everyone who made a change, in alphabetical order."""
        return [name for (name,) in self._port.run("actor_names")]

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        """Return who first wrote the living passages with these keys.

        That is the author of a card's entity, or of a fact's or note's text. If the first
        version of a text was purged, it is the author of the oldest version that is left.
        """
        rows = self._port.run_keyed("authors_of", passages)
        return {(name, ordinal): Author(*author) for name, ordinal, *author in rows}

    def ended_facts(self, name: str) -> list[SupersededFact]:
        """Return past versions of the facts of an entity that do not live, the oldest first.

        If there are very many, they are those of the last facts.
        """
        identities = self._port.run("entity_ids", [name])
        if not identities:
            return []
        _, entity, _ = identities[0]
        facts = []
        for *columns, successor, change, at, actor, operation in reversed(
            self._port.run("ended_observations", entity, now_us(), MAX_ENDED_FACTS)
        ):
            fact = unpack_fact(*columns)
            facts.append(SupersededFact(fact, successor or 0, change, at, actor, operation))
        return facts

    def state_at(self, time: int, names: Collection[str] | None = None) -> Rows:
        """Return everything that lived at that time, or the named entities and their relations.

        Raise BadInput for a time whose rows were purged.
        """
        (((change,),), last) = self._port.run_together(("change_at", time), ("last_change",))
        # Changes whose time is ahead of the clock have been made all the same.
        # A question about this moment arrives a little later.
        if last and is_ahead(last[0][1]) and time >= now_us() - 2_000_000:
            change = last[0][0]
        return self._state_after(change, names)

    def state_before(self, change: int, names: Collection[str] | None = None) -> Rows:
        """Return the same for the moment before a change. Raise BadInput if that was purged."""
        return self._state_after(change - 1, names)

    def latest_time(self) -> int:
        """Return the latest time that a change has, which may be ahead of the clock; 0 for none."""
        return int(self._port.run("latest_time")[0][0])

    def _state_after(self, change: int, names: Collection[str] | None) -> Rows:
        if not change:
            return Rows()
        ((purged,),) = self._port.run("last_purge")
        if change < purged:
            raise BadInput("what was remembered at that time has been purged; ask for a later time")
        if names is None:
            cards = card_versions(self._port.run("all_cards_until", change))
            facts = fact_versions(self._port.run("all_observations_until", change))
            entities = self._entities_at(change, cards, facts)
            relations = unpack_relations(self._port.run("relations_at", change))
            notes = [unpack_note(self._port, row) for row in self._port.run("notes_at", change)]
            return Rows(entities=tuple(entities), relations=tuple(relations), notes=tuple(notes))
        ids = [number for (number,) in self._port.run("entities_called", names, change)]
        cards = card_versions(self._port.run("cards_until", change, ids))
        facts = fact_versions(self._port.run("observations_until", change, ids))
        entities = self._entities_at(change, cards, facts)
        names_then = [entity.name for entity in entities]
        # A relation between two of the entities is found from both ends.
        touching = set(self._port.run("relations_of_at", change, names_then))
        relations = unpack_relations(self._port.sort(touching))
        return Rows(entities=tuple(entities), relations=tuple(relations))

    def _last_before(self, time: int) -> int:
        """Return the last change before that time."""
        return int(self._port.run("last_change_before", time)[0][0])

    def trash(self) -> list[TrashItem]:
        """Return what was deleted and can be restored.

        Entities come first, then single facts, relations and notes, each the latest first.
        """
        from polymnia.stores.versioned.trash import deleted_items

        return deleted_items(self._port)

    def past_facts(self, name: str) -> list[PastFact]:
        """Return every version of every fact of an entity.

        If no living entity has the name, of those that had it when they were deleted.
        """
        from polymnia.stores.versioned.trash import past_facts

        return past_facts(self._port, name)

    def find_moved(self, moved: Collection[tuple[str, int]]) -> Erasure:
        """Return facts with these texts and times that a move took to another workspace.

        Entities that moved as a whole are included, those that live are not.
        """
        from polymnia.stores.versioned.trash import find_moved

        return find_moved(self._port, moved)

    def find_traces(self, erasure: Erasure) -> Traces:
        """Return the rows that an erasure replaces."""
        from polymnia.stores.versioned.trash import find_traces

        return find_traces(self._port, erasure)

    def mark(self, name: str) -> Mark | None:
        """Return the point of history that was last marked with that name."""
        rows = self._port.run("mark_named", name)
        return Mark(*rows[0]) if rows else None

    def reads(self, since: int) -> list[FactRead]:
        """Return who read which facts since a time, newest first."""
        return [FactRead(*row) for row in self._port.run("reads_since", since)]

    def set_mark(self, name: str, mark: Mark) -> None:
        """Mark a point of history, in place of the last one with that name.

        This needs a Writer and is not a change.
        """
        self._port.write("set_mark", name, mark.change, mark.at)

    def _entities_at(
        self, change: int, cards: list[VersionedCard], facts: list[VersionedFact]
    ) -> list[Entity]:
        """Return the entities that lived after the change, from all their versions until then."""
        living_cards = [card.row for card in cards if _lives(card, change)]
        living_facts = [fact.row for fact in facts if _lives(fact, change)]
        entities = assemble(
            self._port, self._port.sort(living_cards), self._port.sort(living_facts)
        )
        # Entities have the time of their last update, which may have been after the change.
        touched_later = {card.row.id for card in cards if card.touched > change}
        their_cards = [card for card in cards if card.row.id in touched_later]
        updates = last_updates(self._port, change, their_cards, facts)
        for place, number in enumerate(sorted([card.id for card in living_cards])):
            if number in updates:
                entities[place] = replace(entities[place], updated_at=updates[number])
        return entities


def last_updates(
    port: DatabasePort, change: int, cards: Iterable[VersionedCard], facts: Iterable[VersionedFact]
) -> dict[int, int]:
    """Return when the entities of these cards were last updated until a change.

    The versions until then tell, and the updates that a purge recorded.
    """
    last: defaultdict[int, int] = defaultdict(int)
    for card in cards:
        last[card.row.id] = max(last[card.row.id], card.since)
    for fact in facts:
        entity = fact.row.entity
        if entity not in last:
            continue
        has_ended = fact.until is not None and fact.until <= change
        last[entity] = max(last[entity], fact.until or 0 if has_ended else fact.since)
    times: dict[int, int] = dict(port.run("change_times", set(last.values())))
    updates = {entity: (number, times[number]) for entity, number in last.items()}
    for number, at, entity in port.run("updates_until", change, last):
        if number >= updates[entity][0]:
            updates[entity] = (number, at)
    return {entity: at for entity, (_, at) in updates.items()}


def changes_by_server(port: DatabasePort, since: int, limit: int) -> list[tuple[str, Change]]:
    """Return the changes after an id, each with the server that made it."""
    rows = [ChangeColumns(*row) for row in port.run("changes_since", since, limit)]
    servers = [row.server for row in rows]
    return list(zip(servers, assemble_changes(port, rows), strict=True))


def assemble_changes(port: DatabasePort, changes: list[ChangeColumns]) -> list[Change]:
    """Return consecutive changes, oldest first, with the rows they touched."""
    if not changes:
        return []
    versions = _Versions(port, (changes[0].id, changes[-1].id))
    assembled = []
    for row in changes:
        before, after = versions.ended_by(row.id), versions.created_by(row.id)
        assembled.append(Change(row.operation, row.actor, row.at, before, after, row.id))
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

    def __init__(self, port: DatabasePort, span: tuple[int, int]) -> None:
        card_rows, fact_rows, relation_rows, note_rows, name_rows = port.run_together(
            ("cards_changed", *span),
            ("observations_changed", *span),
            ("relations_changed", *span),
            ("notes_changed", *span),
            ("names_changed", *span),
        )
        check_cancelled()
        cards = []
        for _, since, until, *columns in card_rows:
            entity = unpack_entity(port, tuple(columns))
            cards.append(_Version(since, until, columns[0], entity))
        self._cards = _ByChange(cards)
        check_cancelled()
        facts = []
        for _, since, until, entity_row, *columns in fact_rows:
            facts.append(_Version(since, until, entity_row, unpack_fact(*columns)))
        self._facts = _ByChange(facts)
        check_cancelled()
        relations = []
        for _, since, until, *columns in relation_rows:
            relations.append(_Version(since, until, 0, Relation(*columns)))
        self._relations = _ByChange(relations)
        notes = []
        for number, since, until, *columns in note_rows:
            notes.append(_Version(since, until, 0, unpack_note(port, (number, *columns))))
        self._notes = _ByChange(notes)
        check_cancelled()
        self._names: defaultdict[int, list[Row]] = defaultdict(list)
        for number, *version in name_rows:
            self._names[number].append(tuple(version))

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


def _lives(version: VersionedCard | VersionedFact, change: int) -> bool:
    return version.until is None or version.until > change
