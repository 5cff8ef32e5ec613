"""Query expressions on PostgreSQL: render them as tsquery, and count matches.

It counts what FTS5 would count, for equal scores. A query finds passages by their stems. Where a
tsquery cannot say everything (how a word began, how far apart phrases are), it finds more, and the
words of the passages decide.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from math import log
from typing import TypeAlias

from msgspec import Struct

from polymnia.search.expression import And, Column, Expression, Near, Not, Or, Phrase
from polymnia.search.matching import PARTS, is_exact
from polymnia.search.terms import (
    index_prefix,
    pairs,
    parts_of,
    stem,
    stems_of,
    words_with_shorter_stems,
)
from polymnia.stores.postgres.words import LABELS, quote

_EVERYWHERE = frozenset(LABELS)


class Stems(Struct, frozen=True):
    """Stems next to each other in one of the columns, which FTS5 calls a phrase and scores."""

    stems: tuple[str, ...]
    columns: frozenset[str]
    prefix: bool = False  # the last one is the beginning of a stem
    initial: bool = False

    @property
    def is_word(self) -> bool:
        """True for a single whole stem anywhere in its columns."""
        return len(self.stems) == 1 and not self.prefix and not self.initial


class Close(Struct, frozen=True):
    """Phrases in one column with at most `distance` words between them."""

    phrases: tuple[Stems, ...]
    distance: int


class Every(Struct, frozen=True):
    """All of the parts."""

    parts: tuple["Query", ...]


class AnyOf(Struct, frozen=True):
    """One of the parts or more."""

    parts: tuple["Query", ...]


class Without(Struct, frozen=True):
    """The wanted query without the unwanted one."""

    wanted: "Query"
    unwanted: "Query"


Query: TypeAlias = Stems | Close | Every | AnyOf | Without


def translate(expression: Expression, columns: frozenset[str] | None = None) -> Query | None:
    """Return the expression as a query for stems in these columns (None: in all).

    Return None if nothing can match.
    """
    match expression:
        case Phrase():
            return _any_of(_phrase(expression, columns))
        case Near():
            if not is_exact(expression):
                return translate(And(expression.phrases), columns)
            phrases = [_stems(phrase.words, columns) for phrase in expression.phrases]
            found = tuple([phrase for phrase in phrases if phrase])
            return Close(found, expression.distance) if len(found) == len(phrases) else None
        case Column():
            both = expression.columns if columns is None else expression.columns & columns
            return translate(expression.expression, both)
        case And():
            return _every([translate(part, columns) for part in expression.parts])
        case Or():
            return _any_of([translate(part, columns) for part in expression.parts])
        case Not():
            wanted, unwanted = (
                translate(expression.wanted, columns),
                translate(expression.unwanted, columns),
            )
            # An inexact NOT could drop real matches, so skip it.
            if wanted is None or unwanted is None or not is_exact(expression.unwanted):
                return wanted
            return Without(wanted, unwanted)


def render(query: Query) -> str:
    """Return a tsquery, as text, that finds every passage that matches, and perhaps more."""
    match query:
        case Stems():
            return _render_stems(query)
        case Close():
            return _join(query.phrases, " & ")
        case Every():
            return _join(query.parts, " & ")
        case AnyOf():
            return _join(query.parts, " | ")
        case Without():
            # An inexact NOT could drop real matches, so skip it.
            unwanted = f" & !{render(query.unwanted)}" if _is_exact(query.unwanted) else ""
            return f"({render(query.wanted)}{unwanted})"


def mere_stems(query: Query) -> list[Stems] | None:
    """Return the stems of a query that asks for all or any of some; None for other queries."""
    parts = query.parts if isinstance(query, Every | AnyOf) else (query,)
    words = [part for part in parts if isinstance(part, Stems) and part.is_word]
    return words if len(words) == len(parts) else None


def phrases_of(query: Query) -> Iterator[Stems]:
    """Yield the phrases that a match is scored by."""
    match query:
        case Stems():
            yield query
        case Close():
            yield from query.phrases
        case Every() | AnyOf():
            for part in query.parts:
                yield from phrases_of(part)
        case Without():
            yield from phrases_of(query.wanted)


class PassageWords:
    """The stems of one passage by column."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        parts = parts_of(" ".join([text for text in texts.values() if text]))
        self._stems = {
            column: stems_of(text) for column, text in {**texts, PARTS: parts}.items() if text
        }

    def __len__(self) -> int:
        return sum(map(len, self._stems.values()))

    def count(self, query: Query, weights: Mapping[str, float]) -> list[tuple[Stems, float]] | None:
        """Return how often each phrase that takes part in the match occurs, weighted by column.

        Return None without a match.
        """
        match query:
            case Stems():
                found = sum(
                    [
                        weights[column] * len(starts)
                        for column, starts in self._starts(query).items()
                    ]
                )
                return [(query, found)] if found else None
            case Close():
                return self._count_close(query, weights)
            case Every():
                counts = [self.count(part, weights) for part in query.parts]
                return (
                    None if None in counts else [item for count in counts for item in count or ()]
                )
            case AnyOf():
                return [
                    item for part in query.parts for item in self.count(part, weights) or ()
                ] or None
            case Without():
                return (
                    None
                    if self.count(query.unwanted, weights)
                    else self.count(query.wanted, weights)
                )

    def _count_close(
        self, query: Close, weights: Mapping[str, float]
    ) -> list[tuple[Stems, float]] | None:
        counts = dict.fromkeys(range(len(query.phrases)), 0.0)
        places = [self._starts(phrase) for phrase in query.phrases]
        for column in set.intersection(*[set(place) for place in places]):
            for number, starts in enumerate(
                _close_starts(query, [place[column] for place in places])
            ):
                counts[number] += weights[column] * len(starts)
        return (
            list(zip(query.phrases, counts.values(), strict=True)) if all(counts.values()) else None
        )

    def _starts(self, query: Stems) -> dict[str, list[int]]:
        """Return where the phrase begins, for each column that has it."""
        found = {
            column: _find(query, stems)
            for column, stems in self._stems.items()
            if column in query.columns
        }
        if query.initial:
            found = {column: starts[:1] for column, starts in found.items() if starts[:1] == [0]}
        return {column: starts for column, starts in found.items() if starts}


def rarity(passages: int, having: int) -> float:
    """Return the idf of FTS5: hardly anything for a term that half of all passages have."""
    if passages <= 2 * having:
        return 1e-6
    return log((passages - having + 0.5) / (having + 0.5))


def term_score(count: float, length: int, average: float) -> float:
    """Return BM25 of one term as FTS5 computes it, without its rarity."""
    k1, b = 1.2, 0.75
    return (count * (k1 + 1.0)) / (count + k1 * (1 - b + b * length / average))


def score(
    counts: list[tuple[Stems, float]], rarity: Mapping[Stems, float], length: int, average: float
) -> float:
    """Return BM25 of a passage, given its length and the average length in words."""
    total = 0.0
    for phrase, count in counts:
        total += rarity[phrase] * term_score(count, length, average)
    return total


def _is_exact(query: Query) -> bool:
    """Return True if a tsquery can say exactly what matches."""
    match query:
        case Stems():
            return not query.initial
        case Close():
            return False
        case Every() | AnyOf():
            return all(map(_is_exact, query.parts))
        case Without():
            return _is_exact(query.wanted) and _is_exact(query.unwanted)


def _phrase(phrase: Phrase, columns: frozenset[str] | None) -> list[Query | None]:
    if columns is None and phrase.initial:
        columns = _EVERYWHERE - {PARTS}
    found: list[Query | None] = []
    if phrase.prefix and phrase.words:
        *before, last = phrase.words
        start = stem(index_prefix(last))
        found.append(_stems(before, columns, start, initial=phrase.initial))
        found += [
            _stems([*before, word], columns, initial=phrase.initial)
            for word in words_with_shorter_stems(last)
        ]
    else:
        found.append(_stems(phrase.words, columns, initial=phrase.initial))
    if phrase.runs:
        found.append(_every([_stems(pairs(run), frozenset({PARTS})) for run in phrase.runs]))
    return found


def _stems(
    words: tuple[str, ...] | list[str],
    columns: frozenset[str] | None,
    start: str = "",
    *,
    initial: bool = False,
) -> Stems | None:
    """Return the words as stems, the last one being `start` if that is given.

    Return None if there are no stems.
    """
    stems = tuple(stems_of(" ".join(words))) + ((start,) if start else ())
    wanted = _EVERYWHERE if columns is None else columns
    return Stems(stems, wanted, bool(start), initial) if stems and wanted else None


def _any_of(parts: list[Query | None]) -> Query | None:
    found = tuple([part for part in parts if part is not None])
    return AnyOf(found) if len(found) > 1 else found[0] if found else None


def _every(parts: list[Query | None]) -> Query | None:
    found = tuple([part for part in parts if part is not None])
    if len(found) < len(parts) or not found:
        return None
    return Every(found) if len(found) > 1 else found[0]


def _render_stems(query: Stems) -> str:
    labels = (
        ""
        if query.columns == _EVERYWHERE
        else "".join(sorted([LABELS[column] for column in query.columns]))
    )
    ends = [""] * (len(query.stems) - 1) + ["*" if query.prefix else ""]
    marks = [f":{end}{labels}" if end or labels else "" for end in ends]
    words = [quote(each) + mark for each, mark in zip(query.stems, marks, strict=True)]
    return f"({' <-> '.join(words)})" if len(words) > 1 else words[0]


def _join(parts: tuple[Query, ...] | tuple[Stems, ...], operator: str) -> str:
    return f"({operator.join([render(part) for part in parts])})"


def _find(query: Stems, stems: list[str]) -> list[int]:
    wanted, width = list(query.stems), len(query.stems)
    if query.prefix:
        *before, start = wanted
        ends = [position for position, stem in enumerate(stems) if stem.startswith(start)]
        return [
            end - width + 1
            for end in ends
            if end >= width - 1 and stems[end - width + 1 : end] == before
        ]
    starts = [position for position, each in enumerate(stems) if each == wanted[0]]
    return starts if width == 1 else [at for at in starts if stems[at : at + width] == wanted]


def _close_starts(query: Close, starts: list[list[int]]) -> list[list[int]]:
    """Return those of the starts of each phrase that are close enough to one of every other."""
    reach = [query.distance + len(phrase.stems) for phrase in query.phrases]
    kept: list[set[int]] = [set() for _ in starts]
    for last in sorted({item for phrase in starts for item in phrase}):
        windows = [
            each[bisect_left(each, last - back) : bisect_left(each, last + 1)]
            for each, back in zip(starts, reach, strict=True)
        ]
        if all(windows):
            for found, window in zip(kept, windows, strict=True):
                found.update(window)
    return [sorted(item) for item in kept]
