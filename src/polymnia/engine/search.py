"""Verbs that find entities: by a part of their text in order of creation or best first, and by words."""

import re
from functools import partial

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph
from polymnia.search.expression import Expression, parse, plain_words
from polymnia.search.matching import match_entities
from polymnia.search.text import fold
from polymnia.stores.contract import Reader

# What full-text queries call the columns of a passage.
QUERY_COLUMNS = {"name": "name", "entity_type": "labels", "content": "content"}

_BETWEEN_WORDS = re.compile(r"[\W_]+")
# Where an entity contains a query, best first.
_EXACT_NAME, _NAME_START, _NAME_WORD, _IN_NAME, _IN_TYPE, _IN_OBSERVATION, _ALL_WORDS, _ANY_WORD, _NOWHERE = range(9)


def containing(memory: Memory, query: str) -> Graph:
    """Return the entities whose name, type or an observation contains the query, in any case, and their relations."""
    with memory.reading() as read:
        entities = read.containing(fold(query))
        return Graph(entities, read.touching([entity.name for entity in entities]))


def best_matches(memory: Memory, query: str, *, kind: str | None, offset: int, limit: int | None) -> Graph:
    """Return a page of the entities that contain the query or some of its words, best first, and their relations.

    A match in the name comes before one in the type or in an observation; then come entities with all of the words,
    then those with any. Equals are in order of creation.
    """
    folded = fold(query.strip())
    words = folded.split()
    with memory.reading() as read:
        found = [each for each in _candidates(read, folded, words) if kind is None or each.type == kind]
        found.sort(key=lambda entity: _rank(entity, folded, words))
        shown = found[offset:] if limit is None else found[offset : offset + limit]
        return Graph(shown, read.touching([entity.name for entity in shown]))


def full_text(memory: Memory, query: str) -> Graph:
    """Return the entities that match an FTS5 query, best first, and their relations.

    A text that is not FTS5 syntax is searched for by its words. Raise BadInput if the store has no full-text index.
    """
    with memory.reading() as read:
        if not memory.store.capabilities.match:
            raise BadInput("this store has no full-text index", hint=f"{memory.store.url} is not a SQLite store")
        entities = _match(read, query)
        return Graph(entities, read.touching([entity.name for entity in entities]))


def _candidates(read: Reader, folded: str, words: list[str]) -> list[Entity]:
    whole = read.containing(folded)
    if len(words) < 2:
        return whole
    names = {entity.name for entity in whole}
    for word in dict.fromkeys(words):
        names |= {entity.name for entity in read.containing(word)}
    return read.find(names)


def _rank(entity: Entity, folded: str, words: list[str]) -> tuple[int, int]:
    """Return a sort key for how well the entity matches the folded query; the smaller the better."""
    name = fold(entity.name)
    where = _find_query(entity, name, folded)
    if where != _NOWHERE or len(words) < 2:
        return where, 0
    texts = [name, fold(entity.type), *[fold(text) for text in entity.texts]]
    found = sum(any(word in text for text in texts) for word in words)
    if found == len(words):
        return _ALL_WORDS, 0
    return (_ANY_WORD, -found) if found else (_NOWHERE, 0)


def _find_query(entity: Entity, name: str, folded: str) -> int:
    """Return the best place where the entity contains the whole query."""
    if name == folded:
        return _EXACT_NAME
    if name.startswith(folded):
        return _NAME_START
    if folded in name:
        return _NAME_WORD if folded in _BETWEEN_WORDS.split(name) else _IN_NAME
    if folded in fold(entity.type):
        return _IN_TYPE
    if any(folded in fold(text) for text in entity.texts):
        return _IN_OBSERVATION
    return _NOWHERE


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
