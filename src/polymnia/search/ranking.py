"""How well an entity answers a query for a part of its text: names before types before observations."""

import re

from polymnia.model import Entity
from polymnia.search.text import fold

_BETWEEN_WORDS = re.compile(r"[\W_]+")

# The rungs, best first.
EXACT_NAME, NAME_START, NAME_WORD, IN_NAME, IN_TYPE, IN_OBSERVATION, ALL_WORDS, ANY_WORD, NOTHING = range(9)

Rank = tuple[int, int]


def rank(entity: Entity, folded: str, words: list[str]) -> Rank:
    """The rung on which the entity stands for the folded query and its words; a smaller one is better."""
    name = fold(entity.name)
    rung = _rung(entity, name, folded)
    if rung != NOTHING or len(words) < 2:
        return rung, 0
    texts = [name, fold(entity.type), *[fold(text) for text in entity.texts]]
    found = sum(any(word in text for text in texts) for word in words)
    if found == len(words):
        return ALL_WORDS, 0
    return (ANY_WORD, -found) if found else (NOTHING, 0)


def _rung(entity: Entity, name: str, folded: str) -> int:
    if name == folded:
        return EXACT_NAME
    if name.startswith(folded):
        return NAME_START
    if folded in name:
        return NAME_WORD if folded in _BETWEEN_WORDS.split(name) else IN_NAME
    if folded in fold(entity.type):
        return IN_TYPE
    if any(folded in fold(text) for text in entity.texts):
        return IN_OBSERVATION
    return NOTHING
