"""Find names: those that contain a text, and names and types spelled like an unknown one."""

from collections.abc import Iterable

from polymnia.engine.memory import Memory
from polymnia.engine.recall.spelling import repair_spelling
from polymnia.model import Entity
from polymnia.search.terms import plain, terms_of, words_of
from polymnia.stores.contract import Reader

# In a memory of this size every name is compared.
_MAX_COMPARED_NAMES = 2_000
_MAX_CANDIDATES = 100
_MIN_SIMILARITY = 0.6


def names_containing(memory: Memory, start: str, limit: int = 8) -> list[Entity]:
    """Return outlines of entities whose names contain the text, those that start with it first."""
    folded = start.strip().casefold()
    if not folded:
        return []
    with memory.reading() as read:
        found = [
            entity
            for entity in read.containing(folded, outlines=True)
            if folded in entity.name.casefold()
        ]
        found.sort(
            key=lambda item: (
                not item.name.casefold().startswith(folded),
                len(item.name),
                item.name,
            )
        )
        return read.outlines([item.name for item in found[:limit]]) if found else []


def similar_names(memory: Memory, name: str, limit: int = 3) -> list[str]:
    """Return names of entities that are spelled like this one, the most similar first.

    Those follow that have all its words and more: two people with the same first name.
    """
    with memory.reading() as read:
        if read.counts().entities <= _MAX_COMPARED_NAMES:
            names = [entity.name for entity in read.outlines()]
        else:
            names = _candidates(read, name)
    words = set(words_of(plain(name)))
    longer = [other for other in names if words and words < set(words_of(plain(other)))]
    return list(dict.fromkeys([*closest(name, names, limit), *longer]))[:limit]


def similar_types(memory: Memory, name: str, limit: int = 3) -> list[str]:
    """Return entity types spelled like this one, the most similar first; none if it exists."""
    with memory.reading() as read:
        types = [count.type for count in read.type_counts("entities")]
    return [] if name in types else closest(name, types, limit)


def closest(word: str, words: Iterable[str], limit: int = 3) -> list[str]:
    """Return the words that are most like this one, regardless of case."""
    folded: dict[str, list[str]] = {}
    for item in words:
        folded.setdefault(item.casefold(), []).append(item)
    from difflib import get_close_matches  # a server's start does not need it

    close = get_close_matches(word.casefold(), folded, limit, _MIN_SIMILARITY)
    return [item for spelling in close for item in folded[spelling]][:limit]


def _candidates(read: Reader, name: str) -> list[str]:
    """Return names that contain the text or share a word with it, spelled so or corrected."""
    repaired, _ = repair_spelling(read, name)
    words = {*terms_of(name), *terms_of(repaired)}
    found = [
        entity.name for entity in read.containing(name.casefold(), outlines=True)[:_MAX_CANDIDATES]
    ]
    return found + (read.names_with(words, _MAX_CANDIDATES) if words else [])
