"""Vectors in memory: the nearest, seen with their neighbours, however they came in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from polymnia.search.vectors import AFTER, BEFORE, EARLIER, Row, VectorIndex, as_bytes
from tests.search.crowds import crowd

SIZE = 70


def vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    found = np.random.default_rng(seed).normal(size=(count, SIZE)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def rows(found: NDArray[np.float32], valid_at: list[int]) -> list[Row]:
    blobs = as_bytes(found)
    return [Row(place + 1, place % 3, valid_at[place], place, blobs[place]) for place in range(len(found))]


def test_the_nearest_come_first_with_their_cosines() -> None:
    found = vectors(50)
    index = VectorIndex(SIZE)
    index.add(rows(found, [0] * 50))
    near = index.nearest(found[7], 5)
    expected = np.argsort(-(found @ found[7]))[:5] + 1
    assert list(near) == expected.tolist()
    assert near[8] == pytest.approx(1, abs=1e-3)


def test_a_vector_is_seen_with_its_neighbours_in_the_conversation() -> None:
    found = vectors(6)
    index = VectorIndex(SIZE)
    index.add(rows(found, [5, 5, 5, 5, 9, 0]))
    mixed = found[2] + BEFORE * found[1] + EARLIER * found[0] + AFTER * found[3]
    question = vectors(1, 9)[0]
    cosines = index.cosines(question, [3, 5, 6, 99])
    assert cosines[3] == pytest.approx(float(question @ mixed / np.linalg.norm(mixed)), abs=2e-3)
    assert cosines[5] == pytest.approx(float(question @ found[4]), abs=2e-3)
    assert cosines[6] == pytest.approx(float(question @ found[5]), abs=2e-3)
    assert 99 not in cosines


@settings(deadline=None)
@given(st.data())
def test_it_is_the_same_however_the_vectors_came_in(data: st.DataObject) -> None:
    found = vectors(12)
    given_rows = rows(found, [data.draw(st.sampled_from([0, 5, 9])) for _ in range(12)])
    gone = data.draw(st.sets(st.integers(1, 12), max_size=4))
    index = VectorIndex(SIZE)
    for row in data.draw(st.permutations(given_rows)):
        index.add([row])
    index.remove(gone)
    at_once = VectorIndex(SIZE)
    at_once.add([row for row in given_rows if row.place not in gone])
    question = vectors(1, 9)[0]
    mine, theirs = index.nearest(question, 12), at_once.nearest(question, 12)
    assert mine.keys() == theirs.keys()
    assert all(mine[place] == pytest.approx(theirs[place], abs=1e-5) for place in mine)


def test_groups_are_an_exact_mask() -> None:
    found = vectors(30)
    index = VectorIndex(SIZE)
    index.add(rows(found, [0] * 30))
    near = index.nearest(found[0], 30, [1])
    assert sorted(near) == [place + 1 for place in range(30) if place % 3 == 1]
    assert index.nearest(found[0], 30, []) == {}


def by_signs_and_exactly(found: NDArray[np.float32], valid_at: list[int]) -> tuple[VectorIndex, VectorIndex]:
    """Two indexes of the same vectors; those of the first came in parts, the signs beginning with the second."""
    given_rows = rows(found, valid_at)
    quick, exact = VectorIndex(found.shape[1], exact=100), VectorIndex(found.shape[1])
    for part in (given_rows[:50], given_rows[50:5_000], given_rows[5_000:5_003], given_rows[5_003:]):
        quick.add(part)
    exact.add(given_rows)
    return quick, exact


def shared(quick: VectorIndex, exact: VectorIndex, questions: NDArray[np.float32], groups: list[int] | None) -> float:
    """Which share of the nearest ten is found by signs."""
    pairs = [[set(index.nearest(question, 10, groups)) for index in (quick, exact)] for question in questions]
    return sum(len(mine & theirs) / len(theirs) for mine, theirs in pairs) / len(pairs)


@pytest.mark.parametrize("groups", [None, [1]], ids=["all", "a third"])
@pytest.mark.parametrize("offset", [0.0, 1.5], ids=["all around", "on one side"])
@pytest.mark.parametrize("together", [1, 4], ids=["alone", "in conversations"])
def test_signs_find_what_exact_search_finds(groups: list[int] | None, offset: float, together: int) -> None:
    found, questions = crowd(6_000, 384, offset=offset)
    valid_at = [0 if together == 1 else 1 + place // together for place in range(6_000)]
    quick, exact = by_signs_and_exactly(found, valid_at)
    assert shared(quick, exact, questions, groups) >= 0.99


def test_what_is_removed_is_not_found_by_its_signs_and_what_came_since_is() -> None:
    found, questions = crowd(6_000, 384)
    quick, exact = by_signs_and_exactly(found, [0] * 6_000)
    gone = list(exact.nearest(questions[0], 5))
    for index in (quick, exact):
        index.remove(gone)
        index.add([Row(7_000, 0, 0, 7_000, as_bytes(questions[:1])[0])])
    near = quick.nearest(questions[0], 10)
    assert next(iter(near)) == 7_000
    assert not near.keys() & set(gone)
    assert shared(quick, exact, questions, None) >= 0.99


def test_few_that_a_filter_leaves_are_compared_exactly() -> None:
    found, questions = crowd(6_000, 384)
    given_rows = [Row(place + 1, place // 100, 0, place, row) for place, row in enumerate(as_bytes(found))]
    quick, exact = VectorIndex(384, exact=100), VectorIndex(384)
    for index in (quick, exact):
        index.add(given_rows)
    for question in questions:
        assert quick.nearest(question, 50, [7, 8]) == pytest.approx(exact.nearest(question, 50, [7, 8]), abs=1e-4)


def test_neighbours_of_a_replaced_vector_forget_the_old_one() -> None:
    own = np.eye(8, dtype=np.float32)
    told = rows(own[:3], [77, 77, 77])
    index, fresh = VectorIndex(8), VectorIndex(8)
    index.add(told)
    again = Row(told[1].place, 0, 77, 99, as_bytes(own[5:6])[0])
    index.add([again])
    fresh.add([told[0], told[2], again])
    places = [row.place for row in told]
    assert index.cosines(own[1], places) == fresh.cosines(own[1], places)


def test_an_empty_index_has_nothing_near() -> None:
    assert VectorIndex(SIZE).nearest(vectors(1)[0], 5) == {}
    assert VectorIndex(SIZE).cosines(vectors(1)[0], [1]) == {}


def test_a_new_vector_takes_the_place_of_the_old() -> None:
    found = vectors(2)
    index = VectorIndex(SIZE)
    index.add([Row(1, 1, 0, 0, as_bytes(found)[0])])
    index.add([Row(1, 1, 0, 0, as_bytes(found)[1])])
    assert len(index) == 1
    assert index.cosines(found[1], [1])[1] == pytest.approx(1, abs=1e-3)
