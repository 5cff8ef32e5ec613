"""What a ranking is worth: recall, reciprocal rank, and gain discounted by place."""

from collections.abc import Mapping, Sequence
from math import log2

from msgspec import Struct

DEPTHS = (1, 5, 10, 20)


class Score(Struct, frozen=True):
    """Of one ranking, or the mean of many."""

    recall: tuple[float, ...]  # at DEPTHS
    reciprocal_rank: float
    gain: float  # at ten places, of the best possible


def score(ranked: Sequence[str], answers: Mapping[str, int]) -> Score:
    """Return the scores of a ranking of labels for a question with these answers."""
    recall = tuple([len(set(ranked[:depth]) & set(answers)) / len(answers) for depth in DEPTHS])
    rank = next((1 / place for place, label in enumerate(ranked, 1) if label in answers), 0.0)
    best = _gain(sorted(answers.values(), reverse=True))
    return Score(recall, rank, _gain([answers.get(label, 0) for label in ranked]) / best)


def mean(scores: Sequence[Score]) -> Score:
    """Their mean."""
    count = len(scores)
    recall = tuple(
        [sum(column) / count for column in zip(*[each.recall for each in scores], strict=True)]
    )
    rank = sum([each.reciprocal_rank for each in scores]) / count
    return Score(recall, rank, sum([each.gain for each in scores]) / count)


def _gain(gains: Sequence[int]) -> float:
    return sum([gain / log2(place + 1) for place, gain in enumerate(gains[:10], 1)])
