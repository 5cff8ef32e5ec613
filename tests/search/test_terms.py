"""Terms, split and stemmed by the full-text index's tokenizer, with the parts of joined words."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polymnia.search.terms import (
    parts_of,
    plain,
    stem,
    stems_of,
    terms_of,
    unspaced_runs,
    word_with_stem,
    words_of,
)

ARCHITECTURE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
ENDINGS = (
    "ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism iveness fulness ousness "
    "aliti iviti biliti ical ness icate iciti ful ative alize al ance ence er ic able ible ant ement ment ent ion ou "
    "ism ate iti ous ive ize ed ing eed s es ies sses y ly ll e"
)
LETTERS = st.text("abcdeiouystlwxz", max_size=6)
WORDS = st.builds(
    "".join, st.tuples(LETTERS, *[st.sampled_from(["", *ENDINGS.split()])] * 2)
).filter(bool)
STORABLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def vocabulary(text: str, tokenizer: str) -> list[str]:
    """Return the terms that an FTS5 table has of a text, in their order."""
    connection = apsw.Connection(":memory:")
    connection.execute(
        f"CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = '{tokenizer} remove_diacritics 2')"
    )
    connection.execute("INSERT INTO words VALUES (?)", (text,))
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (words, instance)")
    return [str(term) for (term,) in connection.execute("SELECT term FROM terms ORDER BY offset")]


@settings(deadline=None)
@given(STORABLE)
def test_stems_are_what_the_index_has(text: str) -> None:
    assert stems_of(text) == vocabulary(text, "porter unicode61")


@settings(deadline=None)
@given(STORABLE)
def test_words_are_what_an_index_without_stems_has(text: str) -> None:
    assert words_of(text) == vocabulary(text, "unicode61")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Élan naïve Ångström straße", ["elan", "naive", "angstrom", "straße"]),
        ("e\u0301tude", ["etude"]),
        ("北京大学 test", ["北京大学", "test"]),
        ("a_b-c\u2019d", ["a", "b", "c", "d"]),
        ("nul\x00byte", ["nul", "byte"]),
        ("lone \ud800surrogate", ["lone", "surrogate"]),
        ("", []),
    ],
)
def test_words_have_neither_case_nor_accents(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@settings(deadline=None)
@given(st.text(max_size=60))
def test_every_word_has_one_stem(text: str) -> None:
    words = words_of(text)
    assert len(stems_of(text)) == len(words)
    assert stems_of(" ".join(words)) == stems_of(text)


def test_every_thread_gets_the_same_terms() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(terms_of, [ARCHITECTURE] * 32))
    assert found == [terms_of(ARCHITECTURE)] * 32


@settings(deadline=None)
@given(WORDS)
def test_any_stem_is_the_stem_of_a_word(word: str) -> None:
    term = stem(word)
    assert stem(word_with_stem(term)) in (term, stem(term))


def test_every_stem_of_a_real_word_has_a_word_with_that_stem() -> None:
    terms = {stem(word) for word in re.findall("[a-z]+", ARCHITECTURE.lower())}
    assert {term for term in terms if stem(word_with_stem(term)) != term} == set()


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
    assert parts_of(text) == parts


def test_terms_are_the_stems_of_words_and_parts() -> None:
    assert terms_of("getUserNames ran") == ["getusernam", "ran", "get", "user", "name"]


def test_unspaced_runs_are_found_between_other_text() -> None:
    assert unspaced_runs("gpt4を使う and ไทย") == ["を使う", "ไทย"]


@pytest.mark.parametrize(
    ("text", "expected"), [("Zoë", "zoe"), ("e\u0301A", "ea"), ("straße", "straße"), ("北", "北")]
)
def test_plain_text_has_neither_case_nor_accents(text: str, expected: str) -> None:
    assert plain(text) == expected
