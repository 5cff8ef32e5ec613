"""Stored text as pages show it, and the values in forms."""

from datetime import date, datetime

import pytest

from polymnia.errors import BadInput
from polymnia.web import text
from polymnia.web.page import parse_fields


def test_control_characters_are_visible() -> None:
    assert text.visible("a\x1b[31mb\x7f\u202ec\r\nd\te") == "a␛[31mb␡⟨U+202E⟩c\nd\te"


def test_marks_are_the_only_markup() -> None:
    marked = str(text.mark("<b>Redis</b> & deciding to rediscover", ["redi", "decid"]))
    assert (
        marked == "&lt;b&gt;<mark>Redis</mark>&lt;/b&gt; &amp; <mark>deciding</mark> to rediscover"
    )


def test_an_excerpt_is_short_and_says_that_it_is_cut() -> None:
    assert text.excerpt("short") == "short"
    assert len(text.excerpt("x" * 10**6)) == text.MAX_EXCERPT_CHARS + 1
    assert text.excerpt("line\n" * 100).count("\n") < text.MAX_EXCERPT_LINES
    assert text.text_size("x" * 2**20) == "1.0 MB"


def test_a_type_has_the_same_dot_in_any_case() -> None:
    assert text.type_number("Person") == text.type_number(" person ") == 1
    assert 1 <= text.type_number("anything else") <= 10


def test_an_actor_is_a_client_and_perhaps_a_token() -> None:
    assert (text.client_name("cursor (token ci)"), text.token_name("cursor (token ci)")) == (
        "cursor",
        "ci",
    )
    assert (text.client_name("cursor"), text.token_name("cursor")) == ("cursor", "")


def test_a_time_of_another_day_is_a_day() -> None:
    at = datetime(2026, 11, 14, 17, 45).astimezone()
    micros = int(at.timestamp()) * 1_000_000
    assert text.clock_or_day(micros, date(2026, 11, 14)) == "17:45"
    assert text.clock_or_day(micros, date(2026, 11, 16)) == "14 Nov"


def test_ages_are_rough() -> None:
    now = datetime.fromtimestamp(1_000_000).astimezone()
    ages = [
        text.age((1_000_000 - back) * 1_000_000, now)
        for back in (5, 90, 7200, 86_400, 86_400 * 3, 86_400 * 21)
    ]
    assert ages == ["now", "1 min ago", "2 h ago", "yesterday", "3 days ago", "3 weeks ago"]


def test_a_field_has_one_value_or_several() -> None:
    form = parse_fields(b"a=1&a=2&text=one%0D%0Atwo&empty=")
    assert form.getlist("a") == ["1", "2"]
    assert form["text"] == "one\ntwo"
    assert (form.get("empty", "x"), form.get("b", "x"), "b" in form) == ("", "x", False)


@pytest.mark.parametrize("body", [b"\xff=1", b"a=%ff", b"&".join([b"a=1"] * 10_001)])
def test_bad_fields_are_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        parse_fields(body)


def test_a_missing_field_or_number_is_refused() -> None:
    fields = parse_fields(b"n=x")
    with pytest.raises(BadInput):
        fields.number("n")
    with pytest.raises(BadInput):
        fields["m"]
