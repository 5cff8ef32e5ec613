"""Typing mistakes: what a word was meant to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.search.typos import distance, nearest, starts

VOCABULARY = ["carolin", "carol", "melani", "kubernet", "postgr", "redi"]


@pytest.mark.parametrize(
    ("term", "meant"),
    [
        ("caroln", ["carolin", "carol"]),
        ("acrolin", ["carolin"]),
        ("melnai", ["melani"]),
        ("kubrenets", ["kubernet"]),
        ("postgre", ["postgr"]),
        ("zzzzzz", []),
    ],
)
def test_the_nearest_terms_are_what_was_meant(term: str, meant: list[str]) -> None:
    assert nearest(term, VOCABULARY) == meant


@given(st.sampled_from(VOCABULARY), st.integers(0, 3), st.sampled_from("abcxyz"))
def test_what_was_meant_lies_in_one_of_the_stretches(word: str, place: int, letter: str) -> None:
    for typed in (
        word[:place] + letter + word[place + 1 :],
        word[:place] + word[place + 1 :],
        word[:place] + letter + word[place:],
    ):
        if len(typed) >= 4 and place > 1:
            assert any(first <= word < last for first, last in starts(typed)), typed


def test_short_words_are_not_corrected() -> None:
    assert starts("abc") == []


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_the_same_both_ways(one: str, other: str) -> None:
    assert distance(one, other, 9) == distance(other, one, 9)
    assert (distance(one, other, 9) == 0) == (one == other)
