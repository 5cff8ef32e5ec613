"""Times as ISO 8601 text, written and read."""

import re
from datetime import UTC, datetime, timedelta

from polymnia.errors import BadInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_OF_YEAR = re.compile(r"(\d{4})-?(\d{3})(?=T)")
_AGE = re.compile(r"(?P<count>\d{1,6})(?P<unit>[wdhm])")
# Words for distances: "last week", "2 months ago", "in 3 days".
_SPOKEN_DISTANCE = re.compile(
    r"(?P<ahead>in )?(?P<count>\d{1,4}|last|next|a|an|one) ?(?P<unit>day|week|month|year)s?"
    r"(?P<back> ago)?"
)
_SPOKEN_WEEKDAY = re.compile(r"(?:(?P<which>last|next|this|on) )?(?P<day>[a-z]+day)")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPOKEN_DAYS = {"today": 0, "yesterday": 1, "tomorrow": -1}
_DAYS_OF_UNIT = {"day": 1, "week": 7, "month": 30, "year": 365}
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
_EXAMPLE = "such as 2026-04-27T14:00:00Z or 2026-04-27T16:00:00+02:00"


def iso_time(at: int) -> str | None:
    """Return a model time as ISO 8601 in UTC; None if the store does not know the time."""
    if not at:
        return None
    return (_EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


def day_label(at: datetime, today: datetime | None = None) -> str:
    """Return a day as `Fri 13 Nov`.

    The year follows if it is not that of today, and the time of day if it is not midnight.
    """
    text = f"{at:%a} {at.day} {at:%b}"
    if today is None or at.year != today.year:
        text += f" {at.year}"
    if at.hour or at.minute:
        text += f" {at:%H:%M}"
    return text


def parse_time(text: str, name: str) -> int:
    """Return microseconds since 1970 for a time with a zone. Raise BadInput."""
    try:
        moment = datetime.fromisoformat(_with_month(text.strip().upper()))
        in_utc = moment.astimezone(UTC)  # may lie before the year 1 or after 9999
    except (ValueError, OverflowError) as exc:
        raise BadInput(f"{name}: {text!r} is not an ISO 8601 date and time, {_EXAMPLE}") from exc
    if moment.tzinfo is None:
        raise BadInput(f"{name}: {text!r} has no time zone; add one, {_EXAMPLE}")
    return (in_utc - _EPOCH) // _MICROSECOND


def parse_moment(text: str, name: str, *, ahead: bool = False) -> int:
    """Return microseconds since 1970 for a date, a time (UTC) or a distance. Raise BadInput.

    `7d`, "2 weeks" and "friday" lie in the past, or with `ahead` in the future.
    """
    plain = text.strip()
    distance = _AGE.fullmatch(plain)
    now = datetime.now(UTC)
    days = spoken_days(plain.lower(), now.weekday(), ahead=ahead)
    try:
        if days is not None:
            moment = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)
        elif distance:
            length = timedelta(**{_UNITS[distance["unit"]]: int(distance["count"])})
            moment = now + length if ahead else now - length
        else:
            moment = datetime.fromisoformat(plain)
        in_utc = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        spoken = "next friday or in 2 weeks" if ahead else "yesterday or 2 weeks ago"
        examples = f"2026-04-27, 2026-04-27T14:00Z, 7d, {spoken}"
        raise BadInput(f"{name}: {text!r} is not a time; use {examples}") from exc
    return (in_utc - _EPOCH) // _MICROSECOND


def spoken_days(text: str, weekday: int, *, ahead: bool) -> int | None:
    """Return how many days ago "yesterday" or "2 weeks ago" is; None for other texts.

    Days to come are below 0. `weekday` is today's.
    """
    days = _SPOKEN_DAYS.get(text)
    if days is not None:
        return days
    named = _SPOKEN_WEEKDAY.fullmatch(text)
    if named is not None and named["day"] in _WEEKDAYS:
        return _days_since(_WEEKDAYS.index(named["day"]), named["which"], weekday, ahead=ahead)
    spoken = _SPOKEN_DISTANCE.fullmatch(text)
    if spoken is None:
        return None
    count = spoken["count"]
    number = int(count) if count.isdigit() else 1
    days = number * _DAYS_OF_UNIT[spoken["unit"]]
    if spoken["back"] or count == "last":
        return days
    return -days if ahead or spoken["ahead"] or count == "next" else days


def _days_since(day: int, which: str | None, today: int, *, ahead: bool) -> int:
    """Return how many days ago a weekday was; below 0 if it is to come. "Next" is never today."""
    if which == "next":
        return -((day - today) % 7 or 7)
    if which == "last":
        return (today - day) % 7 or 7
    return -((day - today) % 7) if ahead else (today - day) % 7


def parse_optional_moment(text: str, name: str, *, ahead: bool = False) -> int | None:
    """Return the time as `parse_moment` does; None if the text is empty. Raise BadInput."""
    if not text:
        return None
    return parse_moment(text, name, ahead=ahead)


def _with_month(text: str) -> str:
    """Replace a day of the year (2026-117) by month and day, which `fromisoformat` can read."""
    match = _DAY_OF_YEAR.match(text)
    if match is None:
        return text
    day = datetime.strptime(match[1] + match[2], "%Y%j").replace(tzinfo=UTC)
    return day.strftime("%Y-%m-%d") + text[match.end() :]
