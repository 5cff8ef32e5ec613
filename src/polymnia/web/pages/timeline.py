"""Timeline: a calendar of what was said when, and the facts of one day."""

from datetime import date, datetime, time, timedelta

from msgspec import Struct
from starlette.responses import Response

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Passage
from polymnia.web.page import ROWS, Page, get
from polymnia.web.text import moment

# Facts are counted in intervals that divide the days of every time zone: a quarter of an hour.
_STEP_US = 900_000_000
# Facts of a day that can be paged through; a search finds the rest.
_MAX_FACTS = 2_000
# Above every time that a fact may have.
_END_OF_TIME = 1 << 62
# Days with at least this share of the busiest day's facts are shaded more.
_SHADES = (0.66, 0.33)


class Day(Struct, frozen=True):
    """A day of the calendar: how many facts were said, and a shade from 0 to 3."""

    day: date
    count: int
    shade: int
    is_in_month: bool


@get("/timeline")
def show(page: Page) -> Response:
    """Show a month, and the facts that were said on one of its days."""
    memory = page.memory
    chosen = _chosen_day(page)
    first = chosen.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    counts = _count_days(memory, first, following)
    midnight, next_midnight = _microseconds(chosen), _microseconds(chosen + timedelta(days=1))
    start = min(page.query.number("from") or 0, _MAX_FACTS)
    end = start + ROWS
    with memory.reading() as read:
        facts = read.facts_between(midnight, next_midnight, end + 1)
        earlier = read.facts_between(0, _microseconds(first), 1)
        latest = read.facts_between(0, _END_OF_TIME, 1)
    has_later = bool(latest) and _day_of(latest[0]) >= following
    return page.render(
        "timeline/page.html",
        chosen=chosen,
        weeks=_weeks(first, counts),
        total=sum(counts.values()),
        facts=[(fact, _said_at(fact)) for fact in facts[start:end]],
        count=counts.get(chosen, 0),
        more=end if len(facts) > end and end < _MAX_FACTS else None,
        earlier=_day_of(earlier[0]) if earlier else None,
        following=following if has_later else None,
    )


def _chosen_day(page: Page) -> date:
    """Return the day in the address, or the last one with a fact. Raise BadInput."""
    text = page.query.get("day")
    if not text:
        with page.memory.reading() as read:
            latest = read.facts_between(0, _END_OF_TIME, 1)
        return _day_of(latest[0]) if latest else date.today()
    try:
        chosen = date.fromisoformat(text)
        _microseconds(chosen + timedelta(days=64))  # the whole month can be shown
    except (ValueError, OverflowError, OSError) as exc:
        raise BadInput(f"day: expected a date such as 2026-11-14, got {text[:40]!r}") from exc
    return chosen


def _count_days(memory: Memory, first: date, end: date) -> dict[date, int]:
    """Return how many facts were said on each day of a period."""
    with memory.reading() as read:
        counts = read.fact_times(_microseconds(first), _microseconds(end), _STEP_US)
    days: dict[date, int] = {}
    for number, count in counts.items():
        day = moment(number * _STEP_US).date()
        days[day] = days.get(day, 0) + count
    return days


def _weeks(first: date, counts: dict[date, int]) -> list[list[Day]]:
    """Return the weeks of a month, from Monday to Sunday."""
    most = max(counts.values(), default=0)
    day = first - timedelta(days=first.weekday())
    weeks: list[list[Day]] = []
    while day <= first or day.month == first.month:
        week = []
        for _ in range(7):
            count = counts.get(day, 0)
            week.append(Day(day, count, _shade(count, most), day.month == first.month))
            day += timedelta(days=1)
        weeks.append(week)
    return weeks


def _shade(count: int, most: int) -> int:
    if not count:
        return 0
    share = count / most
    return 1 + sum(share >= limit for limit in _SHADES)


def _said_at(fact: Passage) -> int:
    return fact.valid_at or fact.created_at


def _day_of(fact: Passage) -> date:
    return moment(_said_at(fact)).date()


def _microseconds(day: date) -> int:
    """Return the beginning of a day in the time zone of the server."""
    return int(datetime.combine(day, time()).astimezone().timestamp() * 1_000_000)
