"""The reader that a thread has open: a reading inside another one is the same snapshot."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import local
from typing import Generic, TypeVar

R = TypeVar("R")


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

    @contextmanager
    def hold(self, reader: R) -> Iterator[R]:
        """Give this reader to the readings inside the block."""
        readers = self._readers  # of this thread; a generator may end in another one
        readers.append(reader)
        try:
            yield reader
        finally:
            with suppress(ValueError):  # a write came in between
                readers.remove(reader)

    def forget(self) -> None:
        """Let the next reading open a new snapshot, because this thread writes."""
        self._readers.clear()
