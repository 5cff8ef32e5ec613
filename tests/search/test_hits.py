"""Hits: each fact is shown once, with how and why it matches."""

import pytest
from msgspec.structs import replace

from polymnia.embedders.wordpiece import english_rarity
from polymnia.model import Hit, Passage, Signals, WordCounts
from polymnia.search.hits import (
    MAX_EXCERPT_CHARACTERS,
    best_hits,
    distinct,
    exact_kind,
    excerpt,
    is_weak,
    match_quality,
    reasons,
    unknown_words,
    word_kind,
)
from polymnia.search.question import parse_question
from polymnia.search.scoring import Matcher, Query, ScoredPassage
from polymnia.search.terms import terms_of, words_of

COUNTS = WordCounts(passages=100, words=1000, having={"deploi": 3, "step": 5, "tuesdai": 1})
SUPPLIES = frozenset(terms_of("supplier supplies"))


def ask(text: str, *, named: str = "", counts: WordCounts = COUNTS) -> Query:
    question = parse_question(text)
    matcher = Matcher(dict.fromkeys(question.content, 1.0), counts, question.content)
    names = {named: 1.0} if named else {}
    terms = question.content
    query = Query(question, names, {}, frozenset(), terms, {}, frozenset(), terms, matcher, text)
    rarities = {term: english_rarity(word) for word in words_of(text) for term in terms_of(word)}
    return replace(query, rarities=rarities)


def scored(query: Query, text: str, signals: Signals) -> ScoredPassage:
    return ScoredPassage(Passage("Ada", "person", 1, text), terms_of(text), signals, 1.0, query)


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


def dated(day: int, text: str, score: float, *, hour: int = 0) -> ScoredPassage:
    valid_at = (day * 24 + hour) * 3_600_000_000
    passage = Passage("shop", "project", day, text, valid_at=valid_at)
    return ScoredPassage(passage, terms_of(text), Signals(), score, ask("the bill"))


def test_of_two_values_of_an_attribute_the_newer_one_comes_first() -> None:
    old = dated(1, "the monthly cloud bill is 2,340 euros", 5.0)
    other = dated(2, "the roof leaks", 4.0)
    new = dated(3, "the monthly cloud bill fell to 1,910 euros", 3.0)
    ordinals = [hit.passage.ordinal for hit in best_hits("the bill", [old, other, new], 3)]
    assert ordinals == [3, 2, 1]


def test_what_was_said_at_a_time_of_day_is_not_reordered() -> None:
    old = dated(1, "the monthly cloud bill is 2,340 euros", 5.0, hour=9)
    new = dated(3, "the monthly cloud bill fell to 1,910 euros", 3.0, hour=9)
    assert [hit.passage.ordinal for hit in best_hits("the bill", [old, new], 2)] == [1, 3]


def hit_with(query: Query, text: str, cosine: float) -> list[Hit]:
    """Return hits for a memory in which one fact may answer, and twenty have nothing to do with it.

    The best one comes first.
    """
    fact = scored(query, text, Signals(meaning=cosine))
    return best_hits(query.folded, [replace(fact, score=2.0), *unrelated(query)], 21)


def unrelated(query: Query) -> list[ScoredPassage]:
    texts = [f"number {number} hums" for number in range(20)]
    return [scored(query, text, Signals(meaning=0.1)) for text in texts]


def test_a_topic_that_no_hit_is_near_is_not_stored() -> None:
    query = ask("Which insurance covers the vans?")
    assert match_quality(hit_with(query, "likes tea", 0.2), query) == "none"
    assert match_quality(hit_with(query, "likes tea", 0.33), query) == "perhaps"
    assert match_quality(hit_with(query, "likes tea", 0.6), query) == "clear"
    assert match_quality(hit_with(query, "insurance for vans", 0.33), query) == "clear"


def test_the_name_of_an_entity_is_not_the_topic() -> None:
    query = ask("How tall is Ada?", named="Ada")
    assert match_quality(hit_with(query, "Ada likes tea", 0.2), query) == "none"


def test_a_known_word_with_a_capital_letter_is_not_the_topic() -> None:
    facts = WordCounts(passages=100, words=1000, having={"paloma": 3, "gym": 0})
    query = ask("Which gym does Paloma go to?", counts=facts)
    assert match_quality(hit_with(query, "is Paloma, director in Lima", 0.25), query) == "none"
    query = ask("Who is Paloma?", counts=facts)
    assert match_quality(hit_with(query, "is Paloma, director in Lima", 0.3), query) == "clear"


def test_a_common_word_in_common_does_not_cover_the_topic() -> None:
    facts = WordCounts(passages=100, words=1000, having={"old": 1, "mortgag": 1})
    for covered, match in (("the old barn", "perhaps"), ("the mortgage", "clear")):
        query = ask("How old is the mortgage?", counts=facts)
        assert match_quality(hit_with(query, covered, 0.12), query) == match


def test_words_that_only_ask_are_not_the_topic() -> None:
    query = ask("List everything you know about Ada", named="Ada")
    assert match_quality(hit_with(query, "likes tea", 0.15), query) == "clear"


def test_a_bare_name_before_the_facts_does_not_hide_that_nothing_is_stored() -> None:
    query = ask("Which allergies does Ada have?", named="Ada")
    bare_name = scored(query, "", Signals())
    fact = scored(query, "likes tea", Signals(meaning=0.15))
    ranked = [replace(bare_name, score=2.0), fact, *unrelated(query)]
    assert match_quality(best_hits(query.folded, ranked, 22), query) == "none"


def test_of_few_facts_none_is_far_enough_to_say_that_nothing_is_stored() -> None:
    query = ask("Which database do we use?")
    fact = scored(query, "runs on PostgreSQL", Signals(meaning=0.2))
    assert match_quality(best_hits(query.folded, [fact], 1), query) == "perhaps"


def test_the_words_of_a_relation_are_stored() -> None:
    query = replace(ask("Which suppliers has Ada?", named="Ada"), relation_terms=SUPPLIES)
    assert match_quality(hit_with(query, "likes tea", 0.15), query) == "clear"


def test_vague_words_and_relations_are_not_missing() -> None:
    query = replace(ask("Which suppliers and which database do we use?"), relation_terms=SUPPLIES)
    assert unknown_words(query) == ("database",)


def test_a_question_with_a_part_of_a_name_is_not_about_nothing() -> None:
    query = ask("Which allergies does Ada have?", named="Ada")
    part = scored(query, "likes tea", Signals(meaning=0.15, entity=0.2))
    assert match_quality(best_hits(query.folded, [part], 1), query) == "perhaps"
