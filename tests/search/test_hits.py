"""Hits: each fact is shown once, and each says how it matches."""

import pytest

from polymnia.model import Passage
from polymnia.search.hits import distinct, exact_kind, word_kind


def test_repetitions_about_one_entity_are_shown_once() -> None:
    ranked = [
        ("A", ["x", "y"]),
        ("A", ["y", "x"]),
        ("B", ["x", "y"]),
        ("A", ["z"]),
        ("A", ["x", "y"]),
    ]
    assert distinct(ranked, 10) == [(0, 2), (2, 0), (3, 0)]
    assert distinct(ranked, 2) == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("terms", "kind"),
    [
        (["the", "red", "tea", "pot"], "phrase"),
        (["tea", "is", "red"], "all words"),
        (["red"], "any word"),
        (["rouge"], "variant"),
        (["blue"], ""),
    ],
)
def test_the_best_kind_of_word_match_is_named(terms: list[str], kind: str) -> None:
    assert word_kind(["red", "tea"], ["red", "tea"], {"rouge": "variant"}, terms) == kind


def test_a_passage_that_equals_the_question_is_exact() -> None:
    assert exact_kind(Passage("Ann", "person", 0, ""), "ann") == "name"
    assert exact_kind(Passage("Ann", "note", -1, "tea"), "ann") == "key"
    assert exact_kind(Passage("Ann", "person", 1, "Green Tea "), "green tea") == "text"
    assert exact_kind(Passage("Ann", "person", 1, "ann drinks"), "ann") == ""
