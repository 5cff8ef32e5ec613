"""Verbs that copy a memory from one store to another."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar
from uuid import uuid4

from msgspec.structs import replace

from polymnia.engine.entities import missing_texts, new_observations
from polymnia.engine.memory import Memory
from polymnia.engine.notes import notes_of
from polymnia.model import VAULT, Entity, Graph, Note, ObservationSet, Relation, Rows

T = TypeVar("T")
Progress = Callable[[int, int], None]


def absorb(memory: Memory, graph: Graph, *, by: str, progress: Progress | None = None) -> tuple[int, int]:
    """Add a graph to the memory, one transaction per batch. Return how many entities and relations were new.

    Known entities keep what they have and gain missing observations, so absorbing a graph twice changes nothing.
    """
    total = len(graph.entities) + len(graph.relations)
    batch = memory.store.best_batch
    new_entities = new_relations = done = 0
    for entities in batches(graph.entities, batch):
        new_entities += _absorb_entities(memory, entities, by)
        done += len(entities)
        _report(progress, done, total)
    for relations in batches(graph.relations, batch):
        new_relations += _absorb_relations(memory, relations, by)
        done += len(relations)
        _report(progress, done, total)
    return new_entities, new_relations


def count_notes(memory: Memory) -> int:
    """Return how many notes the vault has."""
    with memory.reading() as reader:
        return reader.notes.count(VAULT, ()) if memory.store.capabilities.notes else 0


def vault_notes(memory: Memory) -> list[Note]:
    """Return the vault's notes with their embeddings, oldest first; none if the store cannot hold notes."""
    with memory.reading() as reader:
        return reader.notes.like(VAULT, key=None, tags=(), before=None) if memory.store.capabilities.notes else []


def absorb_notes(
    memory: Memory, notes: Sequence[Note], *, by: str, progress: Progress | None = None
) -> tuple[int, int]:
    """Add notes to the vault, one transaction per batch. Return how many were new and how many replaced older ones.

    Of two notes with the same key the later one stays, so absorbing notes twice changes nothing. Raise NotSupported.
    """
    latest = list(_latest_by_key(notes).values())
    new = replaced = done = 0
    for batch in batches(latest, memory.store.best_batch):
        batch_new, batch_replaced = _absorb_batch(memory, batch, by)
        new, replaced, done = new + batch_new, replaced + batch_replaced, done + len(batch)
        _report(progress, done, len(latest))
    return new, replaced


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of that size; the last one may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _absorb_entities(memory: Memory, entities: Sequence[Entity], by: str) -> int:
    wanted = _by_name(entities)
    with memory.writing("import", by) as transaction:
        known = {each.name: each for each in transaction.read.find(wanted)}
        new = [_fill_entity(each, transaction.at) for name, each in wanted.items() if name not in known]
        sets = [_missing_observations(each, wanted[name], transaction.at) for name, each in known.items()]
        added = [each for each in sets if each.observations]
        transaction.apply(after=Rows(entities=tuple(new), observations=tuple(added)))
    return len(new)


def _absorb_relations(memory: Memory, relations: Sequence[Relation], by: str) -> int:
    with memory.writing("import", by) as transaction:
        wanted = {relation.key: relation for relation in relations}
        linked = transaction.read.linked(wanted)
        new = [
            replace(relation, created_at=relation.created_at or transaction.at)
            for key, relation in wanted.items()
            if key not in linked
        ]
        transaction.apply(after=Rows(relations=tuple(new)))
    return len(new)


def _absorb_batch(memory: Memory, notes: Sequence[Note], by: str) -> tuple[int, int]:
    with memory.writing("import", by) as transaction:
        vault = notes_of(memory, transaction.read)
        known = {note.key: vault.find(VAULT, note.key) for note in notes}
        new = [_fill_times(note, transaction.at) for note in notes if known[note.key] is None]
        older = [old for note in notes if (old := known[note.key]) and note.updated_at > old.updated_at]
        by_key = {note.key: note for note in notes}
        newer = [_fill_times(by_key[old.key], old.created_at) for old in older]
        transaction.apply(before=Rows(notes=tuple(older)), after=Rows(notes=(*new, *newer)))
    return len(new), len(newer)


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


def _by_name(entities: Sequence[Entity]) -> dict[str, Entity]:
    """Return the entities by name. A name that comes twice is one entity with the observations of both."""
    wanted: dict[str, Entity] = {}
    for entity in entities:
        first = wanted.setdefault(entity.name, entity)
        if first is not entity:
            added = _missing_observations(first, entity, 0).observations
            observations, next_ordinal = first.observations + added, first.next_ordinal + len(added)
            wanted[entity.name] = replace(first, observations=observations, next_ordinal=next_ordinal)
    return wanted


def _fill_entity(entity: Entity, at: int) -> Entity:
    """Return the entity with an id and with that time where it has none."""
    observations = tuple([replace(each, created_at=each.created_at or at) for each in entity.observations])
    return replace(
        entity,
        id=entity.id or str(uuid4()),
        observations=observations,
        created_at=entity.created_at or at,
        updated_at=entity.updated_at or at,
    )


def _missing_observations(known: Entity, entity: Entity, at: int) -> ObservationSet:
    new = new_observations(known, missing_texts(entity.texts, known.texts), at).observations
    given = {each.text: each for each in reversed(entity.observations)}
    kept = [replace(each, valid_at=given[each.text].valid_at, source=given[each.text].source) for each in new]
    return ObservationSet(known.name, tuple(kept))


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
