"""Scoring: what speaks for each candidate, on one scale, and the sum that ranks them."""

from collections.abc import Collection, Mapping, Sequence
from math import inf, log, sqrt

from msgspec import Struct

from polymnia.model import Signals, WordCounts
from polymnia.search.terms import plain

# How soon a repeated word counts no more, and how much a long text is held back.
K1, B = 1.5, 0.6


class Weights(Struct, frozen=True):
    """What each signal counts. `words`, `before` and `meaning` are standardised first."""

    words: float
    before: float
    meaning: float
    entity: float
    linked: float
    date: float
    tells_time: float
    length: float
    asks: float


# Fitted on five conversations, then frozen: docs/search.md says how and with which command.
WORDS_ONLY = Weights(0.8, 0.5, 0.0, 2.7, 0.5, 6.8, 1.0, 0.5, -0.65)
WITH_MEANING = Weights(0.5, 0.28, 1.0, 3.2, 0.5, 6.2, 2.6, 0.33, -1.1)


class Matcher:
    """BM25 of texts for some weighted terms, given how common they are."""

    def __init__(self, terms: Mapping[str, float], counts: WordCounts) -> None:
        self._weights = {term: share * _rarity(counts, term) for term, share in terms.items()}
        self._average = counts.words / counts.passages if counts.passages else 1.0
        self._in_names: dict[str, Collection[str]] = {}

    def score(self, terms: Sequence[str], name: str = "") -> float:
        """The score of a text that has these terms, of an entity of that name."""
        has, in_name = self._weights.keys() & terms, self._in_name(name)
        if not has and not in_name:  # nearly all that meaning proposes
            return 0.0
        stretch = K1 * (1 - B + B * len(terms) / self._average)
        total = 0.0
        for term, weight in self._weights.items():
            if term in has:
                count = terms.count(term)
                total += weight * count * (K1 + 1) / (count + stretch)
            elif term in in_name:
                total += weight * _NAME_COUNTS * (K1 + 1) / (_NAME_COUNTS + stretch)
        return total

    def _in_name(self, name: str) -> Collection[str]:
        """Those of the terms that a name has; many passages are of one entity."""
        known = self._in_names.get(name)
        if known is None:
            words = f" {plain(name)}"
            known = self._in_names[name] = [term for term in self._weights if f" {term}" in words]
        return known


# Among few candidates small differences mean nothing: cosines of unrelated texts differ by so much, and words are
# measured by no less than this share of the best.
_LEAST_SPREAD, _LEAST_SHARE, _NO_SPREAD = 0.1, 0.2, 1e-9
# What a common term counts at least, as a share of a measure that never goes below nothing.
_COMMON = 0.5
# A word in the name of its entity says as much of an observation as this many in its text.
_NAME_COUNTS = 0.5


def scores(signals: Sequence[Signals], scale: Sequence[Signals], weights: Weights) -> list[float]:
    """The sums; signals are standardised as they lie in `scale`, so that what is filtered out changes nothing."""
    most = max([each.words for each in scale], default=0.0)
    words = _standard([each.words for each in scale], _LEAST_SHARE * most)
    before = _standard([each.before for each in scale], _LEAST_SHARE * most)
    meaning = _standard([each.meaning for each in scale if each.meaning is not None], _LEAST_SPREAD)
    words_mean, words_share = words[0], weights.words / words[1]
    before_mean, before_share = before[0], weights.before / before[1]
    meaning_mean, meaning_share = meaning[0], weights.meaning / meaning[1]
    return [
        words_share * (each.words - words_mean)
        + before_share * (each.before - before_mean)
        + (meaning_share * (each.meaning - meaning_mean) if each.meaning is not None else 0.0)
        + weights.entity * each.entity
        + weights.linked * each.linked
        + weights.date * each.date
        + weights.tells_time * each.tells_time
        + weights.length * each.length
        + weights.asks * each.asks
        for each in signals
    ]


def _rarity(counts: WordCounts, term: str) -> float:
    """What a term says by being rare; one that half of the passages have still says something, in a small memory."""
    having = counts.having.get(term, 0)
    odds = (counts.passages - having + 0.5) / (having + 0.5)
    return max(log(odds), _COMMON * log(1 + odds))


def _standard(values: Sequence[float], least: float = 0.0) -> tuple[float, float]:
    """Mean and deviation, which is not below the least; where nothing differs it is endless, so that nothing counts."""
    if not values:
        return 0.0, inf
    mean = sum(values) / len(values)
    deviation = max(sqrt(sum([(value - mean) ** 2 for value in values]) / len(values)), least)
    return mean, deviation if deviation > _NO_SPREAD else inf


def length_of(text: str) -> float:
    """How much a text says, as the logarithm of its words."""
    return log(1 + len(text.split()))
