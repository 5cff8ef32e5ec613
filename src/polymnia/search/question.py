"""A question taken apart: its words, the date it names, and which entities it speaks of."""

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from polymnia.search.dates import Period, asks_when, period_in
from polymnia.search.terms import STOP_WORDS, derived, plain, stem, stems_of, words_of

_SPACED = re.compile(r"[^\W_]+")


class Question(Struct, frozen=True):
    """What a search is for. Words are stemmed: `spoken` has all in order, `content` those that mean something."""

    text: str
    spoken: tuple[str, ...]
    content: tuple[str, ...]
    capitalised: frozenset[str]
    period: Period | None
    asks_when: bool


def parse(text: str) -> Question:
    """The question that a text asks; a text of stop words alone means them."""
    period, rest = period_in(text)
    spoken = tuple(stems_of(text))
    words = [word for word in words_of(rest) if word not in STOP_WORDS] or words_of(rest) or words_of(text)
    content = stems_of(" ".join(words)) + stems_of(derived(rest))
    capitalised = frozenset([stem(plain(word)) for word in _SPACED.findall(text)[1:] if word[:1].isupper()])
    return Question(text, spoken, tuple(dict.fromkeys(content)), capitalised, period, asks_when(text))


def possible_names(question: Question) -> list[str]:
    """The terms that may be part of an entity's name: what means something, and what is written like a name."""
    stops = [term for term in question.spoken if term in question.capitalised]
    return list(dict.fromkeys((*question.content, *stops)))


def named(question: Question, names: Collection[str]) -> dict[str, float]:
    """Those of the names that the question speaks of: 1 where it says the whole name, less for a part of it."""
    found: dict[str, float] = {}
    for name in names:
        terms = stems_of(name) or [plain(name)]
        if _says(question.spoken, terms):
            found[name] = 1.0
        elif len(terms) > 1:
            share = len(set(terms) & set(possible_names(question))) / len(set(terms))
            found[name] = _PART * share
    return {name: share for name, share in found.items() if share}


# What a part of a name counts beside the whole of it.
_PART = 0.4


def without(question: Question, names: Collection[str]) -> tuple[str, ...]:
    """The content terms without those of the names; all of them when nothing else would be left."""
    said = {term for name in names for term in stems_of(name)}
    return tuple([term for term in question.content if term not in said]) or question.content


def unnamed(text: str, names: Collection[str]) -> str:
    """The text without the names, possessive or not; all of it when nothing else would be left."""
    for name in sorted(names, key=len, reverse=True):
        text_without = re.sub(rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
        text = text_without if words_of(text_without) else text
    return " ".join(text.split())


def repaired(question: Question, meant: dict[str, str]) -> Question:
    """The question with some of its terms exchanged for those that were meant."""
    return Question(
        question.text,
        tuple([meant.get(term, term) for term in question.spoken]),
        tuple([meant.get(term, term) for term in question.content]),
        frozenset([meant.get(term, term) for term in question.capitalised]),
        question.period,
        question.asks_when,
    )


def _says(spoken: Sequence[str], terms: Sequence[str]) -> bool:
    """Whether the terms are said one after the other."""
    first, size = terms[0], len(terms)
    starts = [place for place, term in enumerate(spoken) if term == first]
    return any(list(spoken[place : place + size]) == list(terms) for place in starts)
