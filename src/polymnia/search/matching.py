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

    It agrees with an FTS5 index of the stems, except that a prefix is compared with the words as
    they are written.
    """
    return _Passage(texts).matches(expression, None)


def is_exact(expression: Expression) -> bool:
    """Return True when an index of stems finds exactly the passages that match.

    Otherwise it finds more, and `matches` must check each of them: the index has stems, so it
    does not know how a word began, and it has pairs of characters in place of unspaced text.
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

    `match` returns the entities that have a matching passage, with the score of the best one; less
    is better. One passage must match the whole expression, but words joined by AND may be in
    different passages of an entity. So may mere words. If no entity has them all, return entities
    with some of them, those with most first.
    """
    listed = mere_words(expression)
    words = without_stop_words(listed) if listed else _conjuncts(expression)
    if words:
        scores_by_word = [match(word) for word in dict.fromkeys(words)]
        return _with_most(scores_by_word, limit, requires_all=not listed)
    scores = match(expression)
    return sorted(scores, key=scores.__getitem__)[:limit]


def _conjuncts(expression: Expression) -> Sequence[Phrase] | None:
    """Return the phrases that AND joins; None when the expression is anything else."""
    if isinstance(expression, Phrase):
        return None if expression.initial else [expression]
    if not isinstance(expression, And):
        return None
    phrases: list[Phrase] = []
    for part in expression.parts:
        inner = _conjuncts(part)
        if not inner:
            return None
        phrases += inner
    return phrases or None


def _with_most(
    scores_by_word: Sequence[Mapping[Key, float]], limit: int | None, *, requires_all: bool
) -> list[Key]:
    """Return the entities that have all words; if there are none, those with most come first."""
    counts = Counter(entity for scores in scores_by_word for entity in scores)
    most = max(counts.values(), default=0)
    words = len(scores_by_word)
    if most == words or requires_all:
        counts = Counter({entity: count for entity, count in counts.items() if count == words})
    totals: dict[Key, float] = {}
    for entity in counts:
        totals[entity] = sum(scores.get(entity, 0.0) for scores in scores_by_word)
    return sorted(counts, key=lambda entity: (-counts[entity], totals[entity]))[:limit]


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
                searched = self._searched_columns(columns)
                return any(self._has_near(expression, column) for column in searched)
            case Column():
                both = expression.columns if columns is None else expression.columns & columns
                return self.matches(expression.expression, both)
            case And():
                if not expression.parts:
                    return False
                return all(self.matches(part, columns) for part in expression.parts)
            case Or():
                return any(self.matches(part, columns) for part in expression.parts)
            case Not():
                if not self.matches(expression.wanted, columns):
                    return False
                return not self.matches(expression.unwanted, columns)

    def _has(self, phrase: Phrase, columns: Columns) -> bool:
        searched = self._searched_columns(columns)
        if phrase.initial:
            texts = [column for column in searched if column != PARTS]
            return any(self._starts(phrase, column)[:1] == [0] for column in texts)
        if any(self._starts(phrase, column) for column in searched):
            return True
        return self._contains(phrase.runs, columns)

    def _contains(self, runs: tuple[str, ...], columns: Columns) -> bool:
        if not runs:
            return False
        for column, text in self._texts.items():
            if columns is None or column in columns:
                composed = normalize("NFC", text)
                if all(run in composed for run in runs):
                    return True
        return False

    def _has_near(self, near: Near, column: str) -> bool:
        """Return True when all phrases start close enough before the start of one, as in FTS5."""
        starts_by_phrase: list[tuple[list[int], int]] = []
        lasts: set[int] = set()
        for phrase in near.phrases:
            starts = self._starts(phrase, column)
            if not starts:
                return False
            starts_by_phrase.append((starts, near.distance + len(phrase.words)))
            lasts.update(starts)
        for last in lasts:
            if all(_has_between(starts, last - reach, last) for starts, reach in starts_by_phrase):
                return True
        return False

    def _starts(self, phrase: Phrase, column: str) -> list[int]:
        """Return where the phrase begins in the column."""
        if not phrase.words:
            return []
        whole_words = phrase.words[:-1] if phrase.prefix else phrase.words
        stems = _stems(whole_words)
        starts = []
        if phrase.prefix:
            for end, word in enumerate(self._words_of(column)):
                if end >= len(stems) and word.startswith(phrase.words[-1]):
                    starts.append(end - len(stems))
        else:
            for start, stem in enumerate(self._stems_of(column)):
                if stem == stems[0]:
                    starts.append(start)
        if len(phrase.words) == 1:
            return starts
        column_stems = self._stems_of(column)
        return [start for start in starts if column_stems[start : start + len(stems)] == stems]

    def _searched_columns(self, columns: Columns) -> list[str]:
        if columns is None:
            return [*self._texts, PARTS]
        return [column for column in self._texts if column in columns]

    def _stems_of(self, column: str) -> list[str]:
        if column not in self._stems:
            self._stems[column] = stems_of(self._text(column))
        return self._stems[column]

    def _words_of(self, column: str) -> list[str]:
        if column not in self._words:
            self._words[column] = words_of(self._text(column))
        return self._words[column]

    def _text(self, column: str) -> str:
        if column == PARTS:
            return parts_of("\n".join(self._texts.values()))
        return self._texts[column]


@lru_cache(maxsize=1024)
def _stems(words: tuple[str, ...]) -> list[str]:
    return stems_of(" ".join(words))


def _has_between(numbers: list[int], low: int, high: int) -> bool:
    position = bisect_left(numbers, low)
    return position < len(numbers) and numbers[position] <= high
