"""Scores: BM25, proximity, neighbours, and the sum on fixed scales."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from polymnia.model import Neighbours, Passage, Signals, WordCounts
from polymnia.search.question import parse_question
from polymnia.search.scoring import (
    Matcher,
    Query,
    ScoredPassage,
    brevity,
    context_share,
    entity_bonus,
    fuse,
    lead_share,
    question_share,
    score,
    score_passages,
    weigh,
)

COUNTS = WordCounts(passages=100, words=1000, having={"rare": 1, "common": 80, "odd": 2})
SHARES = st.floats(0, 1)
SIGNALS = st.builds(
    Signals, words=SHARES, before=SHARES, meaning=st.floats(-1, 1), near=SHARES, entity=SHARES
)


def query(text: str, names: dict[str, float] | None = None) -> Query:
    terms = parse_question(text).content
    matcher = Matcher(dict.fromkeys(terms, 1.0), COUNTS, terms)
    named = names or {}
    bonuses = dict.fromkeys(named, 1.0)
    return Query(
        parse_question(text),
        named,
        bonuses,
        frozenset(),
        terms,
        {},
        frozenset(),
        terms,
        matcher,
        text,
    )


def turn(number: int, text: str, by: str = "Ann") -> Passage:
    return Passage(by, "person", number, text, valid_at=7, id=number)


def rank(found: list[ScoredPassage]) -> list[int]:
    return [item.passage.ordinal for item in sorted(found, key=lambda entry: -entry.score)]


def test_rare_words_count_more_than_common_ones() -> None:
    matcher = Matcher({"rare": 1.0, "common": 1.0}, COUNTS)
    assert (
        matcher.score(["rare", "x"])
        > matcher.score(["common", "x"])
        > matcher.score(["x", "y"])
        == 0
    )


def test_rare_words_of_a_long_question_count_even_more() -> None:
    def advantage(question: list[str]) -> float:
        matcher = Matcher(dict.fromkeys(question, 1.0), counts, question)
        return matcher.score(["rare"]) / matcher.score(["usual"])

    others = [f"word {number}" for number in range(30)]
    counts = WordCounts(100, 1000, {"rare": 1, "usual": 20, **dict.fromkeys(others, 10)})
    assert advantage(["rare", "usual", *others]) > 1.5 * advantage(["rare", "usual", *others[:10]])
    assert advantage(["rare", "usual", *others[:10]]) == advantage(["rare", "usual"])


def test_short_texts_count_more_than_long_ones() -> None:
    matcher = Matcher({"rare": 1.0}, COUNTS)
    assert matcher.score(["rare"]) > matcher.score(["rare"] + ["x"] * 50)


def test_among_short_texts_length_matters_little() -> None:
    matcher = Matcher({"rare": 1.0}, COUNTS)  # ten words on average
    assert matcher.score(["rare"] + ["x"] * 19) > 0.85 * matcher.score(["rare"] + ["x"] * 4)


def test_a_word_in_the_name_counts_less_than_one_in_the_text() -> None:
    matcher = Matcher({"rare": 1.0}, COUNTS)
    assert matcher.score(["rare", "x"]) > matcher.score(["y", "x"], "Something Rare") > 0


def test_adjacent_words_of_the_question_count_more() -> None:
    matcher = Matcher({"rare": 1.0, "odd": 1.0}, COUNTS, ["rare", "odd"])
    together, near, far = ["rare", "odd"], ["odd", "x", "rare"], ["rare", "x", "x", "x", "x", "odd"]
    assert matcher.proximity(together) > matcher.proximity(near) > matcher.proximity(far) == 0
    assert matcher.proximity(["rare", "x"]) == 0


def test_a_rare_form_of_a_common_word_counts_no_more_than_the_word() -> None:
    asked = {"common": 1.0, "rare": 1.0}
    as_form = Matcher(asked, COUNTS, ["common"], {"rare": "common"})
    assert (
        as_form.score(["rare"])
        == as_form.score(["common"])
        < Matcher(asked, COUNTS).score(["rare"])
    )


def test_a_common_form_of_a_rare_word_counts_by_its_own_rarity() -> None:
    asked = {"common": 1.0, "rare": 1.0}
    as_form = Matcher(asked, COUNTS, ["rare"], {"common": "rare"})
    assert as_form.score(["common"]) == Matcher(asked, COUNTS).score(["common"])


def test_another_form_counts_as_the_word_that_was_asked_for() -> None:
    matcher = Matcher(
        {"rare": 1.0, "odd": 1.0, "other": 1.0}, COUNTS, ["rare", "odd"], {"other": "odd"}
    )
    assert matcher.share(["rare", "other"]) == matcher.share(["rare", "odd", "other"]) == 1
    assert matcher.share(["other"]) == matcher.share(["odd"]) == pytest.approx(0.5)


def test_a_preceding_question_counts_more_than_a_preceding_statement() -> None:
    asks, says = turn(1, "Is it rare?", by="Bob"), turn(2, "It is rare", by="Bob")
    answer, other, apart = turn(3, "Yes it is"), turn(4, "Yes it is"), turn(5, "Yes it is")
    near = {answer.key: Neighbours(before=asks), other.key: Neighbours(before=says)}
    found = score_passages(
        query("rare"), [apart, other, answer], near, {}, scale=[asks, says], coverage=0
    )
    assert rank(found) == [3, 4, 5]


def test_the_previous_message_of_the_same_person_does_not_count() -> None:
    asks, answer = turn(1, "Is it rare?"), turn(2, "Yes it is")
    near = {answer.key: Neighbours(before=asks)}
    (scored,) = score_passages(query("rare"), [answer], near, {}, scale=[asks], coverage=0)
    assert scored.signals.before == 0


def test_many_rare_words_count_more_than_one() -> None:
    one, many = turn(1, "rare"), turn(2, "rare odd red tall")
    counts = WordCounts(10_000, 100_000, dict.fromkeys(("rare", "odd", "red", "tall"), 2))
    words = []
    for passage, question in ((one, "rare"), (many, "rare odd red tall")):
        asked = replace(
            query(question), matcher=Matcher(dict.fromkeys(question.split(), 1.0), counts)
        )
        (scored,) = score_passages(asked, [passage], {}, {}, scale=[passage], coverage=0)
        words.append(scored.signals.words)
    assert words[1] > 1.5 * words[0]


def test_a_question_about_its_author_is_also_a_statement() -> None:
    own, other = "I have two cats, can you feed them?", "Who feeds the two cats of Ann today?"
    assert question_share(own, first_person=0.25) == 0.25
    assert question_share(other, first_person=0.25) == question_share(own) == 1


def test_neighbours_matter_little_for_a_long_text() -> None:
    assert context_share(0) == 1
    assert context_share(30) == 0.5
    assert context_share(270) == 0.1


def test_a_statement_counts_half_as_much_as_a_question_for_the_next_passage() -> None:
    assert (lead_share("It is here."), lead_share("Is it here?")) == (0.5, 1)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("How are you?", 1),
        ("I am well. And you yourself?", 0.5),
        ("I am well", 0),
        ("", 0),
        ("???", 0),
        ("你好吗\uff1f", 1),
    ],
)
def test_the_share_of_questions_is_counted_in_words(text: str, share: float) -> None:
    assert question_share(text) == share


@given(SIGNALS, st.floats(0, 2))
def test_without_coverage_a_cosine_does_not_count(signals: Signals, bonus: float) -> None:
    bare = Signals(
        words=signals.words, before=signals.before, near=signals.near, entity=signals.entity
    )
    assert score(signals, bonus, 0.0) == score(bare, bonus, 0.0)


@pytest.mark.parametrize("coverage", [0.01, 0.05, 0.1])
@given(SIGNALS)
def test_up_to_a_tenth_of_the_vectors_words_alone_count(coverage: float, signals: Signals) -> None:
    assert score(signals, 1.0, coverage) == score(signals, 1.0, 0.0)


@given(SIGNALS)
def test_with_every_vector_words_count_less_and_meaning_counts(signals: Signals) -> None:
    assert signals.meaning is not None
    expected = (
        2.25 * signals.words + signals.before + 0.8 * signals.near + (signals.meaning - 0.1) / 0.12
    )
    named = signals.entity * (1 + 0.35 * max(0.0, expected - 1))
    assert score(signals, 1.0, 1.0) == pytest.approx(expected + named)


@given(SIGNALS, SHARES)
def test_a_share_of_vectors_lies_between_none_and_all(signals: Signals, coverage: float) -> None:
    none, some, every = (score(signals, 1.0, share) for share in (0.0, coverage, 1.0))
    assert min(none, every) - 1e-9 <= some <= max(none, every) + 1e-9


def test_a_passage_without_a_vector_is_not_behind_one_with_a_vector_at_low_coverage() -> None:
    bare, embedded = turn(1, "it is rare"), turn(2, "something else")
    found = score_passages(
        query("rare"), [bare, embedded], {}, {2: 0.7}, scale=[bare], coverage=0.01
    )
    assert rank(found) == [1, 2]


def test_a_passage_without_a_vector_counts_as_if_it_had_a_good_one() -> None:
    asked = query("rare")
    passages = [turn(number, "it is rare") for number in range(1, 6)]
    cosines = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}
    found = score_passages(asked, passages, {}, cosines, scale=passages, coverage=0.8)
    assert rank(found)[:2] in ([4, 5], [5, 4])
    words = found[4].signals.words
    assert found[4].signals.assumed == pytest.approx((0.4 - 0.1) / 0.12 - 1.75 * words)
    assert all(item.signals.assumed == 0 for item in found[:4])


def test_nothing_is_assumed_when_every_passage_has_a_vector() -> None:
    (found,) = score_passages(query("rare"), [turn(1, "it is rare")], {}, {}, scale=[], coverage=1)
    assert found.signals.assumed == 0


def test_words_that_meet_often_count_no_more_than_two_neighbours() -> None:
    matcher = Matcher(
        {"rare": 1.0, "odd": 1.0, "common": 1.0}, COUNTS, ["rare", "odd", "common", "rare"]
    )
    assert matcher.proximity(["rare", "odd", "common", "rare"]) == 1


def test_length_and_questions_say_less_where_texts_are_long() -> None:
    assert brevity(WordCounts(100, 1000, {})) == brevity(WordCounts(0, 0, {})) == 1
    assert brevity(WordCounts(100, 9000, {})) == 0.5
    asks = turn(1, "Is it rare?")
    short, long = [
        score_passages(
            replace(query("rare"), brevity=number), [asks], {}, {}, scale=[asks], coverage=0
        )[0].signals
        for number in (1.0, 0.5)
    ]
    assert (long.asks, long.length) == (short.asks / 4, short.length / 4)


def test_a_named_entity_gains_more_for_a_better_match() -> None:
    poor, good = Signals(words=0.1), Signals(words=1.0)
    gains = [
        score(Signals(words=item.words, entity=1), 1.0, 0.0) - score(item, 1.0, 0.0)
        for item in (poor, good)
    ]
    assert gains == pytest.approx([1.0, 2.05])


def test_a_rarely_named_entity_has_a_higher_bonus_up_to_a_limit() -> None:
    assert entity_bonus(100, 100) == 0.75
    assert entity_bonus(100, 50) == pytest.approx(1.1, abs=0.01)
    assert entity_bonus(100, 5) > entity_bonus(100, 50)
    assert entity_bonus(1000, 5) == pytest.approx(3.4, abs=0.01)
    assert entity_bonus(10**6, 1) == 4
    assert entity_bonus(0, 0) == 0.75


def test_a_score_does_not_depend_on_the_other_passages() -> None:
    one, other = turn(1, "it is rare"), turn(2, "a common thing")
    asked = query("rare common")
    both = score_passages(asked, [one, other], {}, {1: 0.3}, scale=[one, other], coverage=1)
    (alone,) = score_passages(asked, [one], {}, {1: 0.3}, scale=[one, other], coverage=1)
    assert alone == both[0]


def test_another_phrasing_counts_by_what_is_new_in_it() -> None:
    found, guessed = turn(1, "it is rare"), turn(2, "how odd")
    asked, guess, repeat = query("rare"), query("odd"), query("rare odd")
    scores = [
        score_passages(item, [found, guessed], {}, {}, scale=[found, guessed], coverage=0)
        for item in (asked, guess)
    ]
    more = [
        *scores[:1],
        score_passages(repeat, [found, guessed], {}, {}, scale=[found, guessed], coverage=0),
    ]
    assert fuse(scores)[1].score == pytest.approx(
        scores[0][1].score + 0.3 * (scores[1][1].score - scores[0][1].score)
    )
    assert (
        0
        < repeat.matcher.new_share(["rare", "odd"], ["rare"])
        < guess.matcher.new_share(["odd"], ["rare"])
        == 1
    )
    assert (
        abs(fuse(more)[1].score - scores[0][1].score)
        < abs(more[1][1].score - scores[0][1].score) * 0.3
    )
    assert fuse([scores[0]]) == scores[0]
    assert fuse([[], []]) == []


def test_an_empty_store_causes_no_division_by_zero() -> None:
    assert score_passages(query("rare"), [], {}, {}, scale=[], coverage=0) == []
    (found,) = score_passages(query("rare"), [turn(1, "")], {}, {}, scale=[], coverage=0)
    assert found.score == 0


@given(SIGNALS, st.floats(0, 3), SHARES)
def test_the_score_is_the_sum_of_all_signals_times_their_weights(
    signals: Signals, bonus: float, share: float
) -> None:
    weighed = weigh(signals, bonus, share)
    assert {name for name, _, _ in weighed} == set(Signals.__struct_fields__)
    assert score(signals, bonus, share) == sum(value * weight for _, value, weight in weighed)


def test_meaning_weighs_nothing_without_a_vector() -> None:
    (meaning,) = [item for item in weigh(Signals(words=1), 0, 0.5) if item[0] == "meaning"]
    assert meaning == ("meaning", 0, 0)


def test_a_long_question_may_match_all_of_a_long_text() -> None:
    rest = " filler" * 150
    text = f"rare{rest}{rest}{rest}. odd{rest}{rest}{rest}."
    asked = query("rare odd")
    both, one = turn(1, text), turn(2, text.replace("odd", "also"))
    found = score_passages(asked, [both, one], {}, {}, scale=[both, one], coverage=0)
    assert rank(found) == [1, 2]
