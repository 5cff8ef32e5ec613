"""Signs choose candidates: the nearest are among them, and filters are exact."""

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.search import signs
from polymnia.search.signs import Signs, enough
from tests.search.crowds import Floats, crowd

COUNT = 12_000


def kept(vectors: Floats) -> Signs:
    found = Signs(vectors, len(vectors))
    found.put(slice(0, len(vectors)), vectors)
    return found


def found_of(candidates: NDArray[np.int64], cosines: Floats, wanted: int) -> float:
    """Which share of the nearest so many is among the candidates."""
    nearest = np.argsort(-cosines, kind="stable")[:wanted]
    return len(np.intersect1d(candidates, nearest)) / wanted


@pytest.mark.parametrize("offset", [0.0, 1.5], ids=["all around", "on one side"])
@pytest.mark.parametrize("size", [384, 100, 1536])
def test_the_nearest_are_among_the_candidates(size: int, offset: float) -> None:
    vectors, questions = crowd(COUNT, size, offset=offset)
    held = kept(vectors)
    shares = [found_of(held.candidates(each, COUNT, 10), vectors @ each, 10) for each in questions]
    assert sum(shares) / len(shares) >= 0.99


def test_most_are_passed_over() -> None:
    vectors, questions = crowd(COUNT, 384)
    candidates = kept(vectors).candidates(questions[0], COUNT, 10)
    assert len(set(candidates.tolist())) == len(candidates) == enough(10)


def test_candidates_are_only_among_those_that_count() -> None:
    vectors, questions = crowd(COUNT, 384)
    among = np.arange(COUNT) % 5 == 0
    held = kept(vectors)
    shares = []
    for each in questions:
        candidates = held.candidates(each, COUNT, 10, among)
        assert among[candidates].all()
        shares.append(found_of(candidates, np.where(among, vectors @ each, -1), 10))
    assert sum(shares) / len(shares) >= 0.99


@pytest.mark.parametrize("offset", [0.0, 1.5], ids=["all around", "on one side"])
def test_what_has_the_cosine_that_it_takes_is_among_fewer_candidates(offset: float) -> None:
    vectors, questions = crowd(COUNT, 384, offset=offset)
    held = kept(vectors)
    shares, fewer = [], 0
    for each in questions:
        cosines = vectors @ each
        candidates = held.candidates(each, COUNT, 10, cosine=float(np.sort(cosines)[-3]))
        shares.append(found_of(candidates, cosines, 3))
        fewer += len(candidates) < enough(10)
    assert sum(shares) / len(shares) >= 0.99
    assert fewer > len(questions) / 2


def test_what_came_later_and_lies_elsewhere_is_found_by_the_cosine_it_takes() -> None:
    chance = np.random.default_rng(7)
    noise = chance.normal(size=(6_000, 384)) * 0.7 / np.sqrt(384)
    vectors = np.eye(384)[np.arange(6_000) // 5_000] + noise  # the last thousand are about something else
    found = np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
    held = Signs(found[:5_000], len(found))
    held.put(slice(0, 5_000), found[:5_000])
    held.put(slice(5_000, 6_000), found[5_000:])
    nearly = found + chance.normal(size=found.shape).astype(np.float32) * 0.2 / np.sqrt(384)
    missed = [row for row in range(5_000, 6_000, 50) if row not in held.candidates(nearly[row], 6_000, 10, cosine=0.9)]
    assert missed == []


def test_few_that_count_are_all_candidates() -> None:
    vectors, questions = crowd(COUNT, 384)
    among = np.zeros(COUNT, np.bool_)
    among[[3, 77, COUNT - 1]] = True
    assert kept(vectors).candidates(questions[0], COUNT, 10, among).tolist() == [3, 77, COUNT - 1]


def test_rows_beyond_the_size_are_not_looked_at() -> None:
    vectors, _ = crowd(COUNT, 384)
    candidates = kept(vectors).candidates(vectors[COUNT - 1], COUNT // 2, 10)
    assert candidates.max() < COUNT // 2


def test_a_row_that_was_moved_or_put_anew_is_found_where_it_is() -> None:
    vectors, questions = crowd(COUNT, 384)
    held = kept(vectors)
    held.put(np.array([5]), questions[:1])
    assert 5 in held.candidates(questions[0], COUNT, 10)
    held.move(5, COUNT - 1)
    held.put(np.array([5]), -questions[:1])
    candidates = held.candidates(questions[0], COUNT, 10)
    assert COUNT - 1 in candidates
    assert 5 not in candidates


def test_what_was_there_stays_when_room_is_made() -> None:
    vectors, questions = crowd(COUNT, 384)
    held = kept(vectors[:-1])
    held.make_room(COUNT)
    held.put(slice(COUNT - 1, COUNT), vectors[-1:])
    whole = Signs(vectors[:-1], COUNT)
    whole.put(slice(0, COUNT), vectors)
    mine, theirs = (set(each.candidates(questions[0], COUNT, 10).tolist()) for each in (held, whole))
    assert mine == theirs


def test_vectors_that_are_all_alike_are_candidates_of_equal_right() -> None:
    alike = np.repeat(crowd(1, 384)[0], COUNT, axis=0)
    assert len(kept(alike).candidates(alike[0], COUNT, 10)) == enough(10)


def test_a_sample_that_is_unlike_the_rest_does_not_mislead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs, "_SAMPLE", 4)
    counts = np.full(1000, 9, np.uint8)
    counts[::250] = 1  # exactly what is sampled
    assert len(signs._least(counts, 100, 64)) >= 100
