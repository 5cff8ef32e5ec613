"""Limits of a request for its reads: when they are cancelled, and whether they must be short.

A transport sets the limits of a request and the store obeys them, so the code in between does not pass them on.
"""

from collections.abc import Callable
from contextvars import ContextVar

from msgspec import Struct

from polymnia.errors import Cancelled


def _never() -> bool:
    return False


class ReadLimits(Struct, frozen=True):
    """The limits of the reads in a request."""

    # Returns True once nobody waits for the result. A store asks several times a second while a read takes long and
    # raises Cancelled. It asks in the thread that reads.
    cancelled: Callable[[], bool] = _never
    # True if the request runs on an event loop. A store with `short_reads` then raises ReadTooLong instead of reading
    # for longer than a few milliseconds.
    is_short: bool = False


_NO_LIMITS = ReadLimits()
LIMITS: ContextVar[ReadLimits] = ContextVar("read_limits", default=_NO_LIMITS)

read_limits = LIMITS.get


def check_cancelled() -> None:
    """Raise Cancelled once nobody waits for the result. Verbs that work for long without reading call it regularly."""
    if read_limits().cancelled():
        raise cancellation()


def cancellation() -> Cancelled:
    """Return the error of a cancelled read."""
    return Cancelled("the client cancelled this call")
