"""Hits: each fact is shown once, with how and why it matches."""

import pytest

from polymnia.model import Passage, Signals
from polymnia.search.hits import (
    MAX_EXCERPT_CHARACTERS,
    best_hits,
    distinct,
    exact_kind,
    excerpt,
    is_weak,
    reasons,
    word_kind,
)
from polymnia.search.scoring import ScoredPassage
from polymnia.search.terms import terms_of
from tests.search.queries import ask, scored


def test_reasons_name_words_entity_and_time() -> None:
    query = ask("Which deploying steps did Ada describe in May 2023?", named="Ada")
    found = scored(
        query, "the steps to deploy", Signals(words=1.0, meaning=0.52, entity=1.0, date=0.4)
    )
    assert reasons(found, "any word") == (
        "words: deploying, steps",
        "meaning: 0.52",
        "about: Ada",
        "time: May 2023",
    )


def test_without_a_word_the_kind_of_match_is_the_reason() -> None:
    assert reasons(scored(ask("deploy"), "roll it out", Signals(meaning=0.2)), "meaning") == (
        "meaning",
    )
    assert reasons(scored(ask("deploy"), "roll it out", Signals(meaning=0.5)), "meaning") == (
        "meaning: 0.50",
    )


def test_a_match_is_weak_if_it_has_few_words_and_little_meaning() -> None:
    query = ask("deploy steps on tuesday")
    assert is_weak(query, terms_of("a step"), Signals(meaning=0.1))
    assert is_weak(query, terms_of("a step"), Signals())
    assert not is_weak(query, terms_of("a step"), Signals(meaning=0.6))
    assert not is_weak(query, terms_of("deploy on tuesday"), Signals(meaning=0.1))


def test_a_short_text_is_its_own_excerpt() -> None:
    assert excerpt("Deploy on Tuesday.", ["tuesdai"]) == "Deploy on Tuesday."


def test_the_excerpt_of_a_long_text_starts_with_the_sentence_that_matches() -> None:
    text = "It rains. " * 40 + "We deploy on Tuesday. " + "It snows. " * 40
    shown = excerpt(text, ["deploi", "tuesdai"])
    assert shown.startswith("\u2026We deploy on Tuesday. It snows.")
    assert shown.endswith("\u2026")
    assert len(shown) <= MAX_EXCERPT_CHARACTERS + 2


def test_a_long_text_without_spaces_or_matches_is_cut() -> None:
    assert excerpt("x" * 1000, ["deploi"]) == "x" * MAX_EXCERPT_CHARACTERS + "\u2026"


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


def dated(day: int, text: str, score: float) -> ScoredPassage:
    passage = Passage("shop", "project", day, text, valid_at=day * 86_400_000_000)
    return ScoredPassage(passage, terms_of(text), Signals(), score, ask("the bill"))


def test_only_the_score_decides_the_order_of_facts_of_one_entity() -> None:
    old = dated(1, "the monthly cloud bill is 2,340 euros", 5.0)
    other = dated(2, "the roof leaks", 4.0)
    new = dated(3, "the monthly cloud bill fell to 1,910 euros", 3.0)
    ordinals = [hit.passage.ordinal for hit in best_hits("the bill", [old, other, new], 3)]
    assert ordinals == [1, 2, 3]
