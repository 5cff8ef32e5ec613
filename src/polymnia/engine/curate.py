"""Verbs that keep a memory in order: upsert, merge, compact."""

from collections.abc import Sequence

from msgspec import Struct

from polymnia.engine.entities import new_entity
from polymnia.engine.memory import Memory, Transaction
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, EntityDraft, Observation, ObservationSet, Relation, Rows


class Upserted(Struct, frozen=True):
    """What became of one draft."""

    name: str
    created: bool
    added: tuple[str, ...]


class Merged(Struct, frozen=True):
    """What a merge moved."""

    moved: int
    added: int
    redirected: int


def upsert(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[Upserted]:
    """Create what is new; give what is known the observations it lacks. A known type stays."""
    with memory.writing("upsert_entities", by) as transaction:
        known = {each.name: each for each in transaction.read.find({draft.name for draft in drafts})}
        grown: dict[str, tuple[str, ...]] = {}
        fresh: dict[str, EntityDraft] = {}
        outcome = [_taken(draft, known, fresh, grown) for draft in drafts]
        created = tuple([new_entity(each, transaction.at) for each in fresh.values()])
        notes = [_noted(known[name], texts, transaction.at) for name, texts in grown.items() if texts]
        transaction.apply(after=Rows(entities=created, observations=tuple(notes)))
    return outcome


def merge(memory: Memory, source: str, target: str, *, by: str) -> Merged:
    """Move what one entity has to the other and delete it; relations that would lead from a thing to itself go.

    Raises EntityNotFound, or BadInput when both are the same.
    """
    if source == target:
        raise BadInput(f"source and target are the same entity, {source}; name two to merge")
    with memory.writing("merge_entities", by) as transaction:
        found = {each.name: each for each in transaction.read.find({source, target})}
        for name in (source, target):
            if name not in found:
                raise EntityNotFound(name)
        return _merge(transaction, found[source], found[target])


def compact(memory: Memory) -> None:
    """Let the store drop what it keeps of things that are gone, and put the rest in order."""
    memory.store.compact()


def _taken(
    draft: EntityDraft, known: dict[str, Entity], fresh: dict[str, EntityDraft], grown: dict[str, tuple[str, ...]]
) -> Upserted:
    if draft.name in known:
        earlier = grown.get(draft.name, ())
        added = _lacking(draft.observations, known[draft.name].texts + earlier)
        grown[draft.name] = earlier + added
        return Upserted(draft.name, False, added)
    first = fresh.get(draft.name)
    added = _lacking(draft.observations, first.observations if first else ())
    observations = (first.observations if first else ()) + added
    fresh[draft.name] = EntityDraft(draft.name, first.type if first else draft.type, observations)
    return Upserted(draft.name, first is None, added)


def _lacking(texts: Sequence[str], has: Sequence[str]) -> tuple[str, ...]:
    known = set(has)
    return tuple([text for text in dict.fromkeys(texts) if text not in known])


def _noted(entity: Entity, texts: Sequence[str], at: int) -> ObservationSet:
    numbered = enumerate(texts, entity.next_ordinal)
    return ObservationSet(entity.name, tuple([Observation(ordinal, text, at) for ordinal, text in numbered]))


def _merge(transaction: Transaction, source: Entity, target: Entity) -> Merged:
    added = _lacking(source.texts, target.texts)
    old = transaction.read.touching([source.name])
    wanted = {each.key: each for each in (_redirected(each, source.name, target.name) for each in old)}
    wanted = {key: each for key, each in wanted.items() if each.source != each.target}
    linked = transaction.read.linked(wanted)
    new = tuple([each for key, each in wanted.items() if key not in linked])
    notes = (_noted(target, added, transaction.at),) if added else ()
    transaction.apply(
        before=Rows(entities=(source,), relations=tuple(old)), after=Rows(observations=notes, relations=new)
    )
    return Merged(len(source.observations), len(added), len(new))


def _redirected(relation: Relation, source: str, target: str) -> Relation:
    first = target if relation.source == source else relation.source
    last = target if relation.target == source else relation.target
    return Relation(first, last, relation.type, relation.created_at)
