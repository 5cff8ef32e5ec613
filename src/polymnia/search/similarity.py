"""Compare texts by their words: names that may mean the same, and similar facts."""

import re
from collections.abc import Set
from functools import cache, lru_cache

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
# Two facts are about the same attribute if they share this many words, and this share of the
# shorter one's.
MIN_ATTRIBUTE_WORDS, MIN_ATTRIBUTE_SHARE = 2, 0.6
# Two facts with the same unit and another number are values of one attribute if they share so many
# other words, or if the newer one speaks of a change.
MIN_QUANTITY_WORDS = 2
_QUANTITY = (
    r"\b(\d[\d.,:]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty)"
    r"\s+([^\W\d_]+)"
)
_CHANGE = (
    r"\b(?:rose|fell|cut|grew|became|since|now|no longer|instead"
    r"|(?:rais|increas|reduc|lower|dropp|mov|switch|chang|replac|postpon|delay|extend|shorten"
    r"|upgrad)ed)\b"
)
# "2 June" and "14 June" are dates.
_MONTH_NAMES = """
january february march april may june july august september october november december
"""
# The facts of an entity that are compared, the newest ones.
MAX_COMPARED = 500
_NOT_WORDS = re.compile(r"[\W_]+")
# Compiled at the first use: a server's start does not need it.
_compiled = cache(re.compile)


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
        share = _overlap(terms, _content_terms(fact.text) - named)
        if share >= MIN_SHARED_WORDS:
            scored.append((share, fact))
    scored.sort(key=lambda pair: -pair[0])
    return tuple(fact for _, fact in scored[:MAX_SIMILAR])


def is_same_attribute(one: str, other: str, name: str) -> bool:
    """Return True if two facts of an entity probably give two values of one attribute.

    Most content words agree, apart from numbers and the entity's name: "the bill is 2,340 euros",
    "the bill fell to 1,910 euros in May".
    """
    named = set(terms_of(name))
    first, second = _words_without_values(one) - named, _words_without_values(other) - named
    is_enough = len(first & second) >= MIN_ATTRIBUTE_WORDS
    return is_enough and _overlap(first, second) >= MIN_ATTRIBUTE_SHARE


def has_newer_quantity(old: str, new: str, name: str) -> bool:
    """Return True if a newer fact of an entity probably gives another number of the same unit.

    For example "has nine pupils and meets on Mondays" and "has eleven pupils since May".
    """
    before, after = _quantities(old), _quantities(new)
    units = set()
    for unit in before.keys() & after.keys():
        if before[unit].isdisjoint(after[unit]):
            units.add(unit)
    units -= _month_terms().union(terms_of(name))
    if not units:
        return False
    if _compiled(_CHANGE).search(fold(new)):
        return True
    shared = _words_without_values(old) & _words_without_values(new)
    return len(shared - units - set(terms_of(name))) >= MIN_QUANTITY_WORDS


@cache
def _month_terms() -> frozenset[str]:
    return frozenset(terms_of(_MONTH_NAMES))


@lru_cache(maxsize=1024)
def _quantities(text: str) -> dict[str, set[str]]:
    """Return the numbers of a text by the unit that follows them."""
    quantities: dict[str, set[str]] = {}
    for number, unit in _compiled(_QUANTITY).findall(fold(text)):
        for term in terms_of(unit):
            quantities.setdefault(term, set()).add(number)
    return quantities


# Each fact of an entity is compared with all others.
@lru_cache(maxsize=1024)
def _words_without_values(text: str) -> frozenset[str]:
    return frozenset(term for term in _content_terms(text) if not term.isdigit())


def _content_terms(text: str) -> set[str]:
    return set(terms_of(" ".join(content_words(text))))


def _overlap(one: Set[str], other: Set[str]) -> float:
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def _ratio(first: str, second: str) -> float:
    """Return the share of characters in common.

    Digits must agree, because `server1` is not `server2`.
    """
    if re.sub(r"\D", "", first) != re.sub(r"\D", "", second):
        return 0.0
    from difflib import SequenceMatcher  # a server's start does not need it

    return SequenceMatcher(None, first, second, autojunk=False).ratio()
