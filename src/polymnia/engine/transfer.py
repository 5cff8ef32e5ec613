"""Verbs that carry a memory from one store to another."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar
from uuid import uuid4

from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.engine.notes import notes_of
from polymnia.model import VAULT, Entity, Graph, Note, Observation, ObservationSet, Relation, Rows

T = TypeVar("T")
Progress = Callable[[int, int], None]


def absorb(memory: Memory, graph: Graph, *, by: str, progress: Progress | None = None) -> tuple[int, int]:
    """Take a graph in, a batch per transaction; gives how many entities and relations were new.

    Known entities keep what they have and gain the observations they lack, so doing it twice changes nothing.
    """
    total = len(graph.entities) + len(graph.relations)
    batch = memory.store.best_batch
    new_entities = new_relations = done = 0
    for entities in _batches(graph.entities, batch):
        new_entities += _absorb_entities(memory, entities, by)
        done += len(entities)
        _tell(progress, done, total)
    for relations in _batches(graph.relations, batch):
        new_relations += _absorb_relations(memory, relations, by)
        done += len(relations)
        _tell(progress, done, total)
    return new_entities, new_relations


def count_notes(memory: Memory) -> int:
    """How many notes the vault has."""
    with memory.reading() as reader:
        return reader.notes.count(VAULT, ()) if memory.store.capabilities.notes else 0


def vault_notes(memory: Memory) -> list[Note]:
    """The vault's notes with their embeddings, oldest first; none where the store holds none."""
    with memory.reading() as reader:
        return reader.notes.like(VAULT, key=None, tags=(), before=None) if memory.store.capabilities.notes else []


def absorb_notes(
    memory: Memory, notes: Sequence[Note], *, by: str, progress: Progress | None = None
) -> tuple[int, int]:
    """Take notes into the vault, a batch per transaction; gives how many were new and how many replaced older ones.

    Of two with one key the one that was written last stays, so doing it twice changes nothing. Raises NotSupported.
    """
    wanted = list(_by_key(notes).values())
    new = renewed = done = 0
    for batch in _batches(wanted, memory.store.best_batch):
        fresh, older = _absorb_batch(memory, batch, by)
        new, renewed, done = new + fresh, renewed + older, done + len(batch)
        _tell(progress, done, len(wanted))
    return new, renewed


def _absorb_entities(memory: Memory, entities: Sequence[Entity], by: str) -> int:
    wanted = _by_name(entities)
    with memory.writing("import", by) as transaction:
        known = {each.name: each for each in transaction.read.find(wanted)}
        fresh = [_settled(each, transaction.at) for name, each in wanted.items() if name not in known]
        lacking = [_lacking(each, wanted[name], transaction.at) for name, each in known.items()]
        notes = [noted for noted in lacking if noted.observations]
        transaction.apply(after=Rows(entities=tuple(fresh), observations=tuple(notes)))
    return len(fresh)


def _absorb_relations(memory: Memory, relations: Sequence[Relation], by: str) -> int:
    with memory.writing("import", by) as transaction:
        wanted = {relation.key: relation for relation in relations}
        linked = transaction.read.linked(wanted)
        fresh = [
            replace(relation, created_at=relation.created_at or transaction.at)
            for key, relation in wanted.items()
            if key not in linked
        ]
        transaction.apply(after=Rows(relations=tuple(fresh)))
    return len(fresh)


def _absorb_batch(memory: Memory, notes: Sequence[Note], by: str) -> tuple[int, int]:
    with memory.writing("import", by) as transaction:
        vault = notes_of(memory, transaction.read)
        known = {note.key: vault.find(VAULT, note.key) for note in notes}
        fresh = [_dated(note, transaction.at) for note in notes if known[note.key] is None]
        older = [old for note in notes if (old := known[note.key]) and note.updated_at > old.updated_at]
        by_key = {note.key: note for note in notes}
        newer = [_dated(by_key[old.key], old.created_at) for old in older]
        transaction.apply(before=Rows(notes=tuple(older)), after=Rows(notes=(*fresh, *newer)))
    return len(fresh), len(newer)


def _by_key(notes: Sequence[Note]) -> dict[str, Note]:
    wanted: dict[str, Note] = {}
    for note in notes:
        first = wanted.setdefault(note.key, note)
        if note.updated_at > first.updated_at:
            wanted[note.key] = note
    return wanted


def _dated(note: Note, at: int) -> Note:
    """The note with times where it has none."""
    created_at = note.created_at or at
    return replace(note, created_at=created_at, updated_at=note.updated_at or created_at)


def _by_name(entities: Sequence[Entity]) -> dict[str, Entity]:
    """A name that comes twice is one entity with the observations of both."""
    wanted: dict[str, Entity] = {}
    for entity in entities:
        first = wanted.setdefault(entity.name, entity)
        if first is not entity:
            added = _lacking(first, entity, 0).observations
            grown = first.observations + added
            wanted[entity.name] = replace(first, observations=grown, next_ordinal=first.next_ordinal + len(added))
    return wanted


def _settled(entity: Entity, at: int) -> Entity:
    """The entity with an id and times where its old store had none."""
    observations = tuple([replace(each, created_at=each.created_at or at) for each in entity.observations])
    return replace(
        entity,
        id=entity.id or str(uuid4()),
        observations=observations,
        created_at=entity.created_at or at,
        updated_at=entity.updated_at or at,
    )


def _lacking(known: Entity, entity: Entity, at: int) -> ObservationSet:
    has = set(known.texts)
    texts = [text for text in dict.fromkeys(entity.texts) if text not in has]
    numbered = enumerate(texts, known.next_ordinal)
    return ObservationSet(known.name, tuple([Observation(ordinal, text, at) for ordinal, text in numbered]))


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
