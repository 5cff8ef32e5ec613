"""Times as people and models write them."""

from datetime import UTC, datetime

import pytest

from polymnia.errors import BadInput
from polymnia.search.times import parse_moment, spoken_days

WEDNESDAY = 2


@pytest.mark.parametrize(
    ("text", "back", "ahead"),
    [
        ("today", 0, 0),
        ("tomorrow", -1, -1),
        ("last week", 7, 7),
        ("next week", -7, -7),
        ("2 weeks ago", 14, 14),
        ("in 2 weeks", -14, -14),
        ("2 weeks", 14, -14),
        ("friday", 5, -2),
        ("on wednesday", 0, 0),
        ("next wednesday", -7, -7),
        ("next friday", -2, -2),
        ("last friday", 5, 5),
        ("someday", None, None),
        ("soon", None, None),
    ],
)
def test_a_distance_counts_back_unless_it_is_a_plan(
    text: str, back: int | None, ahead: int | None
) -> None:
    assert spoken_days(text, WEDNESDAY, ahead=False) == back
    assert spoken_days(text, WEDNESDAY, ahead=True) == ahead


def test_an_age_of_a_plan_lies_in_the_future() -> None:
    assert parse_moment("7d", "since") < parse_moment("0d", "since")
    assert parse_moment("7d", "due", ahead=True) > parse_moment("6d", "due", ahead=True)


@pytest.mark.parametrize(("ahead", "example"), [(True, "next friday"), (False, "yesterday")])
def test_what_is_no_time_is_refused_with_examples(ahead: bool, example: str) -> None:
    with pytest.raises(BadInput, match=f"since: 'soon' is not a time.*{example}"):
        parse_moment("soon", "since", ahead=ahead)


def days_from_now(text: str, *, ahead: bool = False, end: bool = False) -> float:
    now = datetime.now(UTC).timestamp()
    return (parse_moment(text, "when", ahead=ahead, end=end) / 1_000_000 - now) / 86_400


def day(text: str, *, ahead: bool = False, end: bool = False) -> str:
    at = parse_moment(text, "when", ahead=ahead, end=end) // 1_000_000
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="minutes").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2022", "2022-01-01T00:00", "2022-12-31T23:59"),
        ("2026-11", "2026-11-01T00:00", "2026-11-30T23:59"),
        ("2026-11-18", "2026-11-18T00:00", "2026-11-18T23:59"),
        ("20261118", "2026-11-18T00:00", "2026-11-18T23:59"),
        ("2026-11-18T14:00Z", "2026-11-18T14:00", "2026-11-18T14:00"),
        ("November 2026", "2026-11-01T00:00", "2026-11-30T23:59"),
        ("end of February 2028", "2028-02-29T00:00", "2028-02-29T23:59"),
        ("3 July 2026", "2026-07-03T00:00", "2026-07-03T23:59"),
        ("3rd of July, 2026", "2026-07-03T00:00", "2026-07-03T23:59"),
        ("July 3, 2026", "2026-07-03T00:00", "2026-07-03T23:59"),
        ("Fri 13 Nov 2020", "2020-11-13T00:00", "2020-11-13T23:59"),
        ("9999-12-31", "9999-12-31T00:00", "9999-12-31T23:59"),
    ],
)
def test_a_day_month_or_year_means_its_first_moment_or_its_last(
    text: str, first: str, last: str
) -> None:
    assert day(text) == first
    assert day(text, end=True) == last


@pytest.mark.parametrize("text", ["1 December", "Mar 31", "june", "end of January"])
def test_a_date_without_a_year_is_the_nearest_in_its_direction(text: str) -> None:
    assert -366 < days_from_now(text) <= 0
    assert -31 < days_from_now(text, ahead=True) < 366


def test_the_end_of_a_month_is_its_last_day() -> None:
    assert day("end of January", ahead=True)[4:] == "-01-31T00:00"


@pytest.mark.parametrize(
    ("text", "hours"), [("1 hour ago", -1), ("an hour ago", -1), ("in 2 hours", 2), ("3h ago", -3)]
)
def test_hours_count_from_now(text: str, hours: int) -> None:
    assert days_from_now(text) * 24 == pytest.approx(hours, abs=0.1)


@pytest.mark.parametrize("text", ["5 min ago", "5 minutes ago", "5 mins"])
def test_minutes_count_from_now(text: str) -> None:
    assert days_from_now(text) * 1440 == pytest.approx(-5, abs=1)


def test_this_week_begins_on_monday_and_a_plan_for_it_ends_on_sunday() -> None:
    monday = datetime.fromisoformat(day("this week"))
    sunday = datetime.fromisoformat(day("this week", ahead=True))
    assert (monday.weekday(), sunday.weekday()) == (0, 6)
    assert (sunday - monday).days == 6


@pytest.mark.parametrize("text", ["2026-13", "31 February 2026", "0 May 2026", "12", "0999"])
def test_days_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not a time"):
        parse_moment(text, "since")
