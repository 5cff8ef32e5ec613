"""Times as people and models write them."""

import pytest

from polymnia.errors import BadInput
from polymnia.formats.times import parse_moment, spoken_days

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
