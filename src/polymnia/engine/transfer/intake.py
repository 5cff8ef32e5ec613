"""Add entities, relations and notes from elsewhere to a memory, one change per batch.

A known entity keeps what it has and gains what it lacks: facts, tags, a summary. Of two
notes with the same key the later one stays. So taking the same items in twice changes nothing, and
an interrupted import can be repeated. If an item contradicts the memory, that is a conflict: the
memory keeps its own value.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from polymnia.engine.memory import Memory, find_by_name
from polymnia.engine.notes import notes_of
from polymnia.model import (
    VAULT,
    Entity,
    Fact,
    FactSet,
    Note,
    Relation,
    RelationKey,
    Rows,
)
from polymnia.search.dates import stamped_time
from polymnia.stores.contract import Reader, find_note

Item = Entity | Relation | Note
# Conflicts that a receipt describes.
MAX_CONFLICTS = 50


class Tally(Struct):
    """How many items of a kind were read, are new, or added something to a known one."""

    read: int = 0
    new: int = 0
    merged: int = 0


class IntakeConflict(Struct, frozen=True):
    """An entity or note that an item contradicts: the stored value and the item's."""

    what: Literal["type", "summary", "note"]
    name: str
    known: str
    given: str


class IntakeReceipt(Struct):
    """What an intake did, or would do.

    `changes` are the ids of its changes, `at` is the time of the first one. `new_names` are the
    names of the first new entities. `new_ids` counts the entities that got another id, because
    theirs belongs to an entity with another name.
    """

    entities: Tally = field(default_factory=Tally)
    relations: Tally = field(default_factory=Tally)
    notes: Tally = field(default_factory=Tally)
    facts: int = 0
    new_names: list[str] = field(default_factory=list)
    new_ids: int = 0
    changes: list[int] = field(default_factory=list)
    at: int = 0
    conflict_count: int = 0
    conflicts: list[IntakeConflict] = field(default_factory=list)

    def add_conflict(self, conflict: IntakeConflict) -> None:
        """Count a conflict, and keep it if it is one of the first."""
        self.conflict_count += 1
        if len(self.conflicts) < MAX_CONFLICTS:
            self.conflicts.append(conflict)


def take_in(
    memory: Memory,
    items: Iterable[Item],
    *,
    by: str,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> IntakeReceipt:
    """Add the items to the memory. Report to `progress` how many are done.

    A dry run changes nothing and returns what would happen. If an item contradicts the memory, the
    memory stays as it is. Raise NotSupported for notes that the memory cannot hold.
    """
    intake = _Intake(memory, by, dry_run)
    items_done = 0
    for batch in _split_batches(items, memory.store.best_batch):
        intake.add(batch)
        items_done += len(batch)
        if progress is not None:
            progress(items_done)
    return intake.receipt


class _Intake:
    """One intake: its receipt so far and, in a dry run, what the memory would contain."""

    def __init__(self, memory: Memory, by: str, dry_run: bool) -> None:
        self.receipt = IntakeReceipt()
        self._memory = memory
        self._by = by
        self._dry_run = dry_run
        self._planned: dict[str, Entity] = {}
        self._planned_relations: set[RelationKey] = set()
        self._planned_notes: dict[str, Note] = {}
        self._planned_ids: set[str] = set()

    def add(self, batch: Sequence[Item]) -> None:
        """Take in one batch as one change."""
        if self._dry_run:
            with self._memory.reading() as read:
                self._plan(read, batch, 0)
            return
        with self._memory.writing("import", self._by) as transaction:
            before, after = self._plan(transaction.read, batch, transaction.time())
            transaction.apply(before=before, after=after)
        if transaction.change is not None:
            self.receipt.changes.append(transaction.change.id)
            self.receipt.at = self.receipt.at or transaction.time()

    def _plan(self, read: Reader, batch: Sequence[Item], at: int) -> tuple[Rows, Rows]:
        """Return the rows that the batch ends and creates, and count them."""
        entities = [item for item in batch if isinstance(item, Entity)]
        relations = [item for item in batch if isinstance(item, Relation)]
        notes = [item for item in batch if isinstance(item, Note)]
        old_entities, new_entities, added = self._plan_entities(read, entities, at)
        given: dict[RelationKey, Relation] = {}
        for relation in relations:
            given.setdefault(relation.key, relation)
        present = read.find_relations(given).keys() | self._planned_relations
        new = []
        for key, relation in given.items():
            if key not in present:
                new.append(replace(relation, created_at=relation.created_at or at))
        self.receipt.relations.read += len(relations)
        self.receipt.relations.new += len(new)
        if self._dry_run:
            self._planned_relations.update(relation.key for relation in new)
        old_notes, new_notes = self._plan_notes(read, notes, at)
        before = Rows(entities=tuple(old_entities), notes=tuple(old_notes))
        after = Rows(tuple(new_entities), tuple(added), tuple(new), tuple(new_notes))
        return before, after

    def _plan_entities(
        self, read: Reader, entities: Sequence[Entity], at: int
    ) -> tuple[list[Entity], list[Entity], list[FactSet]]:
        """Return the cards to end and to create, and the facts that known entities gain."""
        receipt = self.receipt
        given: dict[str, Entity] = {}
        for entity in entities:  # a name that comes twice is one entity with what both have
            first = given.setdefault(entity.name, entity)
            if first is not entity:
                missing = _missing_facts(first, entity, 0)
                given[entity.name] = _with_facts(_merge_card(first, entity, 0), missing)
        known = find_by_name(read, list(given))
        known |= {name: self._planned[name] for name in given if name in self._planned}
        new = [_fill_entity(entity, at) for entity in self._with_own_ids(read, given, known)]
        old_cards, new_cards, sets = [], [], []
        for name, entity in known.items():
            other = given[name]
            if other.type != entity.type:
                receipt.add_conflict(IntakeConflict("type", name, entity.type, other.type))
            if other.summary and entity.summary and other.summary != entity.summary:
                conflict = IntakeConflict("summary", name, entity.summary, other.summary)
                receipt.add_conflict(conflict)
            changed = _merge_card(entity, other, at)
            added = _missing_facts(entity, other, at)
            if changed != entity:
                old_cards.append(entity)
                new_cards.append(changed)
            if added:
                sets.append(FactSet(name, added))
            receipt.entities.merged += changed != entity or bool(added)
            receipt.facts += len(added)
            if self._dry_run:
                self._planned[name] = _with_facts(changed, added)
        for entity in new:
            receipt.facts += len(entity.facts)
            # How many new entities a receipt names.
            if len(receipt.new_names) < 10:
                receipt.new_names.append(entity.name)
            if self._dry_run:
                self._planned[entity.name] = entity
        receipt.entities.read += len(entities)
        receipt.entities.new += len(new)
        return old_cards, new + new_cards, sets

    def _with_own_ids(
        self, read: Reader, given: dict[str, Entity], known: Collection[str]
    ) -> list[Entity]:
        """Return the entities that are not known, without ids that belong to others."""
        new = [entity for name, entity in given.items() if name not in known]
        counts = Counter(entity.id for entity in new if entity.id)
        if not counts:
            return new
        repeated = {uid for uid, count in counts.items() if count > 1}
        known_ids = {entity.id for entity in read.outlines(ids=counts)}
        taken = known_ids | self._planned_ids | repeated
        if self._dry_run:
            self._planned_ids |= counts.keys() - taken
        for place, entity in enumerate(new):
            if entity.id in taken:
                new[place] = replace(entity, id="")
                self.receipt.new_ids += 1
        return new

    def _plan_notes(
        self, read: Reader, notes: Sequence[Note], at: int
    ) -> tuple[list[Note], list[Note]]:
        """Return the notes to end and to create."""
        if not notes:
            return [], []
        vault = notes_of(self._memory, read)
        tally = self.receipt.notes
        older: list[Note] = []
        newer: list[Note] = []
        latest: dict[str, Note] = {}
        for note in notes:
            first = latest.setdefault(note.key, note)
            if note.updated_at > first.updated_at:
                latest[note.key] = note
        for key, note in latest.items():
            known = self._planned_notes.get(key) or find_note(vault, VAULT, key)
            if known is None:
                newer.append(_fill_times(note, at))
                tally.new += 1
                continue
            if note.updated_at > known.updated_at:
                older.append(known)
                newer.append(_fill_times(note, known.created_at))
                tally.merged += 1
            elif note.content != known.content:
                conflict = IntakeConflict("note", key, known.content, note.content)
                self.receipt.add_conflict(conflict)
        tally.read += len(notes)
        if self._dry_run:
            self._planned_notes |= {note.key: note for note in newer}
        return older, newer


def _split_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of about that many rows."""
    batch: list[Item] = []
    rows = 0
    for item in items:
        batch.append(item)
        rows += 1
        if isinstance(item, Entity):
            rows += len(item.facts)
        if rows >= size:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _merge_card(known: Entity, given: Entity, at: int) -> Entity:
    """Return the known entity with the other's tags and aliases, and what else it lacks."""
    changed = replace(
        known,
        tags=tuple(dict.fromkeys((*known.tags, *given.tags))),
        aliases=tuple(dict.fromkeys((*known.aliases, *given.aliases))),
        due=known.due or given.due,
        status=known.status or given.status,
        expires=known.expires or given.expires,
    )
    if given.summary and not known.summary:
        summary_at = given.summary_at or at
        changed = replace(changed, summary=given.summary, summary_at=summary_at)
    return changed if changed == known else replace(changed, updated_at=at or known.updated_at)


def _missing_facts(known: Entity, given: Entity, at: int) -> tuple[Fact, ...]:
    """Return what the known entity lacks, each once, with its next ordinals.

    Two turns of a conversation may have the same text: a text that is only known with other times
    counts as missing.
    """
    times: dict[str, set[int]] = {}
    for fact in known.facts:
        times.setdefault(fact.text, set()).add(fact.valid_at)
    added: list[Fact] = []
    for fact in given.facts:
        text = fact.text
        valid_at = fact.valid_at or stamped_time(text)
        present = times.setdefault(text, set())
        if present and (not valid_at or 0 in present or valid_at in present):
            continue
        present.add(valid_at)
        ordinal = known.next_ordinal + len(added)
        created_at = fact.created_at or at
        added.append(replace(fact, ordinal=ordinal, created_at=created_at, valid_at=valid_at))
    return tuple(added)


def _with_facts(entity: Entity, added: tuple[Fact, ...]) -> Entity:
    return replace(
        entity,
        facts=entity.facts + added,
        next_ordinal=entity.next_ordinal + len(added),
    )


def _fill_entity(entity: Entity, at: int) -> Entity:
    """Return the entity with an id and with that time where it has none."""
    facts = [replace(fact, created_at=fact.created_at or at) for fact in entity.facts]
    return replace(
        entity,
        id=entity.id or str(uuid4()),
        facts=tuple(facts),
        created_at=entity.created_at or at,
        updated_at=entity.updated_at or at,
        summary_at=(entity.summary_at or at) if entity.summary else 0,
    )


def _fill_times(note: Note, at: int) -> Note:
    """Return the note with that time where it has none."""
    created_at = note.created_at or at
    return replace(note, created_at=created_at, updated_at=note.updated_at or created_at)
