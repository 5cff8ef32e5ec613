"""Parsed questions: content, names, and the rest without the names."""

import pytest

from polymnia.search.question import (
    content_without,
    match_names,
    parse_question,
    replace_words,
    speaker_of,
    text_without,
)


def test_stop_words_are_not_content() -> None:
    assert parse_question("What is the name of her dog?").content == ("name", "dog")


def test_the_stop_words_of_a_question_without_other_words_are_content() -> None:
    assert parse_question("to be or not to be").content == ("to", "be", "or", "not")


def test_may_is_content_only_as_a_name_or_alone() -> None:
    assert parse_question("how long may lines be").content == ("long", "line")
    assert parse_question("Where does May live?").content == ("mai", "live")
    assert parse_question("may").content == ("mai",)


def test_the_parts_of_joined_words_are_content() -> None:
    assert set(parse_question("where is getUserName").content) == {
        "getusernam",
        "get",
        "user",
        "name",
    }


def test_a_whole_name_counts_more_than_a_part() -> None:
    question = parse_question("What is Caroline Smith's dog called?")
    found = match_names(question, ["Caroline Smith", "Caroline", "Dog House", "Smithers"])
    assert found == {"Caroline Smith": 1.0, "Caroline": 1.0, "Dog House": 0.2}


def test_a_part_that_many_names_have_is_no_name() -> None:
    question = parse_question("What did we decide in the last session with Ann?")
    sessions = [f"session {number}" for number in range(30)]
    assert match_names(question, [*sessions, "Ann Smith"]) == {"Ann Smith": 0.2}


def test_a_name_that_is_a_stop_word_counts_when_it_is_written_like_a_name() -> None:
    assert "will" in parse_question("Where does Will live?").name_terms
    assert "will" not in parse_question("Where will she live?").name_terms


def test_names_are_removed_from_the_content() -> None:
    question = parse_question("When did Caroline adopt the dog?")
    assert content_without(question, ["Caroline"]) == ("adopt", "dog")
    assert content_without(parse_question("Caroline"), ["Caroline"]) == ("carolin",)


def test_names_are_removed_from_the_text() -> None:
    assert (
        text_without("When did Caroline's dog meet caroline?", ["Caroline"])
        == "When did dog meet ?"
    )
    assert text_without("Caroline", ["Caroline"]) == "Caroline"
    assert text_without("Ann and Anna", ["Ann"]) == "and Anna"


def test_words_are_replaced_whatever_their_case() -> None:
    assert (
        replace_words("Did Carolnie's carolnies sing?", {"carolnie": "caroline"})
        == "Did caroline's carolnies sing?"
    )


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Caroline: I adopted a puppy", "Caroline"),
        ("Mary Ann Smith: yes", "Mary Ann Smith"),
        ("\u00c9mile: oui", "\u00c9mile"),
        ("note: remember the milk", ""),
        ("The port is: 80", ""),
        ("https://example.org", ""),
    ],
)
def test_the_speaker_of_a_line_stands_before_a_colon(text: str, speaker: str) -> None:
    assert speaker_of(text) == speaker
