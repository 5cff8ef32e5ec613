"""The same questions under harder conditions.

How far a ranking depends on what a benchmark happens to offer.
"""

import random
import re
from calendar import month_name
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from bench.recall.questions import Asked, Case
from polymnia.search.question import content_words, text_without

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MONTHS = month_name[1:]
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b")
_QUESTION_WORDS = re.compile(
    r"^(?:what|when|where|which|who|whose|why|how)(?:\s+(?:did|do|does|is|are|was|were|has|have|had|will|would|can|could))?\s+",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")

# Makes other phrasings of a question by a fixed rule.
Phrasing = Callable[[str], list[str]]
Variant = Callable[[list[Case]], list[Case]]


def without_times(cases: list[Case]) -> list[Case]:
    """Write everything without a valid time, as a client does that knows none."""
    return [replace(case, told=[replace(told, valid_at=0) for told in case.told]) for case in cases]


def with_wrong_names(cases: list[Case]) -> list[Case]:
    """Ask for the other of the two speakers of a conversation."""
    return [_ask(case, partial(_swap_names, case)) for case in cases]


def without_names(cases: list[Case]) -> list[Case]:
    """Ask without the names of the speakers."""
    return [_ask(case, partial(_remove_names, case)) for case in cases]


def with_typos(cases: list[Case]) -> list[Case]:
    """Make one typing mistake in each question.

    A letter missing, wrong, too many or swapped with the next.
    """
    chance = random.Random(3)
    return [_ask(case, lambda text: _mistype(text, chance)) for case in cases]


def as_keywords(cases: list[Case]) -> list[Case]:
    """Ask without stop words."""
    return [_ask(case, lambda text: " ".join(content_words(text)) or text) for case in cases]


def with_dates(cases: list[Case]) -> list[Case]:
    """Ask only the questions that name a month."""
    return [
        replace(case, asked=[item for item in case.asked if _MONTH.search(item.text)])
        for case in cases
    ]


def with_wrong_dates(cases: list[Case]) -> list[Case]:
    """Ask the questions that name a month for one five months later."""
    return [_ask(case, lambda text: _MONTH.sub(_shift_month, text)) for case in with_dates(cases)]


def in_one_store(cases: list[Case]) -> list[Case]:
    """Write all cases into one memory."""
    told = [
        replace(item, label=f"{case.name} {item.label}") for case in cases for item in case.told
    ]
    asked = [
        Asked(
            item.text,
            item.kind,
            {f"{case.name} {label}": gain for label, gain in item.answers.items()},
        )
        for case in cases
        for item in case.asked
    ]
    return [Case("all", cases[0].kind, told, asked)] if cases else []


def by_session(cases: list[Case]) -> list[Case]:
    """Write one entity per time, with the speaker before each text, as a transcript has it."""
    return [
        replace(
            case,
            told=[
                replace(item, entity=f"session {item.valid_at}", text=f"{item.entity}: {item.text}")
                for item in case.told
            ],
        )
        for case in cases
    ]


VARIANTS: dict[str, Variant] = {
    "plain": lambda cases: cases,
    "no-times": without_times,
    "wrong-names": with_wrong_names,
    "no-names": without_names,
    "typos": with_typos,
    "keywords": as_keywords,
    "dates": with_dates,
    "wrong-dates": with_wrong_dates,
    "one-store": in_one_store,
    "sessions": by_session,
}


PHRASINGS: dict[str, Phrasing] = {
    "none": lambda text: [],
    "keywords": lambda text: [" ".join(content_words(text))],
    "request": lambda text: [f"tell me everything you know about {' '.join(content_words(text))}"],
    "statement": lambda text: [f"I remember that {_QUESTION_WORDS.sub('', text).rstrip(' ?')}."],
}


def _ask(case: Case, change: Callable[[str], str]) -> Case:
    return replace(case, asked=[replace(item, text=change(item.text)) for item in case.asked])


def _swap_names(case: Case, text: str) -> str:
    names = list(dict.fromkeys([told.entity for told in case.told]))
    if len(names) != 2:
        return text
    other = {names[0].lower(): names[1], names[1].lower(): names[0]}
    pattern = "|".join([re.escape(name) for name in names])
    return re.sub(
        rf"\b(?:{pattern})\b", lambda found: other[found[0].lower()], text, flags=re.IGNORECASE
    )


def _shift_month(found: re.Match[str]) -> str:
    return _MONTHS[(_MONTHS.index(found[0]) + 5) % 12]


def _remove_names(case: Case, text: str) -> str:
    return text_without(text, {told.entity for told in case.told})


def _mistype(text: str, chance: random.Random) -> str:
    words = [found for found in _LONG_WORD.finditer(text) if content_words(found[0])]
    if not words:
        return text
    found = chance.choice(words)
    return text[: found.start()] + mistype_word(found[0], chance) + text[found.end() :]


def mistype_word(word: str, chance: random.Random) -> str:
    """Return the word with one mistake.

    It may be the same word, if a letter is swapped with an equal one.
    """
    place, letter = chance.randrange(len(word) - 1), chance.choice(_LETTERS)
    head, tail = word[:place], word[place:]
    mistakes = (
        head + tail[1:],
        head + letter + tail[1:],
        head + letter + tail,
        head + tail[1] + tail[0] + tail[2:],
    )
    return chance.choice(mistakes)
