"""Matching: which passages and entities match a query expression."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar
from unicodedata import normalize

from polymnia.search.expression import (
    And,
    Column,
    Expression,
    Near,
    Not,
    Or,
    Phrase,
    mere_words,
    without_stop_words,
)
from polymnia.search.terms import parts_of, stems_of, words_of

# The column of what `parts_of` returns. Only phrases without a column filter are looked for in it.
PARTS = "parts"

Key = TypeVar("Key")
Columns = frozenset[str] | None


def matches(expression: Expression, texts: Mapping[str, str]) -> bool:
    """Return True when a passage with these texts, by column, matches.

    It agrees with an FTS5 index of the stems, except that a prefix is compared with the words as they are written.
    """
    return _Passage(texts).matches(expression, None)


def is_exact(expression: Expression) -> bool:
    """Return True when an index of stems finds exactly the passages that match.

    Otherwise it finds more, and `matches` must decide for each: the index has stems, so it cannot tell
    how a word began, and it has pairs of characters in place of unspaced text.
    """
    match expression:
        case Phrase():
            return not expression.prefix and not expression.runs
        case Column():
            return is_exact(expression.expression)
        case Near():
            return all(map(is_exact, expression.phrases))
        case And() | Or():
            return all(map(is_exact, expression.parts))
        case Not():
            return is_exact(expression.wanted) and is_exact(expression.unwanted)


def match_entities(
    expression: Expression,
    match: Callable[[Expression], Mapping[Key, float]],
    limit: int | None = None,
) -> list[Key]:
    """Return the entities that match, best first.

    `match` returns the entities that have a matching passage, with the score of the best one; less is better. One
    passage must match the whole expression, but words joined by AND may be in different passages of an entity. So may
    mere words; if no entity has them all, return entities with some of them, those with most first.
    """
    listed = mere_words(expression)
    words = without_stop_words(listed) if listed else _conjuncts(expression)
    if words:
        return _with_most(
            [match(word) for word in dict.fromkeys(words)], limit, all_wanted=not listed
        )
    scores = match(expression)
    return sorted(scores, key=scores.__getitem__)[:limit]


def _conjuncts(expression: Expression) -> Sequence[Phrase] | None:
    """Return the phrases that AND joins; None when the expression is anything else."""
    if isinstance(expression, Phrase):
        return None if expression.initial else [expression]
    if not isinstance(expression, And):
        return None
    parts = [_conjuncts(part) for part in expression.parts]
    return [word for part in parts for word in part or ()] if all(parts) else None


def _with_most(
    found: Sequence[Mapping[Key, float]], limit: int | None, *, all_wanted: bool
) -> list[Key]:
    """Return the entities that are in all of the results; if there are none, those in most come first."""
    counts = Counter([entity for scores in found for entity in scores])
    most = max(counts.values(), default=0)
    if most == len(found) or all_wanted:
        counts = Counter({entity: count for entity, count in counts.items() if count == len(found)})
    scores = {entity: sum([each.get(entity, 0.0) for each in found]) for entity in counts}
    return sorted(counts, key=lambda entity: (-counts[entity], scores[entity]))[:limit]


class _Passage:
    """The columns of one passage, each split into words when a phrase is first looked for in it."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._stems: dict[str, list[str]] = {}
        self._words: dict[str, list[str]] = {}

    def matches(self, expression: Expression, columns: Columns) -> bool:
        match expression:
            case Phrase():
                return self._has(expression, columns)
            case Near():
                return any(
                    self._has_near(expression, column) for column in self._searched_columns(columns)
                )
            case Column():
                both = expression.columns if columns is None else expression.columns & columns
                return self.matches(expression.expression, both)
            case And():
                return all(self.matches(part, columns) for part in expression.parts) and bool(
                    expression.parts
                )
            case Or():
                return any(self.matches(part, columns) for part in expression.parts)
            case Not():
                return self.matches(expression.wanted, columns) and not self.matches(
                    expression.unwanted, columns
                )

    def _has(self, phrase: Phrase, columns: Columns) -> bool:
        searched = self._searched_columns(columns)
        if phrase.initial:
            return any(
                self._starts(phrase, column)[:1] == [0] for column in searched if column != PARTS
            )
        return any(self._starts(phrase, column) for column in searched) or self._contains(
            phrase.runs, columns
        )

    def _contains(self, runs: tuple[str, ...], columns: Columns) -> bool:
        texts = (
            [text for column, text in self._texts.items() if columns is None or column in columns]
            if runs
            else []
        )
        return any(all(run in normalize("NFC", text) for run in runs) for text in texts)

    def _has_near(self, near: Near, column: str) -> bool:
        """Return True when a start of one phrase has starts of all others close enough before it, as in FTS5."""
        starts = [self._starts(phrase, column) for phrase in near.phrases]
        reach = [near.distance + len(phrase.words) for phrase in near.phrases]
        lasts = sorted({start for each in starts for start in each}) if all(starts) else []
        return any(
            all(
                _has_between(each, last - back, last)
                for each, back in zip(starts, reach, strict=True)
            )
            for last in lasts
        )

    def _starts(self, phrase: Phrase, column: str) -> list[int]:
        """Return where the phrase begins in the column."""
        if not phrase.words:
            return []
        stems = _stems(phrase.words[:-1] if phrase.prefix else phrase.words)
        if phrase.prefix:
            last = phrase.words[-1]
            ends = [
                position
                for position, word in enumerate(self._words_of(column))
                if word.startswith(last)
            ]
            starts = [end - len(stems) for end in ends if end >= len(stems)]
        else:
            first = stems[0]
            starts = [
                position for position, stem in enumerate(self._stems_of(column)) if stem == first
            ]
        if len(phrase.words) == 1:
            return starts
        return [
            start for start in starts if self._stems_of(column)[start : start + len(stems)] == stems
        ]

    def _searched_columns(self, columns: Columns) -> list[str]:
        return (
            [*self._texts, PARTS]
            if columns is None
            else [column for column in self._texts if column in columns]
        )

    def _stems_of(self, column: str) -> list[str]:
        if column not in self._stems:
            self._stems[column] = stems_of(self._text(column))
        return self._stems[column]

    def _words_of(self, column: str) -> list[str]:
        if column not in self._words:
            self._words[column] = words_of(self._text(column))
        return self._words[column]

    def _text(self, column: str) -> str:
        return parts_of("\n".join(self._texts.values())) if column == PARTS else self._texts[column]


@lru_cache(maxsize=1024)
def _stems(words: tuple[str, ...]) -> list[str]:
    return stems_of(" ".join(words))


def _has_between(numbers: list[int], low: int, high: int) -> bool:
    position = bisect_left(numbers, low)
    return position < len(numbers) and numbers[position] <= high
