"""Spelling: corrections of a mistyped word, and its other spellings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.embedders.vocabulary import english_words
from polymnia.engine.spelling import edits, is_form, variants

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = st.text(LETTERS, min_size=2, max_size=8)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("cookng", "cooking"), ("amdrew", "andrew"), ("dborah", "deborah"), ("teh", "the"), ("puppyy", "puppy")],
)
def test_one_mistake_is_undone_by_one_edit(typed: str, meant: str) -> None:
    assert meant in edits(typed)


@given(WORDS, WORDS)
def test_edits_are_symmetric(one: str, other: str) -> None:
    assert (other in edits(one)) == (one in edits(other))


@given(WORDS)
def test_a_word_is_not_an_edit_of_itself(word: str) -> None:
    found = edits(word)
    assert word not in found
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("favourite", "favorite"),
        ("colours", "colors"),
        ("organise", "organize"),
        ("organisation", "organization"),
        ("analysed", "analyzed"),
        ("theatre", "theater"),
        ("catalogue", "catalog"),
        ("licence", "license"),
        ("travelling", "traveling"),
    ],
)
def test_british_and_american_spelling_are_variants_of_each_other(british: str, american: str) -> None:
    assert american in variants(british)
    assert british in variants(american)


@pytest.mark.parametrize("word", ["filed", "four", "size", "water", "dog", "mourning"])
def test_variants_of_words_with_one_spelling_are_not_words(word: str) -> None:
    assert not set(variants(word)) & english_words().keys()


def test_regular_forms_of_known_words_are_known() -> None:
    known = {"paint", "carry", "bake"}
    assert all(is_form(word, known) for word in ("paint", "paints", "painted", "carries", "baking", "baked", "painter"))
    assert not any(is_form(word, known) for word in ("pain", "paintd", "painte"))


def test_common_words_come_with_the_package_the_most_common_first() -> None:
    words = english_words()
    assert {"wife", "regard", "deploy"} <= words.keys()
    assert words["with"] < words["museum"]
    assert not [word for word in words if word.startswith("##")]
