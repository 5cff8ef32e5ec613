"""Scores: BM25, standardising, and the sum."""

from polymnia.model import Signals, WordCounts
from polymnia.search.diversity import distinct
from polymnia.search.scoring import WORDS_ONLY, Matcher, scores

COUNTS = WordCounts(passages=100, words=1000, having={"rare": 1, "common": 80})


def test_rare_words_count_more_than_common_ones() -> None:
    matcher = Matcher({"rare": 1.0, "common": 1.0}, COUNTS)
    assert matcher.score(["rare", "x"]) > matcher.score(["common", "x"]) > matcher.score(["x", "y"]) == 0


def test_short_texts_count_more_than_long_ones() -> None:
    matcher = Matcher({"rare": 1.0}, COUNTS)
    assert matcher.score(["rare"]) > matcher.score(["rare"] + ["x"] * 50)


def test_a_word_in_the_name_counts_less_than_one_in_the_text() -> None:
    matcher = Matcher({"rare": 1.0}, COUNTS)
    assert matcher.score(["rare", "x"]) > matcher.score(["y", "x"], "Something Rare") > 0


def test_the_order_of_two_does_not_depend_on_the_others_that_are_shown() -> None:
    one, other = Signals(words=3.0, entity=0.4), Signals(words=1.0, before=2.0)
    scale = [one, other, Signals(words=9.0), Signals(before=1.0)]
    both = scores([one, other], scale, WORDS_ONLY)
    assert [scores([one], scale, WORDS_ONLY)[0], scores([other], scale, WORDS_ONLY)[0]] == both


def test_nothing_is_divided_by_nothing() -> None:
    assert scores([Signals()], [Signals()], WORDS_ONLY) == [0.0]
    assert scores([], [], WORDS_ONLY) == []


def test_what_says_the_same_of_one_entity_is_shown_once() -> None:
    ranked = [("A", ["x", "y"]), ("A", ["y", "x"]), ("B", ["x", "y"]), ("A", ["z"]), ("A", ["x", "y"])]
    assert distinct(ranked, 10) == [(0, 2), (2, 0), (3, 0)]
    assert distinct(ranked, 2) == [(0, 1), (2, 0)]
