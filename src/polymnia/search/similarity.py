"""Compare texts by their words: names that may mean the same, and similar facts."""

import re

from polymnia.model import Entity, Fact
from polymnia.search.question import content_words
from polymnia.search.terms import fold, terms_of, words_of

# The share of characters that two similar names have in common, in order.
MIN_NAME_RATIO = 0.85
# The share of the shorter text's content words that a similar text has too.
MIN_SHARED_WORDS = 0.5
MAX_SIMILAR = 3
# A text that is so many times as long has the words of the other because it has many.
MAX_LENGTH_RATIO, MIN_LONG_CHARACTERS = 5, 100
# The facts of an entity that are compared, the newest ones.
MAX_COMPARED = 500
_NOT_WORDS = re.compile(r"[\W_]+")


def normalize_text(text: str) -> str:
    """Return the text without differences of case and spaces, and without a final full stop."""
    return " ".join(fold(text).split()).rstrip(".")


def are_names_alike(one: Entity, other: Entity) -> bool:
    """Return True if two names may mean the same thing.

    They differ in case, spaces and punctuation only, or in few letters; or the entities have the
    same type and all words of one name are in the other (`Ada` and `Ada Lovelace`).
    """
    if one.name == other.name:
        return False
    first = _NOT_WORDS.sub("", fold(one.name))
    second = _NOT_WORDS.sub("", fold(other.name))
    if first == second or _ratio(first, second) >= MIN_NAME_RATIO:
        return True
    if fold(one.type) != fold(other.type):
        return False
    words, other_words = set(words_of(one.name)), set(words_of(other.name))
    return words <= other_words or other_words <= words


def similar_facts(text: str, entity: Entity) -> tuple[Fact, ...]:
    """Return the entity's facts that say something similar to the text, best first.

    They share content words with it, apart from the entity's name.
    """
    named = set(terms_of(entity.name))
    terms = _content_terms(text) - named
    scored = []
    for fact in entity.facts[-MAX_COMPARED:]:
        if len(fact.text) > MAX_LENGTH_RATIO * max(len(text), MIN_LONG_CHARACTERS):
            continue
        other = _content_terms(fact.text) - named
        if terms and other:
            share = len(terms & other) / min(len(terms), len(other))
            if share >= MIN_SHARED_WORDS:
                scored.append((share, fact))
    scored.sort(key=lambda pair: -pair[0])
    return tuple(fact for _, fact in scored[:MAX_SIMILAR])


def _content_terms(text: str) -> set[str]:
    return set(terms_of(" ".join(content_words(text))))


def _ratio(first: str, second: str) -> float:
    """Return the share of characters in common.

    Digits must agree, because `server1` is not `server2`.
    """
    if re.sub(r"\D", "", first) != re.sub(r"\D", "", second):
        return 0.0
    from difflib import SequenceMatcher  # a server's start does not need it

    return SequenceMatcher(None, first, second, autojunk=False).ratio()
