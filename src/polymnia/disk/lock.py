"""Locks between processes: one held while writing, and one that shows that a server is running."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from polymnia.errors import StoreBusy, StoreError

LOCK_TIMEOUT_S = 15.0
_BUSY = "the store is being written by another process; nothing was changed, try again"

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_for_lock(descriptor: int, timeout: float) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        except OSError as exc:  # after ten seconds
            raise StoreBusy(_BUSY) from exc

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_for_lock(descriptor: int, timeout: float) -> None:
        """Wait in a thread: polling may starve, and a wait in the kernel has no timeout."""
        waiter = threading.Thread(target=_block, args=(os.dup(descriptor),), daemon=True)
        waiter.start()
        waiter.join(timeout)
        if waiter.is_alive():
            raise StoreBusy(_BUSY)

    def _block(descriptor: int) -> None:
        """Take the lock, which all copies of the descriptor share until the last is closed."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.close(descriptor)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def file_lock(path: Path, *, timeout: float | None = None, create: bool = True) -> Iterator[None]:
    """Hold `path`.lock during the block. The lock ends with the process, however that ends.

    A symbolic link and the file it points to have the same lock. A reader passes `create=False`: it
    holds the lock if there is a lock file that it may open, and nothing otherwise.
    Raise StoreBusy after `timeout` seconds (LOCK_TIMEOUT_S by default); 0 does not wait at all.
    """
    timeout = LOCK_TIMEOUT_S if timeout is None else timeout
    descriptor = _open_lock(Path(f"{path.resolve()}.lock"), create=create)
    if descriptor is None:
        yield
        return
    try:
        if not _try_lock(descriptor):
            if not timeout:
                raise StoreBusy(_BUSY)
            _wait_for_lock(descriptor, timeout)
        try:
            yield
        finally:
            _release(descriptor)
    finally:
        os.close(descriptor)


def find_other_name(path: Path) -> str | None:
    """Return why the file may have a second name; None if it has one name only.

    Each name has its own lock and its own log, so writers under two names would not see each other
    and would lose what was written under the other one.
    """
    try:
        path = path.resolve()
        links = path.stat().st_nlink
    except FileNotFoundError:
        return None
    if links > 1:
        return (
            f"{path} has {links} names (hard links), and writing under one would lose what is "
            f"written under another. Delete the other names: `find / -xdev -samefile {path}` "
            "lists them"
        )
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return None  # not Linux
    # A mount point is the fifth field; a blank in it is written in octal.
    escaped = os.fsencode(path).replace(b"\\", rb"\134").replace(b" ", rb"\040")
    if any(line.split(b" ", 5)[4:5] == [escaped] for line in mounts.splitlines()):
        return (
            f"{path} is mounted as a single file, and writing it would lose what is written under "
            "its name outside: mount its directory instead"
        )
    return None


def refuse_other_names(path: Path) -> None:
    """Raise StoreError if the file may have a second name."""
    problem = find_other_name(path)
    if problem is not None:
        raise StoreError(f"{problem}; nothing was changed")


def _open_lock(path: Path, *, create: bool) -> int | None:
    if create:
        return _open(path, os.O_RDWR | os.O_CREAT)
    try:
        return _open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return None  # no writer has been here, or only writers of another user


# Ends a file name that is not final yet; final names are hexadecimal.
_TEMPORARY = "~"


class ServerLock:
    """A locked file beside a store that shows that this server is running.

    Without a path there is only this server. Unlike a process id, a lock is also right across
    containers and after a reboot.
    """

    def __init__(self, path: str | None) -> None:
        # One lock for a file and its symbolic links.
        self._path = None if path is None else os.path.realpath(path)
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self.name = os.urandom(8).hex()

    def acquire(self) -> str:
        """Lock this server's file, once, and return the server's name. Raise StoreError."""
        with self._lock:
            if self._descriptor is None and self._path is not None:
                try:
                    self._descriptor = _create_locked(self._file(self.name))
                except OSError as exc:
                    raise StoreError(
                        f"cannot lock a file: {exc}; check the permissions of the store's directory"
                    ) from exc
                prefix = self._file("").name
                for file in Path(self._path).parent.glob(f"{escape(prefix)}*[!{_TEMPORARY}]"):
                    self.is_running(file.name.removeprefix(prefix))  # removes those of the dead
            return self.name

    def is_running(self, name: str) -> bool:
        """Return True if the named server runs. Remove the file of one that was killed."""
        if name == self.name:
            return True
        if self._path is None:
            return False
        try:
            descriptor = _open(self._file(name), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # not readable for us, so it may be running
        try:
            if not _try_lock(descriptor):
                return True
        finally:
            os.close(descriptor)
        with suppress(OSError):  # another server may have removed it first
            self._file(name).unlink()
        return False

    def close(self) -> None:
        """Remove and unlock this server's file."""
        with self._lock:
            if self._descriptor is not None:
                with suppress(OSError):
                    self._file(self.name).unlink()
                os.close(self._descriptor)
                self._descriptor = None

    def _file(self, name: str) -> Path:
        return Path(f"{self._path}-server-{name}")


def _create_locked(path: Path) -> int:
    """Create a file that is locked before it gets its name: an unlocked one is a dead server's."""
    temporary = path if sys.platform == "win32" else path.with_name(path.name + _TEMPORARY)
    descriptor = _open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    _try_lock(descriptor)
    if temporary != path:
        temporary.rename(path)
    return descriptor


def _open(path: Path, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
