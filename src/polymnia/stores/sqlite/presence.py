"""A sign of life beside a store: a file that a running server keeps locked, so that others know that it runs."""

import os
import sys
import threading
from contextlib import suppress
from glob import escape
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


# At the end of a name that is not yet final; names are hexadecimal.
_UNFINISHED = "~"


class Presence:
    """Which server this is, and which others live; without a path there are no others.

    A lock goes with its process however that ends, and it tells the truth where process ids do not: across containers
    that share a directory, and after a restart of the machine.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._name = ""
        self._descriptor: int | None = None

    @property
    def name(self) -> str:
        """What this server is called; empty until it is announced."""
        return self._name

    def announce(self) -> str:
        """The name of this server, its file locked from now on. Raises OSError."""
        with self._lock:
            if not self._name:
                name = os.urandom(8).hex()
                if self._path is not None:
                    self._descriptor = _locked(self._file(name))
                    self._remove_dead(self._path)
                self._name = name
            return self._name

    def lives(self, name: str) -> bool:
        """Whether the server of that name runs; what a dead one left is removed."""
        if name == self._name:
            return True
        if self._path is None:
            return False
        try:
            descriptor = _open(self._file(name), 0)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # somebody else's file: not ours to judge
        try:
            if not _try_lock(descriptor):
                return True
        finally:
            os.close(descriptor)
        with suppress(OSError):  # another server may have removed it first
            self._file(name).unlink()
        return False

    def close(self) -> None:
        """Nobody is here any more."""
        with self._lock:
            if self._descriptor is not None:
                with suppress(OSError):
                    self._file(self._name).unlink()
                os.close(self._descriptor)
                self._descriptor = None

    def _remove_dead(self, path: str) -> None:
        """Remove the files of servers that were killed when no session of theirs was left to tell of them."""
        mark = self._file("").name
        for file in Path(path).parent.glob(f"{escape(mark)}*[!{_UNFINISHED[-1]}]"):
            self.lives(file.name.removeprefix(mark))

    def _file(self, name: str) -> Path:
        return Path(f"{self._path}-server-{name}")


def _locked(path: Path) -> int:
    """A new file, locked before it has its name: one that has its name and is not locked is a dead server's."""
    unfinished = path if sys.platform == "win32" else path.with_name(path.name + _UNFINISHED)
    descriptor = _open(unfinished, os.O_CREAT | os.O_EXCL)
    _try_lock(descriptor)
    if unfinished != path:
        unfinished.rename(path)
    return descriptor


def _open(path: Path, flags: int) -> int:
    return os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | flags, 0o600)
