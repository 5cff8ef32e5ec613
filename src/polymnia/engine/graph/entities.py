"""Verbs on entities: create, upsert, open, read, delete."""

from collections.abc import Collection, Iterable, Sequence
from uuid import uuid4

from msgspec import Struct

from polymnia.engine.graph.relations import ends_of, relations_among
from polymnia.engine.memory import Memory, find_by_name
from polymnia.engine.reads import note_entities
from polymnia.model import Entity, EntityDraft, Fact, FactSet, Graph, Rows, TypeCount
from polymnia.search.dates import stamped_time


class UpsertResult(Struct, frozen=True):
    """What an upsert did with one draft."""

    name: str
    created: bool
    added: tuple[str, ...]


def create(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[Entity]:
    """Create entities and return the new ones. Skip names that exist and names that come twice."""
    first_drafts: dict[str, EntityDraft] = {}
    for draft in drafts:
        first_drafts.setdefault(draft.name, draft)
    created = []
    with memory.writing("create_entities", by) as transaction:
        known = transaction.read.existing_names(first_drafts)
        for name, draft in first_drafts.items():
            if name not in known:
                created.append(new_entity(draft, transaction.time()))
        transaction.apply(after=Rows(entities=tuple(created)))
    return created


def upsert(memory: Memory, drafts: Sequence[EntityDraft], *, by: str) -> list[UpsertResult]:
    """Create entities, or add missing facts to those that exist.

    An existing entity keeps its type.
    """
    results = []
    with memory.writing("upsert_entities", by) as transaction:
        known = find_by_name(transaction.read, {draft.name for draft in drafts})
        present = {name: set(entity.texts) for name, entity in known.items()}
        first_drafts: dict[str, EntityDraft] = {}
        added: dict[str, list[str]] = {}
        for draft in drafts:
            is_new = draft.name not in present
            if is_new:
                first_drafts[draft.name] = draft
            texts = missing_texts(draft.facts, present.setdefault(draft.name, set()))
            present[draft.name].update(texts)
            added.setdefault(draft.name, []).extend(texts)
            results.append(UpsertResult(draft.name, is_new, texts))
        created = []
        for name, draft in first_drafts.items():
            whole = EntityDraft(name, draft.type, tuple(added[name]))
            created.append(new_entity(whole, transaction.time()))
        sets = []
        for name, entity in known.items():
            if added[name]:
                new = new_facts(added[name], entity.next_ordinal, transaction.time())
                sets.append(FactSet(name, new))
        transaction.apply(after=Rows(tuple(created), tuple(sets)))
    return results


def open_named(memory: Memory, names: Collection[str]) -> Graph:
    """Return the entities with these names and every relation that touches one of them."""
    with memory.reading() as read:
        found, touching = read.together(lambda: read.entities(names), lambda: read.relations(names))
        # A relation may lead to a name that has no entity.
        present = {entity.name for entity in found}
        note_entities(memory, found)
        relations = [
            relation
            for relation in touching
            if relation.source in present or relation.target in present
        ]
        return Graph(found, relations)


def outlines(memory: Memory, names: Iterable[str]) -> dict[str, Entity]:
    """Return the named entities that exist, by name, without their facts."""
    with memory.reading() as read:
        return {entity.name: entity for entity in read.outlines(set(names))}


def read_all(memory: Memory) -> Graph:
    """Return the whole graph."""
    with memory.reading() as read:
        graph = Graph(read.entities(), read.relations())
        note_entities(memory, graph.entities)
        return graph


def page(memory: Memory, *, kind: str | None, offset: int, limit: int | None) -> Graph:
    """Return a page of the entities, or of those of one type, and the relations among them."""
    with memory.reading() as read:
        entities = read.entities(kind=kind, offset=offset, limit=limit)
        note_entities(memory, entities)
        return Graph(entities, relations_among(read, {entity.name for entity in entities}))


def types(memory: Memory) -> list[TypeCount]:
    """Return the types of entities, the most frequent first."""
    with memory.reading() as read:
        return read.type_counts("entities")


def delete(memory: Memory, names: Collection[str], *, by: str) -> Graph:
    """Delete entities and the relations that touch their names; return what was deleted."""
    with memory.writing("delete_entities", by) as transaction:
        entities = transaction.read.entities(names)
        relations = transaction.read.relations(names)
        deleted = Rows(entities=tuple(entities), relations=tuple(relations))
        others = set(ends_of(relations)).difference(names)
        transaction.apply(before=deleted, touched=sorted(others))
    return Graph(entities, relations)


def new_entity(draft: EntityDraft, at: int) -> Entity:
    """Return the entity that a draft becomes when it is created at that time."""
    return Entity(
        name=draft.name,
        type=draft.type,
        facts=new_facts(draft.facts, 1, at),
        id=str(uuid4()),
        next_ordinal=len(draft.facts) + 1,
        summary=draft.summary,
        summary_at=0 if draft.summary is None else at,
        tags=draft.tags,
        created_at=at,
        updated_at=at,
    )


def new_facts(texts: Iterable[str], ordinal: int, at: int) -> tuple[Fact, ...]:
    """Return facts of these texts, the first one with that ordinal."""
    return tuple(
        Fact(number, text, at, stamped_time(text)) for number, text in enumerate(texts, ordinal)
    )


def missing_texts(texts: Iterable[str], present: Collection[str]) -> tuple[str, ...]:
    """Return the texts that are not present, each once."""
    return tuple(text for text in dict.fromkeys(texts) if text not in present)
