"""Looking at a part of every vector first finds what looking at all of them finds."""

import random
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

from polymnia.search.embedding import length, packed  # noqa: E402  # only where numpy is
from polymnia.stores.sqlite import blend  # noqa: E402

DIMENSION = 12
COUNT = 600


def crowd(chance: random.Random, spread: float = 0.4) -> list[bytes]:
    """Vectors around a few directions, as texts about a few things have."""
    centres = [[chance.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(8)]
    around = [[value + chance.gauss(0, spread) for value in chance.choice(centres)] for _ in range(COUNT)]
    return [packed(each, DIMENSION, "vector") for each in around]


def kept(vectors: list[bytes]) -> blend.Vectors:
    held = blend.Vectors(1, DIMENSION)
    held.add(list(range(1, COUNT + 1)), vectors, [length(each) for each in vectors])
    return held


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("words", [0, 3, 40])
def test_the_best_are_the_same(seed: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    vectors = crowd(chance)
    held = kept(vectors)
    # Some of the notes that have the words have no vector.
    matched = [(note, -chance.random()) for note in chance.sample(range(1, COUNT + 100), words)]
    unit: Any = blend.units(vectors[:1], [length(vectors[0])])[0]
    monkeypatch.setattr(blend, "_MANY", 0)
    quick = held.best(unit, matched, None, 10)
    monkeypatch.setattr(blend, "_MANY", COUNT)
    whole = held.best(unit, matched, None, 10)
    assert best_ten(quick) == pytest.approx(best_ten(whole))


def test_most_vectors_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blend, "_MANY", 2)
    vectors = crowd(random.Random(1), spread=0.1)
    held = kept(vectors)
    unit = blend.units(vectors[:1], [length(vectors[0])])[0]
    assert held._best_of_promising(unit, [], 10) is not None


def best_ten(scores: dict[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: -item[1])[:10])
