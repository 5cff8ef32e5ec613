"""Verbs that find: entities by a part of their text, as they stand or the best first."""

from functools import partial

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph
from polymnia.search.expression import Expression, parse, plain_words
from polymnia.search.matching import match_entities
from polymnia.search.ranking import rank
from polymnia.search.text import fold
from polymnia.stores.contract import Reader

# What full-text queries call the columns of a passage.
QUERY_COLUMNS = {"name": "name", "entity_type": "labels", "content": "content"}


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
        if not memory.store.capabilities.match:
            raise BadInput("this store has no full-text index", hint=f"{memory.store.url} is not a SQLite store")
        entities = _match(read, query)
        return Graph(entities, read.touching([entity.name for entity in entities]))


def _match(read: Reader, query: str) -> list[Entity]:
    """Return the entities that match, best first."""
    expression = parse(query, QUERY_COLUMNS) or plain_words(query)
    names = match_entities(expression, partial(_best_scores, read))
    found = {entity.name: entity for entity in read.find(names)} if names else {}
    return [found[name] for name in names if name in found]


def _best_scores(read: Reader, expression: Expression) -> dict[str, float]:
    """Return the entities that have a matching passage, with the score of the best one; less is better."""
    scores: dict[str, float] = {}
    for match in read.match(expression, ("entity", "observation")):
        scores.setdefault(match.entity, -match.score)
    return scores


def _candidates(read: Reader, folded: str, words: list[str]) -> list[Entity]:
    whole = read.containing(folded)
    if len(words) < 2:
        return whole
    names = {entity.name for entity in whole}
    for word in dict.fromkeys(words):
        names |= {entity.name for entity in read.containing(word)}
    return read.find(names)
