"""Similar names and similar observations, by their words."""

import pytest

from polymnia.model import Entity, Fact
from polymnia.search.similarity import (
    are_names_alike,
    has_newer_quantity,
    is_same_attribute,
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


def test_two_values_of_one_attribute_are_recognized() -> None:
    old = "the monthly cloud bill is 2,340 euros"
    new = "the monthly cloud bill fell to 1,910 euros after the move"
    assert is_same_attribute(old, new, "Kestrel")
    assert not is_same_attribute(old, "the monthly report goes to Ada", "Kestrel")


def test_the_name_and_numbers_alone_are_no_common_attribute() -> None:
    assert not is_same_attribute("pilot begins with 7 shops", "pilot ends with 7 reviews", "pilot")


@pytest.mark.parametrize(
    ("old", "new", "is_newer"),
    [
        ("has nine pupils and meets on Mondays", "has eleven pupils since May", True),
        ("sponsors the project with 400 euros", "raised its gift to 650 euros", True),
        ("tests on Linux; a full run takes 14 minutes", "a full run takes 6 minutes", True),
        ("a full run takes 14 minutes", "a fuzzing job runs for 20 minutes", False),
        ("has nine pupils", "still has nine pupils since May", False),
        ("starts on 4 May", "moved to 8 May", False),
        ("holds 30 jobs", "now holds 40 shelves", False),
    ],
)
def test_another_number_of_the_same_unit_is_a_newer_value(
    old: str, new: str, is_newer: bool
) -> None:
    assert has_newer_quantity(old, new, "team") is is_newer


def test_the_name_is_no_unit() -> None:
    assert not has_newer_quantity("two teams signed up", "now three teams signed up", "teams")
