"""A lock that processes share: held while a file store writes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from polymnia.errors import StoreBusy

# How long to wait for another process, in seconds.
PATIENCE = 15.0
_BUSY = "the store is being written by another process; nothing was changed, try again"

if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int, patience: float) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if patience else msvcrt.LK_NBLCK, 1)
        except OSError as exc:  # after ten seconds
            raise StoreBusy(_BUSY) from exc

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(descriptor: int, patience: float) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _stand_in_line(descriptor, patience)

    def _stand_in_line(descriptor: int, patience: float) -> None:
        """Whoever asks again and again may never be lucky; who waits in the kernel cannot give up: a thread waits."""
        if not patience:
            raise StoreBusy(_BUSY)
        waiter = Thread(target=_wait, args=(os.dup(descriptor),), daemon=True)
        waiter.start()
        waiter.join(patience)
        if waiter.is_alive():
            raise StoreBusy(_BUSY)

    def _wait(descriptor: int) -> None:
        """The lock belongs to every copy of the descriptor: it goes when the last is closed."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.close(descriptor)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path, *, patience: float | None = None) -> Iterator[None]:
    """Hold `path`.lock for the length of the block; the lock goes with the process, however it ends.

    Raises StoreBusy after so many seconds of waiting, or at once when they are none.
    """
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        _acquire(descriptor, PATIENCE if patience is None else patience)
        try:
            yield
        finally:
            _release(descriptor)
    finally:
        os.close(descriptor)
