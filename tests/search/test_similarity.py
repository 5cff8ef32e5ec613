"""Similar names and similar observations, by their words."""

import pytest

from polymnia.model import Entity, Fact
from polymnia.search.similarity import (
    are_names_alike,
    normalize_text,
    similar_facts,
)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Ada", "ada", True),
        ("ada-lovelace", "Ada Lovelace", True),
        ("Kubernetes", "Kubernets", True),
        ("Ada", "Ada Lovelace", True),
        ("server1", "server2", False),
        ("Ada", "Ben", False),
        ("Ada", "Ada", False),
    ],
)
def test_names_are_alike_if_they_may_mean_the_same(one: str, other: str, alike: bool) -> None:
    assert are_names_alike(Entity(one, "x"), Entity(other, "X")) is alike
    assert are_names_alike(Entity(other, "x"), Entity(one, "X")) is alike


def test_a_part_of_a_name_is_alike_only_for_the_same_type() -> None:
    assert not are_names_alike(Entity("Ada", "language"), Entity("Ada Lovelace", "person"))


def test_facts_with_the_same_words_are_similar() -> None:
    ada = Entity("Ada", "person", (Fact(1, "Ada lives in Berlin"), Fact(2, "likes tea")))
    assert [fact.ordinal for fact in similar_facts("she lives in Munich now", ada)] == [1]
    assert similar_facts("works at the library", ada) == ()
    assert similar_facts("Ada sings", ada) == ()


def test_case_spaces_and_a_full_stop_make_no_difference() -> None:
    assert normalize_text(" Likes  Tea.") == normalize_text("likes tea")
    assert normalize_text("likes tea") != normalize_text("likes teas")
