"""Cancel the reads of a request whose client has left.

A transport sets `CANCELLED` for a request and the store asks it. The code in between need not pass
it on.
"""

from collections.abc import Callable
from contextvars import ContextVar

from polymnia.errors import Cancelled


def _never() -> bool:
    return False


# Returns True once the client no longer waits for the result. A store asks several times a second
# while a read takes long and raises Cancelled. It asks in the thread that reads.
CANCELLED: ContextVar[Callable[[], bool]] = ContextVar("cancelled", default=_never)


def is_cancelled() -> bool:
    """Return True once the client no longer waits for the result."""
    return CANCELLED.get()()


def check_cancelled() -> None:
    """Raise Cancelled once the client no longer waits for the result.

    Verbs that work for long without reading call it regularly.
    """
    if is_cancelled():
        raise cancellation()


def cancellation() -> Cancelled:
    """Return the error of a cancelled read."""
    return Cancelled("the client cancelled this call")
