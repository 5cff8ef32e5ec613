"""Times as ISO 8601 text, written and read."""

import re
from datetime import UTC, datetime, timedelta

from polymnia.errors import BadInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# From the first moment of a day to its last one.
_DAY_LENGTH = timedelta(days=1) - _MICROSECOND
# The first and the last moment of a time.
_Span = tuple[datetime, datetime]
_DAY_OF_YEAR = re.compile(r"(\d{4})-?(\d{3})(?=T)")
_ISO_DAY = re.compile(r"\d{4}(?:-\d\d-\d\d|\d{4})")
_ISO_MONTH = re.compile(r"(?P<year>[12]\d{3})(?:-(?P<month>\d\d))?")
_AGE = re.compile(
    r"(?P<ahead>in )?(?P<count>\d{1,6}|an?(?= )|one(?= )) ?"
    r"(?P<unit>[wdhm]|hours?|hrs?|minutes?|mins?)(?P<back> ago)?"
)
_THIS_UNIT = re.compile(r"(?:this|(?P<end>end of)(?: the| this)?) (?P<unit>week|month|year)")
_NUMBERS = "two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS.split(), 2)}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?:,? (?P<year>[12]\d{3}))?"
_DAY_NUMBER = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:on )?(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?"
# "november", "end of january 2027", "3 july 2026", "Fri 13 Nov"; "july 3, 2026".
_NAMED_DAY = re.compile(
    rf"(?:(?P<end>(?:the )?end of )|{_WEEKDAY}{_DAY_NUMBER} (?:of )?)?{_MONTH}{_YEAR}"
)
_DAY_AFTER_MONTH = re.compile(rf"{_WEEKDAY}{_MONTH} {_DAY_NUMBER}{_YEAR}")
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


def day_name(at: int) -> str:
    """Return a model time as `day_label` does, without the year if that is the present one."""
    return day_label(_EPOCH + timedelta(microseconds=at), datetime.now(UTC))


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


def parse_moment(text: str, name: str, *, ahead: bool = False, end: bool = False) -> int:
    """Return microseconds since 1970 for a date, a time (UTC) or a distance. Raise BadInput.

    `7d`, "2 weeks", "friday" and "1 december" lie in the past, or with `ahead` in the future. A
    day, month or year means its first moment, or with `end` its last one.
    """
    try:
        first, last = _parse_span(text.strip(), datetime.now(UTC), ahead=ahead)
        moment = last if end else first
        in_utc = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        spoken = "next friday or in 2 weeks" if ahead else "yesterday or 2 weeks ago"
        examples = f"2026-04-27, 2026-04-27T14:00Z, 7d, {spoken}"
        raise BadInput(f"{name}: {text!r} is not a time; use {examples}") from exc
    return (in_utc - _EPOCH) // _MICROSECOND


def starts_with_year(text: str) -> bool:
    """Return True for a date such as 2026-04-27; False for one that depends on today."""
    return text.strip()[:4].isdigit()


def _parse_span(text: str, now: datetime, *, ahead: bool) -> _Span:
    """Return the first and the last moment of the day, month or year that a text names.

    Both are the same for a time of day. Raise ValueError or OverflowError.
    """
    today = _start_of_day(now)
    words = text.lower().split()
    spoken = " ".join([_NUMBER_WORDS.get(word, word) for word in words])
    days = spoken_days(spoken, now.weekday(), ahead=ahead)
    if days is not None:
        first = today - timedelta(days=days)
        return first, first + _DAY_LENGTH
    length = _parse_length(spoken, ahead=ahead)
    if length is not None:
        return now + length, now + length
    span = _parse_unit(spoken, today, ahead=ahead) or _parse_month(spoken, today, ahead=ahead)
    if span is not None:
        return span
    moment = datetime.fromisoformat(text)
    if _ISO_DAY.fullmatch(text):
        return moment, moment + _DAY_LENGTH
    return moment, moment


def _parse_length(text: str, *, ahead: bool) -> timedelta | None:
    """Return how far from now `7d` or "5 min ago" is; below 0 in the past."""
    age = _AGE.fullmatch(text)
    if age is None:
        return None
    count = int(age["count"]) if age["count"].isdigit() else 1
    length = timedelta(**{_UNITS[age["unit"][0]]: count})
    is_ahead = bool(age["ahead"]) or (ahead and not age["back"])
    return length if is_ahead else -length


def _parse_unit(text: str, today: datetime, *, ahead: bool) -> _Span | None:
    """Return the span of "this week"; its last day if that is asked for or what a plan means."""
    named = _THIS_UNIT.fullmatch(text)
    if named is None:
        return None
    if named["unit"] == "week":
        first = today - timedelta(days=today.weekday())
        last = first + timedelta(days=6) + _DAY_LENGTH
    elif named["unit"] == "month":
        first, last = _month_span(today.year, today.month)
    else:
        first, last = _year_span(today.year)
    if named["end"] or ahead:
        first = _start_of_day(last)
    return first, last


def _parse_month(text: str, today: datetime, *, ahead: bool) -> _Span | None:
    """Return the span of `2026`, `2026-11`, "november 2026", "end of january" or "3 july".

    Without a year it is the nearest one: in the past, or with `ahead` in the future.
    """
    numbers = _ISO_MONTH.fullmatch(text)
    if numbers is not None:
        year, month = int(numbers["year"]), numbers["month"]
        return _month_span(year, int(month)) if month else _year_span(year)
    named = _NAMED_DAY.fullmatch(text) or _DAY_AFTER_MONTH.fullmatch(text)
    if named is None:
        return None
    parts = named.groupdict()
    if parts["year"]:
        return _named_span(parts, int(parts["year"]))
    first, last = _named_span(parts, today.year)
    if ahead and last < today:
        return _named_span(parts, today.year + 1)
    if not ahead and first > today:
        return _named_span(parts, today.year - 1)
    return first, last


def _named_span(parts: dict[str, str | None], year: int) -> _Span:
    """Return the span of a month, of one of its days, or of its last day."""
    month = _MONTHS.index((parts["month"] or "")[:3]) + 1
    first, last = _month_span(year, month)
    if parts["day"]:
        first = first.replace(day=int(parts["day"]))
        last = first + _DAY_LENGTH
    elif parts.get("end"):
        first = _start_of_day(last)
    return first, last


def _month_span(year: int, month: int) -> _Span:
    first = datetime(year, month, 1, tzinfo=UTC)
    return first, (first + timedelta(days=31)).replace(day=1) - _MICROSECOND


def _year_span(year: int) -> _Span:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC) + _DAY_LENGTH


def _start_of_day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


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


def parse_optional_moment(
    text: str, name: str, *, ahead: bool = False, end: bool = False
) -> int | None:
    """Return the time as `parse_moment` does; None if the text is empty. Raise BadInput."""
    if not text:
        return None
    return parse_moment(text, name, ahead=ahead, end=end)


def _with_month(text: str) -> str:
    """Replace a day of the year (2026-117) by month and day, which `fromisoformat` can read."""
    match = _DAY_OF_YEAR.match(text)
    if match is None:
        return text
    day = datetime.strptime(match[1] + match[2], "%Y%j").replace(tzinfo=UTC)
    return day.strftime("%Y-%m-%d") + text[match.end() :]
