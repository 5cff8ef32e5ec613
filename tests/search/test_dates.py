"""Dates in questions, and how an observation's time agrees with them."""

from datetime import UTC, datetime

import pytest

from polymnia.search.dates import (
    Period,
    agreement,
    asks_when,
    find_period,
    named_periods,
    relative_period,
    relative_times,
    stamped_time,
    tells_time,
    text_agreement,
)
from polymnia.search.terms import terms_of


def micros(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, 15, 30, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("text", "period", "rest"),
    [
        ("What happened on 25 May, 2023?", Period(2023, 5, 25), "What happened on  ?"),
        ("on October 13, 2023 they met", Period(2023, 10, 13), "on   they met"),
        ("the 3rd of June 2022", Period(2022, 6, 3), "the  "),
        ("on 2023-05-08", Period(2023, 5, 8), "on  "),
        ("in July 2023", Period(2023, 7, 0), "in  "),
        ("in Sept. 2021 or so", Period(2021, 9, 0), "in   or so"),
        ("on July 6", Period(0, 7, 6), "on  "),
        ("in May", Period(0, 5, 0), " "),
        ("the beach in 2023", Period(2023, 0, 0), "the beach in  "),
        ("since may", Period(0, 5, 0), " "),
        ("next may?", Period(0, 5, 0), " ?"),
        ("this May in Rome", Period(0, 5, 0), "  in Rome"),
        ("May 3", Period(0, 5, 3), " "),
        ("May 2023", Period(2023, 5, 0), " "),
        ("may I ask", None, "may I ask"),
        ("how long may lines be", None, "how long may lines be"),
        ("how long this may take", None, "how long this may take"),
        ("what comes next may be hard", None, "what comes next may be hard"),
        ("on 31 February 2023", Period(2023, 2, 0), "on 31  "),
        ("port 6380", None, "port 6380"),
    ],
)
def test_a_date_is_found_and_removed(text: str, period: Period | None, rest: str) -> None:
    assert find_period(text) == (period, rest)


def test_agreement_with_a_day_fades_over_ten_days() -> None:
    day = Period(2023, 5, 8)
    assert agreement(day, micros(2023, 5, 8)) == 1
    assert agreement(day, micros(2023, 5, 13)) == 0.5
    assert agreement(day, micros(2023, 5, 30)) == 0


def test_a_month_agrees_with_itself_and_a_little_with_the_next() -> None:
    assert agreement(Period(2023, 12, 0), micros(2023, 12, 31)) == 1
    assert 0 < agreement(Period(2023, 12, 0), micros(2024, 1, 3)) < 1
    assert agreement(Period(2023, 12, 0), micros(2023, 11, 30)) == 0
    assert agreement(Period(0, 5, 0), micros(1999, 5, 1)) == 1


def test_a_year_alone_agrees_only_a_little() -> None:
    assert 0 < agreement(Period(2023, 0, 0), micros(2023, 3, 3)) < 0.5
    assert agreement(Period(2023, 0, 0), micros(2022, 3, 3)) == 0


@pytest.mark.parametrize("period", [Period(2023, 5, 8), Period(2023, 12, 0), Period(2023, 0, 0)])
def test_the_bounds_include_every_time_that_agrees(period: Period) -> None:
    assert period.bounds is not None
    start, end = period.bounds
    agreeing = [
        at
        for day in range(1, 29)
        for m in range(1, 13)
        if agreement(period, at := micros(2023, m, day)) > 0
    ]
    assert agreeing
    assert all(start <= at < end for at in agreeing)


def test_a_day_that_a_year_does_not_have_agrees_with_nothing_in_it() -> None:
    assert agreement(Period(0, 2, 29), micros(2023, 2, 28)) == 0


def test_questions_for_a_time_and_texts_with_a_time_are_recognized() -> None:
    assert asks_when("When did she go?")
    assert asks_when("what year was it")
    assert asks_when("In which month did they meet, and when was the wedding?")
    assert asks_when("since when")
    assert asks_when("How long has she been painting?")
    assert asks_when("how often do they meet")
    assert not asks_when("how long may lines be")
    assert not asks_when("whenever you like")
    assert not asks_when("what happens to the flow when heat is added")
    assert tells_time(terms_of("I went yesterday"))
    assert tells_time(terms_of("back in 2019"))
    assert tells_time(terms_of("on the 5th"))
    assert not tells_time(terms_of("I went home"))


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("[8 May 2023] went to the club", (2023, 5, 8)),
        ("[1:56 pm on 8 May, 2023] hello", (2023, 5, 8)),
        ("(Monday, May 8, 2023) hello", (2023, 5, 8)),
        ("2023-05-08: deployed", (2023, 5, 8)),
        ("2023-05-08T10:30:00Z deployed", (2023, 5, 8)),
        ("[May 2023] hello", None),
        ("[since 8 May 2023 she sails]", None),
        ("deployed on 8 May 2023", None),
        ("1999 bottles", None),
        ("", None),
    ],
)
def test_a_date_at_the_start_of_a_text_is_its_time(
    text: str, day: tuple[int, int, int] | None
) -> None:
    at = int(datetime(*day, tzinfo=UTC).timestamp()) * 1_000_000 if day else 0
    assert stamped_time(text) == at


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I went there yesterday", (2023, 5, 9)),
        ("We meet tomorrow", (2023, 5, 11)),
        ("two weeks ago I moved", (2023, 4, 26)),
        ("I moved last week", (2023, 5, 3)),
        ("The launch is in two weeks", (2023, 5, 24)),
        ("In 3 days we leave", (2023, 5, 13)),
    ],
)
def test_days_that_a_text_mentions_count_from_when_it_was_said(
    text: str, day: tuple[int, int, int]
) -> None:
    (found,) = relative_times(text, micros(2023, 5, 10))
    assert (
        datetime.fromtimestamp(found / 1_000_000, UTC).date() == datetime(*day, tzinfo=UTC).date()
    )


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("What did we decide yesterday?", Period(2024, 3, 30)),
        ("What did we discuss last week?", Period(2024, 3, 24)),
        ("What happened this week?", Period(2024, 3, 31)),
        ("what was planned last month", Period(2024, 2, 0)),
        ("who moved two months ago", Period(2024, 1, 0)),
        ("plans for next month", Period(2024, 4, 0)),
        ("trips last year", Period(2023, 0, 0)),
        ("three days ago", Period(2024, 3, 28)),
        ("Where does he live today?", None),
        ("Where does he live?", None),
    ],
)
def test_a_question_may_count_from_now(question: str, period: Period | None) -> None:
    assert relative_period(question, micros(2024, 3, 31)) == period


def test_a_text_that_mentions_the_asked_day_agrees_with_it() -> None:
    assert text_agreement(Period(2023, 5, 9), "I went there yesterday", micros(2023, 5, 10)) == 1
    assert text_agreement(Period(2023, 5, 9), "I went there", micros(2023, 5, 10)) == 0
    assert text_agreement(Period(2023, 7, 6), "the party is on July 6", micros(2023, 5, 10)) == 1
    assert text_agreement(Period(2023, 2, 28), "it was on February 29", micros(2023, 5, 10)) == 1


def test_every_date_in_a_text_counts() -> None:
    text = (
        "[22 May 2023] Launch moved from 5 June 2023 to 19 June 2023, review in August, "
        "party in September 2024"
    )
    periods = [
        Period(2023, 5, 22),
        Period(2023, 6, 5),
        Period(2023, 6, 19),
        Period(2024, 9, 0),
        Period(0, 8, 0),
    ]
    assert list(named_periods(text)) == periods
    assert text_agreement(Period(2023, 6, 19), text, micros(2023, 5, 22)) == 1
    assert text_agreement(Period(2023, 8, 0), text, micros(2023, 5, 22)) == 1


def test_a_month_without_a_preposition_counts_in_a_text() -> None:
    assert (
        text_agreement(Period(0, 7, 0), "[19 June 2023] Tom will do July", micros(2023, 6, 19)) == 1
    )
    assert (
        text_agreement(Period(2022, 7, 0), "[19 June 2023] Tom will do July", micros(2023, 6, 19))
        == 0
    )


def test_a_year_alone_does_not_agree_with_a_month() -> None:
    assert 0 < text_agreement(Period(2018, 7, 0), "built in 2018", micros(2023, 6, 19)) < 0.5
    assert text_agreement(Period(0, 7, 0), "built in 2018", micros(2023, 6, 19)) == 0
