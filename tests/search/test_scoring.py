"""Scores: BM25, neighbours, and the sum on fixed scales."""

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
    fuse,
    question_share,
    score,
    score_passages,
    weigh,
)

COUNTS = WordCounts(passages=100, words=1000, having={"rare": 1, "common": 80, "odd": 2})
SHARES = st.floats(0, 1)
SIGNALS = st.builds(Signals, words=SHARES, before=SHARES, meaning=st.floats(-1, 1), entity=SHARES)


def query(text: str, names: dict[str, float] | None = None) -> Query:
    terms = parse_question(text).content
    matcher = Matcher(dict.fromkeys(terms, 1.0), COUNTS, terms)
    return Query(
        question=parse_question(text),
        names=names or {},
        terms=terms,
        search_terms=terms,
        matcher=matcher,
        folded=text,
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
    found = score_passages(query("rare"), [apart, other, answer], near, {})
    assert rank(found) == [3, 4, 5]


def test_the_previous_message_of_the_same_person_does_not_count() -> None:
    asks, answer = turn(1, "Is it rare?"), turn(2, "Yes it is")
    near = {answer.key: Neighbours(before=asks)}
    (scored,) = score_passages(query("rare"), [answer], near, {})
    assert scored.signals.before == 0


def test_many_rare_words_count_more_than_one() -> None:
    one, many = turn(1, "rare"), turn(2, "rare odd red tall")
    counts = WordCounts(10_000, 100_000, dict.fromkeys(("rare", "odd", "red", "tall"), 2))
    words = []
    for passage, question in ((one, "rare"), (many, "rare odd red tall")):
        asked = replace(
            query(question), matcher=Matcher(dict.fromkeys(question.split(), 1.0), counts)
        )
        (scored,) = score_passages(asked, [passage], {}, {})
        words.append(scored.signals.words)
    assert words[1] > 1.5 * words[0]


def test_neighbours_matter_little_for_a_long_text() -> None:
    assert context_share(0) == 1
    assert context_share(30) == 0.5
    assert context_share(270) == 0.1


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


def test_length_questions_and_the_meaning_of_a_turn_say_less_where_texts_are_long() -> None:
    assert brevity(WordCounts(100, 1000, {})) == brevity(WordCounts(0, 0, {})) == 1
    assert brevity(WordCounts(100, 9000, {})) == 0.5
    said = turn(1, "Is it rare?")
    noted = replace(said, valid_at=0)
    for passage, share in ((said, 1 / 4), (noted, 1)):
        short, long = [
            {name: value for name, value, _ in weigh(scored.signals)}
            for number in (1.0, 0.5)
            for scored in score_passages(
                replace(query("rare"), brevity=number), [passage], {}, {1: 0.4}
            )
        ]
        assert (long["asks"], long["length"]) == (short["asks"] / 4, short["length"] / 4)
        assert long["meaning"] == pytest.approx(share * short["meaning"])
        assert long["words"] == short["words"]


def test_another_phrasing_counts_by_what_is_new_in_it() -> None:
    found, guessed = turn(1, "it is rare"), turn(2, "how odd")
    asked, guess, repeat = query("rare"), query("odd"), query("rare odd")
    scores = [score_passages(item, [found, guessed], {}, {}) for item in (asked, guess)]
    more = [
        *scores[:1],
        score_passages(repeat, [found, guessed], {}, {}),
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
    assert score_passages(query("rare"), [], {}, {}) == []
    (found,) = score_passages(query("rare"), [turn(1, "")], {}, {})
    assert found.score == 0


def test_a_long_question_may_match_all_of_a_long_text() -> None:
    rest = " filler" * 150
    text = f"rare{rest}{rest}{rest}. odd{rest}{rest}{rest}."
    asked = query("rare odd")
    both, one = turn(1, text), turn(2, text.replace("odd", "also"))
    found = score_passages(asked, [both, one], {}, {})
    assert rank(found) == [1, 2]


@given(SIGNALS)
def test_with_a_vector_words_count_less_and_meaning_counts(signals: Signals) -> None:
    assert signals.meaning is not None
    rest = 2.25 * signals.words + 2 * signals.entity
    meaning = (signals.meaning - 0.1) / 0.12
    of_turn = rest + signals.before + meaning
    assert score(replace(signals, is_turn=True)) == pytest.approx(of_turn)
    assert score(signals) == pytest.approx(rest + 1.75 * meaning)


@given(SIGNALS)
def test_without_a_vector_words_say_everything(signals: Signals) -> None:
    bare = replace(signals, meaning=None)
    match = 4 * signals.words + 2.5 * signals.before
    assert score(bare) == pytest.approx(match + 2 * signals.entity)


@given(SIGNALS)
def test_the_score_is_the_sum_of_all_signals_times_their_weights(signals: Signals) -> None:
    weighed = weigh(signals)
    assert {name for name, _, _ in weighed} == {*Signals.__struct_fields__} - {"is_turn", "brevity"}
    assert score(signals) == sum(value * weight for _, value, weight in weighed)


def test_a_score_does_not_depend_on_the_other_passages() -> None:
    one, other = turn(1, "it is rare"), turn(2, "a common thing")
    asked = query("rare common")
    both = score_passages(asked, [one, other], {}, {1: 0.3})
    assert score_passages(asked, [one], {}, {1: 0.3}) == both[:1]


def test_what_stands_before_a_noted_fact_does_not_count() -> None:
    asks = turn(1, "Is it rare?", by="Bob")
    fact = replace(turn(2, "Yes it is"), valid_at=0)
    (scored,) = score_passages(query("rare"), [fact], {fact.key: Neighbours(before=asks)}, {})
    assert scored.signals.before == 0


def test_in_an_embedded_memory_the_words_of_a_card_count_no_more_than_those_of_a_fact() -> None:
    fact, card = replace(turn(1, "a rare thing"), valid_at=0), replace(turn(0, "rare"), type="x")
    of_fact, of_card = score_passages(query("rare"), [fact, card], {}, {1: 0.1})
    assert (of_fact.signals.meaning, of_card.signals.meaning) == (0.1, 0.1)
