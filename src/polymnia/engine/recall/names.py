"""Find names: those that begin as typed, former ones, and those spelled like an unknown one."""

import re
from collections.abc import Iterable

from polymnia.engine.memory import Memory
from polymnia.model import Entity
from polymnia.search.terms import fold, plain, terms_of, words_of
from polymnia.stores.contract import Reader

# In a memory of this size every name is compared.
_MAX_COMPARED_NAMES = 2_000
_MAX_CANDIDATES = 100
_MIN_SIMILARITY = 0.6


def names_starting(memory: Memory, typed: str) -> list[Entity]:
    """Return entities with words in their name that begin as what was typed.

    The last word may be unfinished: the words of the index that begin with it are tried, so that
    the work does not grow with the memory.
    """
    words = words_of(fold(typed))
    if not 0 < len(words) <= 4 or len(words[-1]) < 2:
        return []
    with memory.reading() as read:
        unfinished = read.vocabulary(words[-1], f"{words[-1]}\U0010ffff", 20)
        names = read.names_with({*terms_of(typed), *unfinished}, 20)
        found = read.outlines(names) if names else []
    padded = f" {' '.join(words)}"
    found = [item for item in found if padded in f" {' '.join(words_of(fold(item.name)))}"]
    found.sort(key=lambda item: (not fold(item.name).startswith(words[0]), len(item.name)))
    return found[:8]


def similar_names(memory: Memory, name: str, limit: int = 3) -> list[str]:
    """Return names of entities that are spelled like this one, the most similar first.

    Then come names with all its words and more: two people with the same first name.
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
        types = read.types()
    return [] if name in types else closest(name, types, limit)


def closest(word: str, words: Iterable[str], limit: int = 3) -> list[str]:
    """Return the words that are most like this one, regardless of case."""
    folded: dict[str, list[str]] = {}
    for item in words:
        folded.setdefault(item.casefold(), []).append(item)
    from difflib import get_close_matches  # a server's start does not need it

    close = get_close_matches(word.casefold(), folded, limit, _MIN_SIMILARITY)
    return [item for spelling in close for item in folded[spelling]][:limit]


def former_names(read: Reader, aliased: Iterable[Entity], text: str) -> dict[str, str]:
    """Return the former names that a text has, and what those entities are called now.

    `aliased` are the entities with former names. A name that another entity has now is not one.
    """
    padded = f" {' '.join(words_of(plain(text)))} "
    names: dict[str, str] = {}
    for entity in aliased:
        if f" {' '.join(words_of(plain(entity.name)))} " in padded:
            continue
        for alias in entity.aliases:
            words = " ".join(words_of(plain(alias)))
            if words and f" {words} " in padded:
                names[alias] = entity.name
    taken = read.existing_names(names) if names else set()
    return {alias: name for alias, name in names.items() if alias not in taken}


def with_current_names(text: str, renamed: dict[str, str]) -> str:
    """Return the text with the names that entities have now."""
    for former, name in renamed.items():
        current = name.join(re.split(re.escape(former), text, flags=re.IGNORECASE))
        # A former name with other accents or spaces stays, and the current one is added.
        text = current if current != text else f"{text} {name}"
    return text


def _candidates(read: Reader, name: str) -> list[str]:
    """Return names that contain the text or share a word with it."""
    words = set(terms_of(name))
    found = [
        entity.name for entity in read.containing(name.casefold(), outlines=True)[:_MAX_CANDIDATES]
    ]
    return found + (read.names_with(words, _MAX_CANDIDATES) if words else [])
