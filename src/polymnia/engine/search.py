"""Verbs that find entities: by a part of their text in order of creation or best first, and by words."""

import re
from collections import Counter
from functools import partial

from polymnia.engine.memory import Memory
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import Entity, Graph, Heading
from polymnia.search.expression import Expression, parse, plain_words
from polymnia.search.matching import match_entities
from polymnia.search.text import fold
from polymnia.stores.contract import Reader

# What full-text queries call the columns of a passage.
QUERY_COLUMNS = {"name": "name", "entity_type": "labels", "content": "content"}

_BETWEEN_WORDS = re.compile(r"[\W_]+")
# Where an entity contains a query, best first.
_EXACT_NAME, _NAME_START, _NAME_WORD, _IN_NAME, _IN_TYPE, _IN_OBSERVATION, _ALL_WORDS, _ANY_WORD = (
    range(8)
)


def containing(memory: Memory, query: str) -> Graph:
    """Return the entities whose name, type or an observation contains the query, in any case, and their relations."""
    with memory.reading() as read:
        entities = read.containing(fold(query))
        return Graph(entities, read.touching([entity.name for entity in entities]))


def best_matches(
    memory: Memory, query: str, *, kind: str | None, offset: int, limit: int | None
) -> Graph:
    """Return a page of the entities that contain the query or some of its words, best first, and their relations.

    A match in the name comes before one in the type or in an observation; then come entities with all of the words,
    then those with any. Equals are in order of creation.
    """
    folded = fold(query.strip())
    with memory.reading() as read:
        ranked = [
            each for each in _rank_headings(read, folded) if kind is None or each.type == kind
        ]
        shown = ranked[offset:] if limit is None else ranked[offset : offset + limit]
        found = (
            {entity.name: entity for entity in read.find([each.name for each in shown])}
            if shown
            else {}
        )
        return Graph([found[each.name] for each in shown], read.touching(found) if found else [])


def full_text(memory: Memory, query: str) -> Graph:
    """Return the entities that match an FTS5 query, best first, and their relations.

    A text that is not FTS5 syntax is searched for by its words. Raise BadInput if the store has no full-text index.
    """
    with memory.reading() as read:
        if not memory.store.capabilities.match:
            raise BadInput("this store has no full-text index", hint=USE_A_DATABASE)
        entities = _match(read, query)
        return Graph(entities, read.touching([entity.name for entity in entities]))


def _rank_headings(read: Reader, folded: str) -> list[Heading]:
    """Return the entities that contain the folded query or some of its words, best first.

    Only names and types are read: the observations of all matches may be many times what is shown.
    """
    found = {each.name: each for each in read.headings(folded)}
    ranks = {name: (_find_query(each, folded), 0) for name, each in found.items()}
    words = Counter(folded.split())
    counts: Counter[str] = Counter()
    for word, times in words.items() if words.total() > 1 else ():
        for each in read.headings(word):
            found.setdefault(each.name, each)
            counts[each.name] += times
    for name, count in counts.items():
        ranks.setdefault(name, (_ALL_WORDS, 0) if count == words.total() else (_ANY_WORD, -count))
    return sorted(found.values(), key=lambda each: (ranks[each.name], each.position))


def _find_query(heading: Heading, folded: str) -> int:
    """Return the best place where an entity contains the whole query, which it does somewhere."""
    name = fold(heading.name)
    if name == folded:
        return _EXACT_NAME
    if name.startswith(folded):
        return _NAME_START
    if folded in name:
        return _NAME_WORD if folded in _BETWEEN_WORDS.split(name) else _IN_NAME
    return _IN_TYPE if folded in fold(heading.type) else _IN_OBSERVATION


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
