"""Verbs that find: entities by a part of their text."""

from polymnia.engine.memory import Memory
from polymnia.model import Graph
from polymnia.search.text import fold


def containing(memory: Memory, query: str) -> Graph:
    """Entities whose name, type or an observation contains the query, whatever its case, and their relations."""
    with memory.reading() as read:
        entities = read.containing(fold(query))
        return Graph(entities, read.touching([entity.name for entity in entities]))
