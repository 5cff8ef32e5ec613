"""Verbs that find: entities by a part of their text, as they stand or the best first."""

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph
from polymnia.search.ranking import rank
from polymnia.search.text import fold
from polymnia.stores.base import FullTextReader, Reader


def containing(memory: Memory, query: str) -> Graph:
    """Entities whose name, type or an observation contains the query, whatever its case, and their relations."""
    with memory.reading() as read:
        entities = read.containing(fold(query))
        return Graph(entities, read.touching([entity.name for entity in entities]))


def ranked(memory: Memory, query: str, *, kind: str | None, offset: int, limit: int | None) -> Graph:
    """The same, best first: by where the query is found, then entities with all of its words, then with any.

    Equals come in the order of their creation. The relations are those of the entities that are given.
    """
    folded = fold(query.strip())
    words = folded.split()
    with memory.reading() as read:
        found = [each for each in _candidates(read, folded, words) if kind is None or each.type == kind]
        found.sort(key=lambda entity: rank(entity, folded, words))
        shown = found[offset:] if limit is None else found[offset : offset + limit]
        return Graph(shown, read.touching([entity.name for entity in shown]))


def full_text(memory: Memory, query: str) -> Graph:
    """Entities that match an FTS5 query, or have the words of any other text, best first, and their relations.

    Raises BadInput when the store has no full-text index.
    """
    with memory.reading() as read:
        if not isinstance(read, FullTextReader):
            raise BadInput("this store has no full-text index", hint=f"{memory.store.url} is not a SQLite store")
        entities = read.matching(query)
        return Graph(entities, read.touching([entity.name for entity in entities]))


def _candidates(read: Reader, folded: str, words: list[str]) -> list[Entity]:
    whole = read.containing(folded)
    if len(words) < 2:
        return whole
    names = {entity.name for entity in whole}
    for word in dict.fromkeys(words):
        names |= {entity.name for entity in read.containing(word)}
    return read.find(names)
