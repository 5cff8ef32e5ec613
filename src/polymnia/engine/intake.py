"""Add entities, relations and notes from elsewhere to a memory, one change per batch.

A known entity keeps what it has and gains what it lacks: observations, tags, a summary. Of two notes with the same key
the later one stays. So taking the same items in twice changes nothing, and an interrupted import can be repeated. If an
item contradicts the memory, that is a conflict: the memory keeps its own value unless the caller decides otherwise.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.engine.notes import notes_of
from polymnia.model import (
    VAULT,
    Entity,
    Note,
    Observation,
    ObservationSet,
    Relation,
    RelationKey,
    Rows,
)
from polymnia.search.dates import stamped_time
from polymnia.stores.contract import Reader

Item = Entity | Relation | Note
# Conflicts that a receipt describes.
MAX_CONFLICTS = 50
# How many new entities a receipt names.
MAX_NEW_NAMES = 10


class Tally(Struct):
    """How many items of a kind were read, how many of them are new, and how many added something to a known one."""

    read: int = 0
    new: int = 0
    merged: int = 0


class IntakeConflict(Struct, frozen=True):
    """An entity or note of which an item says something else: what differs, the known value and the item's."""

    what: Literal["type", "summary", "note"]
    name: str
    known: str
    given: str


class IntakeReceipt(Struct):
    """What an intake did, or would do. `changes` are the ids of its changes, `at` is the time of the first one.

    `new_names` are the names of the first new entities.

    `new_ids` counts the entities that got another id, because theirs belongs to an entity with another name. `restored`
    counts the changes that an empty store got with their own ids, times and actors.
    """

    entities: Tally
    relations: Tally
    notes: Tally
    observations: int = 0
    new_names: list[str] = []
    new_ids: int = 0
    restored: int = 0
    changes: list[int] = []
    at: int = 0
    conflict_count: int = 0
    conflicts: list[IntakeConflict] = []

    def add_conflicts(self, found: Iterable[IntakeConflict]) -> None:
        """Count the conflicts and keep the first ones."""
        for each in found:
            self.conflict_count += 1
            if len(self.conflicts) < MAX_CONFLICTS:
                self.conflicts.append(each)


def take_in(
    memory: Memory,
    items: Iterable[Item],
    *,
    by: str,
    dry_run: bool = False,
    replace_conflicts: bool = False,
    progress: Callable[[int], None] | None = None,
) -> IntakeReceipt:
    """Add the items to the memory. Report to `progress` how many are done. Raise NotSupported for notes it cannot hold.

    A dry run changes nothing and returns what would happen. If an item contradicts the memory, the memory stays as it
    is, unless `replace_conflicts` is given.
    """
    intake = _Intake(memory, by, dry_run, replace_conflicts)
    done = 0
    for batch in _batches(items, memory.store.best_batch):
        intake.add(batch)
        done += len(batch)
        if progress is not None:
            progress(done)
    return intake.receipt


class _Intake:
    """One intake: what was done so far and, in a dry run, what the memory would contain."""

    def __init__(self, memory: Memory, by: str, dry_run: bool, replace_conflicts: bool) -> None:
        self.receipt = IntakeReceipt(
            Tally(), Tally(), Tally(), changes=[], conflicts=[], new_names=[]
        )
        self._memory = memory
        self._by = by
        self._dry_run = dry_run
        self._replace_conflicts = replace_conflicts
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
            before, after = self._plan(transaction.read, batch, transaction.at)
            bring_ids = any(isinstance(each, Entity) and each.id for each in batch)
            transaction.apply(before=before, after=after, new_ids=not bring_ids)
        if transaction.change is not None:
            self.receipt.changes.append(transaction.change.id)
            self.receipt.at = self.receipt.at or transaction.at

    def _plan(self, read: Reader, batch: Sequence[Item], at: int) -> tuple[Rows, Rows]:
        """Return the rows that the batch ends and creates, and count them."""
        ended, created, added = self._plan_entities(
            read, [each for each in batch if isinstance(each, Entity)], at
        )
        relations = self._plan_relations(
            read, [each for each in batch if isinstance(each, Relation)], at
        )
        older, newer = self._plan_notes(
            read, [each for each in batch if isinstance(each, Note)], at
        )
        before = Rows(entities=tuple(ended), notes=tuple(older))
        return before, Rows(tuple(created), tuple(added), tuple(relations), tuple(newer))

    def _plan_entities(
        self, read: Reader, entities: Sequence[Entity], at: int
    ) -> tuple[list[Entity], list[Entity], list[ObservationSet]]:
        wanted = _by_name(entities)
        known = {each.name: each for each in read.find(wanted)} | {
            name: self._planned[name] for name in wanted if name in self._planned
        }
        new = [_fill_entity(each, at) for each in self._with_own_ids(read, wanted, known)]
        merge = _overwrite if self._replace_conflicts else _merge
        pairs = [(each, *merge(each, wanted[name], at)) for name, each in known.items()]
        self.receipt.add_conflicts(
            found for name, each in known.items() for found in _conflicts(each, wanted[name])
        )
        tally = self.receipt.entities
        tally.read += len(entities)
        tally.new += len(new)
        self.receipt.new_names += [
            each.name for each in new[: MAX_NEW_NAMES - len(self.receipt.new_names)]
        ]
        tally.merged += sum([changed != old or bool(more) for old, changed, more in pairs])
        self.receipt.observations += sum([len(each.observations) for each in new])
        self.receipt.observations += sum([len(more) for _, _, more in pairs])
        if self._dry_run:
            self._planned |= {each.name: each for each in new}
            self._planned |= {
                old.name: _with_observations(changed, more) for old, changed, more in pairs
            }
        replaced = [(old, changed) for old, changed, _ in pairs if changed != old]
        sets = [ObservationSet(old.name, more) for old, _, more in pairs if more]
        return [old for old, _ in replaced], new + [changed for _, changed in replaced], sets

    def _with_own_ids(
        self, read: Reader, wanted: dict[str, Entity], known: Collection[str]
    ) -> list[Entity]:
        """Return the entities that are not known, without ids that belong to others."""
        new = [each for name, each in wanted.items() if name not in known]
        ids = [each.id for each in new if each.id]
        if not ids:
            return new
        counts = Counter(ids)
        taken = {
            *read.names_of(counts),
            *self._planned_ids,
            *(each for each, count in counts.items() if count > 1),
        }
        self.receipt.new_ids += sum([each in taken for each in ids])
        if self._dry_run:
            self._planned_ids |= counts.keys() - taken
        return [replace(each, id="") if each.id in taken else each for each in new]

    def _plan_relations(
        self, read: Reader, relations: Sequence[Relation], at: int
    ) -> list[Relation]:
        wanted: dict[RelationKey, Relation] = {}
        for relation in relations:
            wanted.setdefault(relation.key, relation)
        linked = read.linked(wanted)
        new = [
            each
            for key, each in wanted.items()
            if key not in linked and key not in self._planned_relations
        ]
        self.receipt.relations.read += len(relations)
        self.receipt.relations.new += len(new)
        if self._dry_run:
            self._planned_relations |= {each.key for each in new}
        return [replace(each, created_at=each.created_at or at) for each in new]

    def _plan_notes(
        self, read: Reader, notes: Sequence[Note], at: int
    ) -> tuple[list[Note], list[Note]]:
        if not notes:
            return [], []
        vault, latest = notes_of(self._memory, read), _latest_by_key(notes)
        known = {key: self._planned_notes.get(key) or vault.find(VAULT, key) for key in latest}
        new = [_fill_times(note, at) for key, note in latest.items() if known[key] is None]
        pairs = [(old, note) for key, note in latest.items() if (old := known[key]) is not None]
        other = [(old, note) for old, note in pairs if note.content != old.content]
        kept = [(old, note) for old, note in other if note.updated_at <= old.updated_at]
        self.receipt.add_conflicts(
            IntakeConflict("note", old.key, old.content, note.content) for old, note in kept
        )
        older = [old for old, note in pairs if note.updated_at > old.updated_at]
        older += [old for old, _ in kept] if self._replace_conflicts else []
        newer = [_fill_times(latest[old.key], old.created_at) for old in older]
        tally = self.receipt.notes
        tally.read, tally.new, tally.merged = (
            tally.read + len(notes),
            tally.new + len(new),
            tally.merged + len(newer),
        )
        if self._dry_run:
            self._planned_notes |= {each.key: each for each in (*new, *newer)}
        return older, new + newer


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of about that many rows."""
    batch: list[Item] = []
    rows = 0
    for item in items:
        batch.append(item)
        rows += 1 + (len(item.observations) if isinstance(item, Entity) else 0)
        if rows >= size:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _by_name(entities: Sequence[Entity]) -> dict[str, Entity]:
    """Return the entities by name. A name that comes twice is one entity with what both have."""
    wanted: dict[str, Entity] = {}
    for entity in entities:
        first = wanted.setdefault(entity.name, entity)
        if first is not entity:
            changed, added = _merge(first, entity, 0)
            wanted[entity.name] = _with_observations(changed, added)
    return wanted


def _merge(known: Entity, entity: Entity, at: int) -> tuple[Entity, tuple[Observation, ...]]:
    """Return the known entity with the other's tags and, if it has none, its summary; and the observations to add."""
    tags = tuple(dict.fromkeys((*known.tags, *entity.tags)))
    changed = known
    if tags != known.tags or (entity.summary and not known.summary):
        summary, since = (
            (known.summary, known.summary_at)
            if known.summary
            else (entity.summary, entity.summary_at or at)
        )
        updated_at = at or known.updated_at
        changed = replace(
            known,
            tags=tags,
            summary=summary,
            summary_at=since if summary else 0,
            updated_at=updated_at,
        )
    return changed, _missing_observations(known, entity, at)


def _overwrite(known: Entity, entity: Entity, at: int) -> tuple[Entity, tuple[Observation, ...]]:
    """Merge, and take the type and the summary of the other entity."""
    changed, added = _merge(known, entity, at)
    summary, since = (
        (entity.summary, entity.summary_at or at) if entity.summary else (changed.summary, 0)
    )
    if (changed.type, changed.summary) != (entity.type, summary):
        since = since or changed.summary_at
        changed = replace(
            changed,
            type=entity.type,
            summary=summary,
            summary_at=since,
            updated_at=at or changed.updated_at,
        )
    return changed, added


def _conflicts(known: Entity, entity: Entity) -> Iterator[IntakeConflict]:
    """Yield what the other entity says differently."""
    if entity.type != known.type:
        yield IntakeConflict("type", known.name, known.type, entity.type)
    if entity.summary and known.summary and entity.summary != known.summary:
        yield IntakeConflict("summary", known.name, known.summary, entity.summary)


def _missing_observations(known: Entity, entity: Entity, at: int) -> tuple[Observation, ...]:
    """Return what the known entity lacks, each once, with its next ordinals.

    Two turns of a conversation may have the same text: a text that is only known with other times counts as missing.
    """
    times: dict[str, set[int]] = {}
    for each in known.observations:
        times.setdefault(each.text, set()).add(each.valid_at)
    added: list[Observation] = []
    for each in entity.observations:
        valid_at = each.valid_at or stamped_time(each.text)
        present = times.setdefault(each.text, set())
        if present and (not valid_at or 0 in present or valid_at in present):
            continue
        present.add(valid_at)
        ordinal = known.next_ordinal + len(added)
        added.append(Observation(ordinal, each.text, each.created_at or at, valid_at, each.source))
    return tuple(added)


def _with_observations(entity: Entity, added: tuple[Observation, ...]) -> Entity:
    return replace(
        entity,
        observations=entity.observations + added,
        next_ordinal=entity.next_ordinal + len(added),
    )


def _fill_entity(entity: Entity, at: int) -> Entity:
    """Return the entity with an id and with that time where it has none."""
    observations = tuple(
        [each if each.created_at else replace(each, created_at=at) for each in entity.observations]
    )
    return replace(
        entity,
        id=entity.id or str(uuid4()),
        observations=observations,
        created_at=entity.created_at or at,
        updated_at=entity.updated_at or at,
        summary_at=(entity.summary_at or at) if entity.summary else 0,
    )


def _latest_by_key(notes: Sequence[Note]) -> dict[str, Note]:
    latest: dict[str, Note] = {}
    for note in notes:
        first = latest.setdefault(note.key, note)
        if note.updated_at > first.updated_at:
            latest[note.key] = note
    return latest


def _fill_times(note: Note, at: int) -> Note:
    """Return the note with that time where it has none."""
    created_at = note.created_at or at
    return replace(note, created_at=created_at, updated_at=note.updated_at or created_at)
