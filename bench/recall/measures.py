"""What a ranking is worth: recall, reciprocal rank, gain discounted by place, and sessions found.

A measure that a question does not have, because no turn or no session is marked, is None.
"""

from collections.abc import Callable, Iterable, Sequence
from math import log2
from random import Random

from msgspec import Struct

from bench.recall.questions import Asked

DEPTHS = (1, 5, 10, 20)
_RESAMPLES = 1000


class Score(Struct, frozen=True):
    """The measures of the ranking of one question."""

    recall: tuple[float, ...] | None  # at DEPTHS
    reciprocal_rank: float | None
    gain: float | None  # at ten places, of the best possible
    any_at_1: float | None  # by session: LongMemEval's measures
    any_at_5: float | None
    all_at_5: float | None


class Measure(Struct, frozen=True):
    """A column of the table."""

    head: str
    value: Callable[[Score], float | None]
    has_interval: bool = False


def _recall_at(place: int) -> Callable[[Score], float | None]:
    return lambda score: None if score.recall is None else score.recall[place]


MEASURES = (
    *(
        Measure(f"R@{depth}", _recall_at(place), has_interval=depth in (1, 10))
        for place, depth in enumerate(DEPTHS)
    ),
    Measure("MRR", lambda score: score.reciprocal_rank),
    Measure("nDCG@10", lambda score: score.gain),
    Measure("any@1", lambda score: score.any_at_1),
    Measure("any@5", lambda score: score.any_at_5),
    Measure("all@5", lambda score: score.all_at_5),
)


def score(ranked: Sequence[str], asked: Asked) -> Score:
    """Return the measures of a ranking of labels for a question."""
    recall, rank, gain = None, None, None
    if asked.answers:
        recall = tuple(_recall(ranked[:depth], asked) for depth in DEPTHS)
        rank = next(
            (1 / place for place, label in enumerate(ranked, 1) if label in asked.answers), 0.0
        )
        best = _gain(sorted(asked.answers.values(), reverse=True))
        gain = _gain([asked.answers.get(label, 0) for label in ranked]) / best
    if not asked.sessions:
        return Score(recall, rank, gain, None, None, None)
    sessions = list(dict.fromkeys(label.rpartition(":")[0] for label in ranked))
    first_five = set(sessions[:5])
    return Score(
        recall,
        rank,
        gain,
        any_at_1=float(not asked.sessions.isdisjoint(sessions[:1])),
        any_at_5=float(not asked.sessions.isdisjoint(first_five)),
        all_at_5=float(asked.sessions <= first_five),
    )


def values_of(measure: Measure, scores: Iterable[Score]) -> list[float]:
    """Return a measure of the questions that have it."""
    values = (measure.value(score) for score in scores)
    return [value for value in values if value is not None]


def mean(values: Sequence[float]) -> float:
    """Return the mean, or 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by resampling the questions.

    It is the same in every run.
    """
    chance = Random(7)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def _recall(ranked: Sequence[str], asked: Asked) -> float:
    return len(asked.answers.keys() & set(ranked)) / len(asked.answers)


def _gain(gains: Sequence[int]) -> float:
    return sum(gain / log2(place + 1) for place, gain in enumerate(gains[:10], 1))
