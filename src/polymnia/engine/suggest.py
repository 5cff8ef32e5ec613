"""Suggest similar names and types for those that do not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

from polymnia.engine.memory import Memory
from polymnia.engine.spelling import repair_spelling
from polymnia.search.terms import terms_of
from polymnia.stores.contract import Reader

# In a memory of this size every name is compared.
_MAX_COMPARED_NAMES = 2_000
_MAX_CANDIDATES = 100
_MIN_SIMILARITY = 0.6


def similar_names(memory: Memory, name: str, limit: int = 3) -> list[str]:
    """Return names of entities that are spelled like this one, the most similar first."""
    with memory.reading() as read:
        if read.counts().entities <= _MAX_COMPARED_NAMES:
            names = [each.name for each in read.outlines()]
        else:
            names = _candidates(read, name)
    return closest(name, names, limit)


def similar_types(memory: Memory, name: str, limit: int = 3) -> list[str]:
    """Return entity types that are spelled like this one, the most similar first; none if the type exists."""
    with memory.reading() as read:
        types = [each.type for each in read.entity_types()]
    return [] if name in types else closest(name, types, limit)


def closest(word: str, words: Iterable[str], limit: int = 3) -> list[str]:
    """Return the words that are most like this one, regardless of case."""
    folded: dict[str, list[str]] = {}
    for each in words:
        folded.setdefault(each.casefold(), []).append(each)
    close = get_close_matches(word.casefold(), folded, limit, _MIN_SIMILARITY)
    return [each for spelling in close for each in folded[spelling]][:limit]


def _candidates(read: Reader, name: str) -> list[str]:
    """Return names that contain the text or share a word with it, as it is or with its spelling corrected."""
    repaired, _ = repair_spelling(read, name)
    words = {*terms_of(name), *terms_of(repaired)}
    found = [each.name for each in read.headings(name.casefold())[:_MAX_CANDIDATES]]
    return found + (read.names_with(words, _MAX_CANDIDATES) if words else [])
