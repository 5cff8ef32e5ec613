"""Verbs that say what a memory holds: counts, types, and stretches of it."""

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import Counts, Graph, Relation, TypeCount


class Statistics(Struct, frozen=True):
    """How much there is, and how many different texts it is made of."""

    counts: Counts
    texts: int
    text_bytes: int


def statistics(memory: Memory) -> Statistics:
    with memory.reading() as read:
        return Statistics(read.counts(), *read.distinct_texts())


def entity_types(memory: Memory) -> list[TypeCount]:
    """The types entities have, the commonest first."""
    with memory.reading() as read:
        return read.entity_types()


def relation_types(memory: Memory) -> list[TypeCount]:
    """The types relations have, the commonest first."""
    with memory.reading() as read:
        return read.relation_types()


def page(memory: Memory, *, kind: str | None, offset: int, limit: int | None) -> Graph:
    """A stretch of the entities, perhaps of one type only, and the relations among them."""
    with memory.reading() as read:
        entities = read.page(kind, offset, limit)
        names = {entity.name for entity in entities}
        relations = [each for each in read.touching(names) if each.source in names and each.target in names]
    return Graph(entities, relations)


def relations_like(memory: Memory, *, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
    """The relations that have what is given; None is anything."""
    with memory.reading() as read:
        return read.relations_like(source, target, kind)
