"""Words: cut and stemmed as SQLite's index does it, with the parts of joined words beside them."""

import re
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.search.stem import spelled, stem
from polymnia.search.words import derived, terms_of, words_of

ENDINGS = (
    "ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism iveness fulness ousness "
    "aliti iviti biliti ical ness icate iciti ful ative alize al ance ence er ic able ible ant ement ment ent ion ou "
    "ism ate iti ous ive ize ed ing eed s es ies sses y ly ll e"
)
LETTERS = st.text("abcdeiouystlwxz", max_size=6)
WORDS = st.builds("".join, st.tuples(LETTERS, *[st.sampled_from(["", *ENDINGS.split()])] * 2))

_TOKENIZER = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])


def indexed(text: str) -> list[str]:
    """What SQLite makes of a text."""
    found = _TOKENIZER(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
    return [str(token[0]) for token in found]


@given(WORDS.filter(bool))
def test_a_word_is_stemmed_as_the_index_stems_it(word: str) -> None:
    assert [stem(word)] == indexed(word)


def test_running_text_is_cut_as_the_index_cuts_it() -> None:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
    assert [stem(word) for word in words_of(text)] == indexed(text)


@pytest.mark.parametrize(
    "text",
    [
        "Élan naïve İstanbul",
        "e\u0301tude",
        "Ångström straße",
        "北京大学 test",
        "x² ½",
        "Привет",
        "한국어",
        "ไทย",
        "a_b-c\u2019d",
    ],
)
def test_other_scripts_are_cut_as_the_index_cuts_them(text: str) -> None:
    assert [stem(word) for word in words_of(text)] == indexed(text)


@given(WORDS.filter(bool))
def test_a_stem_can_be_asked_for(word: str) -> None:
    term = stem(word)
    assert indexed(spelled(term)) in ([term], [stem(term)])


def test_the_stems_of_real_words_can_be_asked_for_exactly() -> None:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
    terms = {stem(word) for word in re.findall("[a-z]+", text.lower())}
    assert {term for term in terms if indexed(spelled(term)) != [term]} == set()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("getUserName", "get User Name"),
        ("HTTPServer2", "HTTP Server 2"),
        ("snake_case stays", ""),
        ("plain words", ""),
        ("北京大学", "北京 京大 大学"),
        ("位", "位"),
        ("see parseJSONBody in gpt4", "parse JSON Body gpt 4"),
        ("gpt4", ""),
    ],
)
def test_joined_words_and_unspaced_text_are_indexed_in_parts(text: str, parts: str) -> None:
    assert derived(text) == parts


def test_terms_are_the_stemmed_words_and_parts() -> None:
    assert terms_of("getUserNames ran") == ["getusernam", "ran", "get", "user", "name"]
