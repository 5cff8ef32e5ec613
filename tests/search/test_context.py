"""Cosines of passages, alone and together with what was written around them."""

import numpy as np
import pytest

from polymnia.model import Neighbours, Passage
from polymnia.search.context import context_cosines


def direction(*numbers: float) -> bytes:
    vector = np.array(numbers, "<f4")
    return bytes((vector / np.linalg.norm(vector)).data)


def turn(number: int, words: int = 2, by: str = "Ann") -> Passage:
    return Passage(by, "person", number, "word " * words, valid_at=7, id=number)


ASKED, UNRELATED = direction(1, 0, 0), direction(0, 1, 0)


def test_without_neighbours_the_result_is_the_plain_cosine() -> None:
    vectors = {1: direction(1, 1, 0), 2: UNRELATED}
    found = context_cosines(ASKED, ASKED, vectors, [turn(1), turn(2)], {})
    assert found == pytest.approx({1: 2**-0.5, 2: 0.0})


def test_a_matching_neighbour_helps_a_short_text_more_than_a_long_one() -> None:
    vectors = {1: ASKED, 2: UNRELATED, 3: UNRELATED}
    bob = turn(1, by="Bob")
    near = {turn(2).key: Neighbours(before=bob), turn(3).key: Neighbours(before=bob)}
    found = context_cosines(ASKED, ASKED, vectors, [turn(2), turn(3, words=300)], near)
    assert found[2] > 0.65
    assert 0 < found[3] < 0.2


def test_unrelated_neighbours_never_lower_the_cosine() -> None:
    vectors = {1: UNRELATED, 2: ASKED, 3: UNRELATED}
    near = {turn(2).key: Neighbours(before=turn(1, by="Bob"), earlier=turn(3))}
    assert context_cosines(ASKED, ASKED, vectors, [turn(2)], near)[2] == pytest.approx(1)


def test_the_turns_before_count_and_the_one_after_does_not() -> None:
    vectors = {1: ASKED, 2: UNRELATED, 3: UNRELATED, 4: UNRELATED}
    bob, other = turn(1, by="Bob"), turn(5, by="Bob")
    near = {
        turn(2).key: Neighbours(before=bob),
        turn(3).key: Neighbours(before=other, earlier=bob),
        turn(4).key: Neighbours(before=other, after=bob),
    }
    found = context_cosines(ASKED, ASKED, vectors, [turn(2), turn(3), turn(4)], near)
    assert found[2] == pytest.approx(found[3])
    assert found[2] > 0.4 > found[4] == 0


def test_passages_and_neighbours_without_vectors_are_left_out() -> None:
    near = {turn(2).key: Neighbours(before=turn(1))}
    assert context_cosines(ASKED, ASKED, {2: UNRELATED}, [turn(2), turn(3)], near) == pytest.approx(
        {2: 0.0}
    )
    assert context_cosines(ASKED, ASKED, {}, [turn(2)], near) == {}


def test_only_a_turn_after_another_speaker_is_mixed_with_its_neighbours() -> None:
    vectors = {1: ASKED, 2: UNRELATED}
    own = {turn(2).key: Neighbours(before=turn(1))}
    assert context_cosines(ASKED, ASKED, vectors, [turn(2)], own)[2] == 0
    fact = Passage("Ann", "person", 2, "word", id=2)
    near = {fact.key: Neighbours(before=turn(1, by="Bob"))}
    assert context_cosines(ASKED, ASKED, vectors, [fact], near)[2] == 0


def test_a_fact_is_compared_with_the_question_that_has_the_names() -> None:
    fact = Passage("Ann", "person", 2, "word", id=2)
    vectors = {2: UNRELATED, 3: UNRELATED}
    found = context_cosines(ASKED, UNRELATED, vectors, [fact, turn(3)], {})
    assert found == pytest.approx({2: 1.0, 3: 0.0})
