"""Shortcuts to create and inspect graphs in tests."""

from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import Entity, EntityDraft, Graph, Relation

ME = "test"


def create(memory: Memory, *drafts: EntityDraft, by: str = ME) -> list[Entity]:
    return entities.create(memory, drafts, by=by)


def link(memory: Memory, *keys: tuple[str, str, str]) -> list[Relation]:
    return relations.create(memory, [Relation(*key) for key in keys], by=ME).new


def names(graph: Graph) -> list[str]:
    return [entity.name for entity in graph.entities]


def keys(graph: Graph) -> list[tuple[str, str, str]]:
    return [relation.key for relation in graph.relations]


def texts(memory: Memory, name: str) -> tuple[str, ...]:
    """Return the observations of the entity with that name."""
    (entity,) = entities.open_named(memory, [name]).entities
    return entity.texts


def ordinals(memory: Memory, name: str) -> list[int]:
    (entity,) = entities.open_named(memory, [name]).entities
    return [fact.ordinal for fact in entity.facts]
