"""Verbs on entities: create, open, read all, delete."""

from collections.abc import Collection, Sequence
from os import urandom

from polymnia.engine.memory import Memory
from polymnia.model import Entity, EntityDraft, Graph, Observation, Relation, Rows


def create(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[Entity]:
    """The entities that were created; a name that is taken, or comes twice, is left as it is."""
    wanted: dict[str, EntityDraft] = {}
    for draft in drafts:
        wanted.setdefault(draft.name, draft)
    with memory.writing("create_entities", by) as transaction:
        known = transaction.read.known(wanted)
        created = [born(draft, transaction.at) for name, draft in wanted.items() if name not in known]
        transaction.apply(after=Rows(entities=tuple(created)))
    return created


def open_named(memory: Memory, names: Collection[str]) -> Graph:
    """The entities with these names and every relation that touches one of them."""
    if len(names) == 1:
        return memory.store.look_up(*names)
    with memory.reading() as read:
        entities = read.find(names)
        return Graph(entities, read.touching({entity.name for entity in entities}))


def read_all(memory: Memory) -> Graph:
    """The whole memory."""
    with memory.reading() as read:
        return Graph(read.entities(), read.relations())


def delete(memory: Memory, names: Collection[str], *, by: str) -> Graph:
    """What was deleted: the entities, and the relations that touched one of the names."""
    with memory.writing("delete_entities", by) as transaction:
        entities: list[Entity] = transaction.read.find(names)
        relations: list[Relation] = transaction.read.touching(names)
        transaction.apply(before=Rows(entities=tuple(entities), relations=tuple(relations)))
    return Graph(entities, relations)


def new_id() -> str:
    """A random UUID (version 4) as text."""
    random = bytearray(urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    text = random.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def born(draft: EntityDraft, at: int) -> Entity:
    """The entity a draft becomes when it is created at that time."""
    observations = tuple([Observation(place, text, at) for place, text in enumerate(draft.observations, 1)])
    return Entity(
        name=draft.name,
        type=draft.type,
        observations=observations,
        id=new_id(),
        next_ordinal=len(observations) + 1,
        summary=draft.summary,
        summary_at=at if draft.summary is not None else 0,
        tags=draft.tags,
        created_at=at,
        updated_at=at,
    )
