"""The ladder: in which way a passage has the words of a question, and which passages come before any score."""

from collections.abc import Collection, Mapping, Sequence

from polymnia.model import Passage
from polymnia.search.text import fold

NAME, KEY, TEXT, PHRASE, ALL_WORDS, ANY_WORD = "name", "key", "text", "phrase", "all words", "any word"
PREFIX, TYPO, SUBSTRING, MEANING, CONTEXT = "prefix", "typo", "substring", "meaning", "context"

# The rungs that come before any score.
_FIRST = (NAME, KEY, TEXT)


def exact(passage: Passage, folded: str) -> str:
    """The rung of a passage that is the folded question: by its entity's name, its key or its text."""
    if passage.ordinal <= 0 and _is(passage.entity.strip(), folded):
        return NAME if passage.ordinal == 0 else KEY
    return TEXT if passage.ordinal and _is(passage.text.strip(), folded) else ""


def before_scores(rung: str) -> int:
    """Where a rung stands among those that come before any score."""
    return _FIRST.index(rung) if rung in _FIRST else len(_FIRST)


def rung(asked: Sequence[str], content: Collection[str], other: Mapping[str, str], has: Sequence[str]) -> str:
    """The highest rung on which a passage stands that has these terms.

    `asked` are the question's terms in order and `content` those that mean something; `other` are terms it was widened
    to, with the rung they are on.
    """
    found = {term for term in content if term in has}
    if found and _phrase(asked, has):
        return PHRASE
    if found:
        return ALL_WORDS if len(found) == len(set(content)) else ANY_WORD
    return next((widened for term, widened in other.items() if term in has), CONTEXT)


def _is(text: str, folded: str) -> bool:
    # ASCII stays as long as it is when it is folded: most texts need not be.
    return (len(text) == len(folded) or not text.isascii()) and fold(text) == folded


def _phrase(asked: Sequence[str], has: Sequence[str]) -> bool:
    size = len(asked)
    if size < 2:
        return False
    return any(list(has[place : place + size]) == list(asked) for place in range(len(has) - size + 1))
