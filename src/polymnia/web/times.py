"""Times as pages show them, in the time zone of the server."""

from datetime import date, datetime, timedelta

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
# After this many weeks the date is shown instead of the age.
_MAX_WEEKS = 26


def moment(at: int) -> datetime:
    """Return a model time as local time."""
    return datetime.fromtimestamp(at / 1_000_000).astimezone()


def iso(at: int) -> str:
    """Return a time for the attribute `datetime`."""
    return moment(at).isoformat(timespec="seconds")


def full(at: int) -> str:
    """Return the full date and time, for a title."""
    return moment(at).strftime("%Y-%m-%d %H:%M:%S %Z")


def clock(at: int) -> str:
    """Return the time of the day."""
    return moment(at).strftime("%H:%M")


def clock_or_day(at: int, today: date | None = None) -> str:
    """Return the time of a day for today, and the day for every other time."""
    then = moment(at)
    return (
        clock(at)
        if then.date() == (today or datetime.now().astimezone().date())
        else f"{then.day} {then:%b}"
    )


def age(at: int, now: datetime | None = None) -> str:
    """Return how long ago a time was."""
    present = now or datetime.now().astimezone()
    seconds = int((present - moment(at)).total_seconds())
    if seconds < _MINUTE:
        return "now"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min ago"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h ago"
    days = seconds // _DAY
    if days < 14:
        return "yesterday" if days == 1 else f"{days} days ago"
    weeks = days // 7
    return f"{weeks} weeks ago" if weeks <= _MAX_WEEKS else moment(at).strftime("%Y-%m-%d")


def day(at: int, today: date | None = None) -> tuple[str, str]:
    """Return the heading of a day: `Today`, `Yesterday` or the day's name, and the date."""
    then = moment(at).date()
    now = today or datetime.now().astimezone().date()
    written = (
        f"{then.day} {then:%B %Y}" if then.year != now.year else f"{then:%A} {then.day} {then:%B}"
    )
    if then == now:
        return "Today", written
    if then == now - timedelta(days=1):
        return "Yesterday", written
    return f"{then:%A}", f"{then.day} {then:%B %Y}"
