"""The time of a change: the clock's, unless that has gone back a little."""

import logging
from time import time_ns

logger = logging.getLogger(__name__)

# How far a store's last change may be ahead of the clock before the clock is believed again. Clocks
# are set back by less than this as a matter of course.
MAX_AHEAD_US = 60_000_000


def now_us() -> int:
    """Return the time in microseconds since 1970."""
    return time_ns() // 1000


def is_ahead(last_at: int) -> bool:
    """Return True if a change has a time that the clock has not reached by far."""
    return last_at - now_us() > MAX_AHEAD_US


def next_change_time(last_at: int) -> int:
    """Return the time for a change made now, after one with that time.

    It is later than that one's, so that each change has a time of its own. But if the clock was
    once wrong, later changes must not inherit that: their order is in their ids.
    """
    now = now_us()
    if last_at - now > MAX_AHEAD_US:
        logger.warning(
            "the last change has a time %d s ahead of the clock: the clock is or was wrong; "
            "this change gets the time of the clock",
            (last_at - now) // 1_000_000,
        )
        return now
    return max(now, last_at + 1)
