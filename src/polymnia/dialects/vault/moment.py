"""A date and time as text: ISO 8601 with its zone."""

import re
from datetime import UTC, datetime, timedelta

from polymnia.errors import BadInput

_ORDINAL = re.compile(r"(\d{4})-?(\d{3})(?=T)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLE = "such as 2026-04-27T14:00:00Z or 2026-04-27T16:00:00+02:00"


def microseconds(text: str, name: str) -> int:
    """The moment in microseconds since 1970. Raises BadInput when it is none, or has no zone."""
    try:
        moment = datetime.fromisoformat(_calendar(text.strip().upper()))
    except ValueError as exc:
        raise BadInput(f"{name}: {text!r} is not an ISO 8601 date and time, {_EXAMPLE}") from exc
    if moment.tzinfo is None:
        raise BadInput(f"{name}: {text!r} has no time zone; say when exactly, {_EXAMPLE}")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _calendar(text: str) -> str:
    """With year and day of the year (2026-117) put as year, month and day."""
    if not (found := _ORDINAL.match(text)):
        return text
    day = datetime.strptime(found[1] + found[2], "%Y%j").replace(tzinfo=UTC)
    return day.strftime("%Y-%m-%d") + text[found.end() :]
