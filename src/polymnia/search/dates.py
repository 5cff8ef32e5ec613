"""Dates in English text: the date that a question names, and how well other times agree with it."""

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice

from msgspec import Struct

from polymnia.search.terms import terms_of

# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
# "This may take long": in lower case and before another word it is the verb.
_VERB = r"\s+(?-i:may)\s+\w"
# From the most precise form of a date to the least.
_FORMS = (
    rf"\b{_YEAR}-(?P<number>[01]\d)-{_DAY}\b",
    rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b",
    rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b",
    rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
    rf"\b{_YEAR}-(?P<number>[01]\d)\b",
    rf"\b{_MONTH}\s+{_DAY}\b",
    rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?!\w)",
    r"\b(?:in|during|since|until|before|after|last|of|by|"
    rf"(?:this|next)(?!{_VERB}))\s+{_MONTH}(?!\w)",
    rf"\b{_YEAR}\b",
)
_TIME_WORDS = """
yesterday today tonight tomorrow ago recently week weekend month year day night morning evening
afternoon summer winter spring autumn fall monday tuesday wednesday thursday friday saturday sunday
january february april june july august september october november december
"""
_ORDINAL = r"\d+(?:st|nd|rd|th)"
# "When" in the middle of a sentence asks for a time only before one of these verbs; otherwise it
# states a condition. "How long may/must/should" usually asks for a length, not for a time.
_AUXILIARIES = (
    "am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would"
)
_ASKS_WHEN = (
    rf"(?:^\W*when|\bwhen\s+(?:{_AUXILIARIES})|\b(?:since|till|until)\s+when|"
    r"\bwhat\s+(?:date|day|month|year|time)|\bwhich\s+(?:date|day|month|year)|"
    r"\bhow\s+(?:often|long(?!\s+(?:may|must|should)\b)))\b"
)
# A date at the start of a text, in brackets or as ISO 8601, and what may stand beside it: a time
# and a weekday.
_STAMP = r"\s*(?:\[([^\]\n]{6,40})\]|\(([^)\n]{6,40})\)|((?:19|20)\d\d-[01]\d-[0-3]\d)(?![\d-]))"
_BESIDE_DATE = (
    r"[\s\d:.,+TZ-]*(?:(?:[ap]\.?m\.?|on|at|utc|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)[\s,:.]*)*"
)
_COUNT = r"(\d{1,2}|an?|one|two|three|four|five|six)\s+(day|week|month|year)s?"
_RELATIVE = (
    r"\b(?:(?P<day>yesterday|today|tonight|tomorrow)|"
    r"(?P<which>last|this|next)\s+(?P<unit>week|month|year)|"
    rf"(?P<past>{_COUNT})\s+ago|in\s+(?P<future>{_COUNT}))\b"
)
# A month alone, as in "due July". `May` and `March` are words too.
_MONTH_ALONE = r"\b(january|february|april|june|july|august|september|october|november|december)\b"
# Dates of a text that are compared with the date of a question.
MAX_NAMED_DATES = 8
_DAY_OFFSETS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_UNIT_OFFSETS = {"last": -1, "this": 0, "next": 1}
# In a question, "today" often means "nowadays".
_NOWADAYS = r"\b(?:today|tonight)\b"
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
# A day this far from the named one no longer agrees with it.
MAX_DAYS_OFF = 10
_DAY_MICROS = 86_400_000_000
# Every text is tested on every write, so this quick test comes first.
_STAMP_STARTS = frozenset("[( 12")
# How well a time agrees with its year alone, and with the month before its own.
YEAR_AGREEMENT, NEXT_MONTH_AGREEMENT = 0.3, 0.4


class Period(Struct, frozen=True):
    """A day, month or year in a question. A part that is not given is 0."""

    year: int
    month: int
    day: int

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The start and the end of the times that may agree with it, in microseconds.

        None if it has no year.
        """
        if not self.year:
            return None
        start = datetime(self.year, self.month or 1, self.day or 1, tzinfo=UTC)
        if self.day:
            first = start - timedelta(MAX_DAYS_OFF)
            last = start + timedelta(MAX_DAYS_OFF + 1)
            return _micros(first), _micros(last)
        months = 2 if self.month else 12  # the month after the named one agrees in part
        total = start.month - 1 + months
        end = start.replace(year=start.year + total // 12, month=total % 12 + 1)
        return _micros(start), _micros(end)


def find_period(text: str) -> tuple[Period | None, str]:
    """Return the date that the text names, if any, and the text without it."""
    if not _may_name_date(text):
        return None, text
    for form in _FORMS:
        match = _compiled(form, re.IGNORECASE).search(text)
        if match is None:
            continue
        period = _period(match.groupdict())
        if period is not None:
            return period, text[: match.start()] + " " + text[match.end() :]
    return None, text


def _may_name_date(text: str) -> bool:
    """Return True if the text has a digit or the start of a month. Most questions have neither."""
    lowered = text.lower()
    return any(month in lowered for month in _MONTHS) or any(map(str.isdigit, text))


def describe_period(period: Period) -> str:
    """Return a period as people write it: 8 May 2023, Dec 2023, 8 May, 2023."""
    month = _MONTHS[period.month - 1].capitalize() if period.month else ""
    parts = (period.day, month, period.year)
    return " ".join(str(part) for part in parts if part)


def agreement(period: Period, at: int) -> float:
    """Return how well a time in microseconds agrees with the period, from 0 to 1."""
    when = datetime.fromtimestamp(at / 1_000_000, UTC)
    if period.day:
        return _day_agreement(period, when)
    if not period.month:
        return YEAR_AGREEMENT if when.year == period.year else 0.0
    year = period.year or when.year
    months = when.month - period.month + 12 * (when.year - year)
    return {0: 1.0, 1: NEXT_MONTH_AGREEMENT}.get(months, 0.0)


def text_agreement(period: Period, text: str, at: int) -> float:
    """Return how well the times that a text mentions agree with the period.

    `at` is when it was said.
    """
    # A year alone says nothing about the month.
    of_year = Period(period.year, 0, 0)
    best = 0.0
    for named in islice(named_periods(text), MAX_NAMED_DATES):
        compared = period if named.month else of_year
        best = max(best, agreement(compared, _micros(_start(named, at))))
    for time in relative_times(text, at):
        best = max(best, agreement(period, time))
    return best


def named_periods(text: str) -> Iterator[Period]:
    """Yield the dates that a text names: `8 May 2023`, `in May`, `2023`, and months alone."""
    period, rest = find_period(text)
    while period:
        yield period
        period, rest = find_period(rest)
    for month in _compiled(_MONTH_ALONE, re.IGNORECASE).findall(rest):
        yield Period(0, 1 + _MONTHS.index(month[:3].lower()), 0)


def relative_times(text: str, at: int) -> list[int]:
    """Return the days that a text counts from when it was said, in microseconds.

    Examples are `yesterday` and `two weeks ago`.
    """
    times = []
    for match in _compiled(_RELATIVE, re.IGNORECASE).finditer(text):
        count, unit = _offset(match)
        times.append(at + count * _UNIT_DAYS[unit] * _DAY_MICROS)
    return times


def relative_period(text: str, now: int) -> Period | None:
    """Return the day, month or year that a question counts from now, such as `last month`."""
    text = _compiled(_NOWADAYS, re.IGNORECASE).sub(" ", text)
    match = _compiled(_RELATIVE, re.IGNORECASE).search(text)
    if match is None:
        return None
    count, unit = _offset(match)
    today = datetime.fromtimestamp(now / 1_000_000, UTC)
    if unit == "year":
        return Period(today.year + count, 0, 0)
    if unit == "month":
        months = 12 * today.year + today.month - 1 + count
        return Period(months // 12, months % 12 + 1, 0)
    day = today + timedelta(count * _UNIT_DAYS[unit])
    return Period(day.year, day.month, day.day)


def stamped_time(text: str) -> int:
    """Return the day with which a text begins, in microseconds; 0 if there is none.

    Examples are `[8 May 2023]` and `2023-05-08:`.
    """
    if text[:1] not in _STAMP_STARTS:
        return 0
    match = _compiled(_STAMP).match(text)
    if match is None:
        return 0
    stamp = next(filter(None, match.groups()))
    period, rest = find_period(stamp)
    if period is None or not (period.year and period.day):
        return 0
    if not _compiled(_BESIDE_DATE, re.IGNORECASE).fullmatch(rest):
        return 0
    return _micros(_start(period, 0))


def asks_when(text: str) -> bool:
    """Return True if the text asks for a time: when, how long or how often."""
    return _compiled(_ASKS_WHEN, re.IGNORECASE).search(text) is not None


def tells_time(terms: Collection[str]) -> bool:
    """Return True if a text with these terms tells a time."""
    if not _time_terms().isdisjoint(terms):
        return True
    return any(_is_date_number(term) for term in terms if term[0].isdigit())


@cache
def _time_terms() -> frozenset[str]:
    return frozenset(terms_of(_TIME_WORDS))


def _is_date_number(term: str) -> bool:
    is_year = len(term) == 4 and term.isdigit()
    return is_year or _compiled(_ORDINAL).fullmatch(term) is not None


def _period(parts: dict[str, str]) -> Period | None:
    month = int(parts.get("number") or 0)
    if parts.get("month"):
        month = 1 + _MONTHS.index(parts["month"][:3].lower())
    year, day = int(parts.get("year") or 0), int(parts.get("day") or 0)
    try:
        datetime(year or 2000, month or 1, day or 1, tzinfo=UTC)
    except ValueError:
        return None
    return Period(year, month, day)


def _day_agreement(period: Period, when: datetime) -> float:
    try:
        day = datetime(period.year or when.year, period.month, period.day, tzinfo=UTC)
    except ValueError:  # 29 February in a year without one
        return 0.0
    off = abs((when.replace(hour=0, minute=0, second=0, microsecond=0) - day).days)
    return max(0.0, 1 - off / MAX_DAYS_OFF)


def _start(period: Period, at: int) -> datetime:
    """Return the day of a period, or its middle; a missing year is that of the time."""
    year = period.year or datetime.fromtimestamp(at / 1_000_000, UTC).year
    try:
        return datetime(year, period.month or 7, period.day or 15, tzinfo=UTC)
    except ValueError:  # 29 February in a year without one
        return datetime(year, period.month, 28, tzinfo=UTC)


def _offset(match: re.Match[str]) -> tuple[int, str]:
    """Return the number of days, weeks or months from the time of a text to the day it names."""
    parts = {name: (value or "").lower() for name, value in match.groupdict().items()}
    if parts["day"]:
        return _DAY_OFFSETS[parts["day"]], "day"
    if parts["unit"]:
        return _UNIT_OFFSETS[parts["which"]], parts["unit"]
    count, unit = (parts["past"] or parts["future"]).split()
    number = _NUMBERS.get(count) or int(count)
    return -number if parts["past"] else number, unit.removesuffix("s")


def _micros(when: datetime) -> int:
    return int(when.timestamp()) * 1_000_000


def day_of(at: int) -> str:
    """Return the day of a time as 2026-11-13, in UTC; empty if the time is unknown."""
    if not at:
        return ""
    return datetime.fromtimestamp(at / 1_000_000, UTC).date().isoformat()
