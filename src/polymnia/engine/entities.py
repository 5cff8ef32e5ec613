"""Verbs on entities: create, open, read all, delete."""

from collections.abc import Collection, Sequence
from uuid import uuid4

from polymnia.engine.memory import Memory
from polymnia.model import Entity, EntityDraft, Graph, Observation, Relation, Rows


def create(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[Entity]:
    """Create entities and return the new ones. A name that is taken, or comes twice, is skipped."""
    wanted: dict[str, EntityDraft] = {}
    for draft in drafts:
        wanted.setdefault(draft.name, draft)
    with memory.writing("create_entities", by) as transaction:
        known = transaction.read.known(wanted)
        created = [new_entity(draft, transaction.at) for name, draft in wanted.items() if name not in known]
        transaction.apply(after=Rows(entities=tuple(created)))
    return created


def open_named(memory: Memory, names: Collection[str]) -> Graph:
    """Return the entities with these names and every relation that touches one of them."""
    with memory.reading() as read:
        entities = read.find(names)
        return Graph(entities, read.touching({entity.name for entity in entities}) if entities else [])


def read_all(memory: Memory) -> Graph:
    """Return the whole graph."""
    with memory.reading() as read:
        return Graph(read.entities(), read.relations())


def delete(memory: Memory, names: Collection[str], *, by: str) -> Graph:
    """Delete entities and the relations that touch their names; return what was deleted."""
    with memory.writing("delete_entities", by) as transaction:
        entities: list[Entity] = transaction.read.find(names)
        relations: list[Relation] = transaction.read.touching(names)
        transaction.apply(before=Rows(entities=tuple(entities), relations=tuple(relations)))
    return Graph(entities, relations)


def new_entity(draft: EntityDraft, at: int) -> Entity:
    """Return the entity that a draft becomes when it is created at that time."""
    observations = tuple([Observation(place, text, at) for place, text in enumerate(draft.observations, 1)])
    return Entity(
        name=draft.name,
        type=draft.type,
        observations=observations,
        id=str(uuid4()),
        next_ordinal=len(observations) + 1,
        summary=draft.summary,
        summary_at=at if draft.summary is not None else 0,
        tags=draft.tags,
        created_at=at,
        updated_at=at,
    )
