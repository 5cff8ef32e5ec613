"""Dates in English text: the date in a question, how well other times agree with it, and words that tell a time."""

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import cache

from msgspec import Struct

from polymnia.search.terms import terms_of

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
# From the most precise form of a date to the least.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b{_YEAR}-(?P<number>[01]\d)-{_DAY}\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b",
        rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b{_YEAR}-(?P<number>[01]\d)\b",
        rf"\b{_MONTH}\s+{_DAY}\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?!\w)",
        rf"\b(?:in|during|since|until|before|after|last|this|next|of|by)\s+{_MONTH}(?!\w)",
        rf"\b{_YEAR}\b",
    )
)
_TIMES = """
yesterday today tonight tomorrow ago recently week weekend month year day night morning evening afternoon summer winter
spring autumn fall monday tuesday wednesday thursday friday saturday sunday january february april june july august
september october november december
"""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
# "When" in the middle of a sentence asks for a time only before one of these verbs; else it states a condition.
_AUXILIARIES = "am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would"
_ASKS_WHEN = re.compile(
    rf"(?:^\W*when|\bwhen\s+(?:{_AUXILIARIES})|\b(?:since|till|until)\s+when|\bwhat\s+(?:date|day|month|year|time)|"
    r"\bwhich\s+(?:date|day|month|year)|\bhow\s+long\s+ago)\b",
    re.IGNORECASE,
)
# A day this far from the named one no longer agrees with it.
MAX_DAYS_OFF = 10
# How well a time agrees with its year alone, and with the month before its own.
YEAR_AGREEMENT, NEXT_MONTH_AGREEMENT = 0.3, 0.4


class Period(Struct, frozen=True):
    """A day, month or year in a question. A part that is not given is 0."""

    year: int
    month: int
    day: int

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The start and the end of the times that may agree with it, in microseconds; None if it has no year."""
        if not self.year:
            return None
        start = datetime(self.year, self.month or 1, self.day or 1, tzinfo=UTC)
        if self.day:
            return _micros(start - timedelta(MAX_DAYS_OFF)), _micros(start + timedelta(MAX_DAYS_OFF + 1))
        months = 2 if self.month else 12
        total = start.month - 1 + months
        end = start.replace(year=start.year + total // 12, month=total % 12 + 1)
        return _micros(start), _micros(end)


def find_period(text: str) -> tuple[Period | None, str]:
    """Return the date that the text names, if any, and the text without it."""
    for form in _FORMS:
        found = form.search(text)
        period = _period(found.groupdict()) if found else None
        if found and period:
            return period, text[: found.start()] + " " + text[found.end() :]
    return None, text


def describe_period(period: Period) -> str:
    """Return a period as people write it: 8 May 2023, Dec 2023, 8 May, 2023."""
    month = _MONTHS[period.month - 1].capitalize() if period.month else ""
    return " ".join([str(part) for part in (period.day, month, period.year) if part])


def agreement(period: Period, at: int) -> float:
    """Return how well a time in microseconds agrees with the period, from 0 to 1."""
    when = datetime.fromtimestamp(at / 1_000_000, UTC)
    if period.day:
        return _day_agreement(period, when)
    if not period.month:
        return YEAR_AGREEMENT if when.year == period.year else 0.0
    months = when.month - period.month + 12 * (when.year - (period.year or when.year))
    return {0: 1.0, 1: NEXT_MONTH_AGREEMENT}.get(months, 0.0)


def asks_when(text: str) -> bool:
    """Return True if the text asks for a time."""
    return _ASKS_WHEN.search(text) is not None


def tells_time(terms: Collection[str]) -> bool:
    """Return True if a text with these terms tells a time."""
    if not _time_terms().isdisjoint(terms):
        return True
    numbers = [term for term in terms if term[0].isdigit()]
    return any((len(each) == 4 and each.isdigit()) or _ORDINAL.fullmatch(each) for each in numbers)


@cache
def _time_terms() -> frozenset[str]:
    return frozenset(terms_of(_TIMES))


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


def _micros(when: datetime) -> int:
    return int(when.timestamp()) * 1_000_000
