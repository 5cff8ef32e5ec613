"""Vectors in memory: the nearest, seen with their neighbours, however they came in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from polymnia.search.vectors import AFTER, BEFORE, EARLIER, Row, VectorIndex, as_bytes

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


def test_signs_find_what_exact_search_finds() -> None:
    centres = vectors(40, 3)
    found = vectors(6_000, 4) + 2 * centres[np.random.default_rng(5).integers(0, 40, 6_000)]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    given_rows = rows(found, [0] * 6_000)
    exact, quick = VectorIndex(SIZE), VectorIndex(SIZE, exact=100)
    exact.add(given_rows)
    quick.add(given_rows[:50])
    quick.add(given_rows[50:])
    shared = [
        len(exact.nearest(question, 20).keys() & quick.nearest(question, 20).keys()) / 20 for question in found[::300]
    ]
    assert sum(shared) / len(shared) > 0.95


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
