"""The reads of a thread: the snapshot that it has open, and whether its client still waits.

A transport sets `CANCELLED` for a request and the store asks it. The code in between need not pass
it on.
"""

from collections.abc import Callable
from contextvars import ContextVar
from threading import local
from typing import Generic, TypeVar

from polymnia.errors import Cancelled

R = TypeVar("R")

# Returns True once the client no longer waits for the result. A store asks several times a second
# while a read takes long and raises Cancelled. It asks in the thread that reads.
CANCELLED: ContextVar[Callable[[], bool]] = ContextVar("cancelled", default=lambda: False)


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


class OpenReaders(local, Generic[R]):
    """What `reading()` of a store has given this thread and not closed yet.

    A verb that calls another verb inside its own reading sees one state of the memory. A write ends
    that: what is read after it must contain it, so the next reading is a new snapshot.
    """

    def __init__(self) -> None:
        self._readers: list[R] = []

    @property
    def last(self) -> R | None:
        """The reader that a reading of this thread gets; None if it needs a snapshot of its own."""
        return self._readers[-1] if self._readers else None

    def hold(self, reader: R) -> "_Held[R]":
        """Give this reader to the readings inside the block."""
        return _Held(self._readers, reader)

    def forget(self) -> None:
        """Let the next reading open a new snapshot, because this thread writes."""
        self._readers.clear()


class _Held(Generic[R]):
    """A reader during a block. A class, because a generator costs every read twice as much."""

    __slots__ = ("_reader", "_readers")

    def __init__(self, readers: list[R], reader: R) -> None:
        """`readers` are those of this thread; the block may end in another one."""
        self._readers = readers
        self._reader = reader

    def __enter__(self) -> R:
        self._readers.append(self._reader)
        return self._reader

    def __exit__(self, *_: object) -> None:
        if self._reader in self._readers:  # unless a write came in between
            self._readers.remove(self._reader)
