"""Times as ISO 8601 text, written and read."""

import re
from datetime import UTC, datetime, timedelta

from polymnia.errors import BadInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_OF_YEAR = re.compile(r"(\d{4})-?(\d{3})(?=T)")
_AGE = re.compile(r"(\d{1,6})([wdhm])")
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
_EXAMPLE = "such as 2026-04-27T14:00:00Z or 2026-04-27T16:00:00+02:00"


def iso_time(at: int) -> str | None:
    """Return a model time as ISO 8601 in UTC; None if the store does not know the time."""
    if not at:
        return None
    return (_EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


def parse_time(text: str, name: str) -> int:
    """Return microseconds since 1970. Raise BadInput if the text is not a date and time with a time zone."""
    try:
        moment = datetime.fromisoformat(_with_month(text.strip().upper()))
        in_utc = moment.astimezone(UTC)  # may lie before the year 1 or after 9999
    except (ValueError, OverflowError) as exc:
        raise BadInput(f"{name}: {text!r} is not an ISO 8601 date and time, {_EXAMPLE}") from exc
    if moment.tzinfo is None:
        raise BadInput(f"{name}: {text!r} has no time zone; add one, {_EXAMPLE}")
    return (in_utc - _EPOCH) // timedelta(microseconds=1)


def parse_moment(text: str, name: str) -> int:
    """Return microseconds since 1970 for a date, a date and time (UTC unless it says otherwise), or an age: 7d, 12h.

    Raise BadInput.
    """
    if found := _AGE.fullmatch(text.strip()):
        ago = timedelta(**{_UNITS[found[2]]: int(found[1])})
        return (datetime.now(UTC) - ago - _EPOCH) // timedelta(microseconds=1)
    try:
        moment = datetime.fromisoformat(text.strip())
        in_utc = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise BadInput(
            f"{name}: {text!r} is not a time; use 2026-04-27, 2026-04-27T14:00Z, or an age such as 7d"
        ) from exc
    return (in_utc - _EPOCH) // timedelta(microseconds=1)


def _with_month(text: str) -> str:
    """Replace a day of the year (2026-117) by month and day, which `fromisoformat` can read."""
    if not (found := _DAY_OF_YEAR.match(text)):
        return text
    day = datetime.strptime(found[1] + found[2], "%Y%j").replace(tzinfo=UTC)
    return day.strftime("%Y-%m-%d") + text[found.end() :]
