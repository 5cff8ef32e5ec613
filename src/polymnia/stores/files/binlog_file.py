"""The file of a binary log: how far it was read, what has come since, and appending to it whole or not at all."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from polymnia.disk.replace import fsync, fsync_directory

# Which file it is, how long, and when it was written to; None when there is no file.
Stamp = tuple[int, int, int, int]
_UNREAD: Stamp = (-1, -1, -1, -1)
_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_MODE = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# An open file keeps its inode from becoming another file's. Windows never gives its numbers twice, and would not let
# another process put a compacted log in the place of an open one.
_HELD_OPEN = sys.platform != "win32"
# The end of what was read is looked at again, in case the file was written over in place.
_SEAM = 64


class LogFile:
    """One log, held open. All but `unchanged` is for those who hold the lock."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self._path = path
        self._mode = _READING if read_only else _MODE
        self._descriptor: int | None = None
        self._stamp: Stamp | None = _UNREAD
        self._seam = b""
        self.end = 0

    def unchanged(self) -> bool:
        """Whether the file is as it was left by `settle`."""
        return self._look() == self._stamp

    def read(self) -> bytes:
        """All of it; nothing when there is no file."""
        self.close()
        return self._read_from(0) if self._open() else b""

    def read_news(self) -> bytes | None:
        """What was appended since it was settled; None when that is not all that happened to it."""
        known, now = self._stamp, self._look()
        if known is None or now is None or known[:2] != now[:2] or now[2] <= self.end or not self._open():
            return None
        seam_at = self.end - len(self._seam)
        news = self._read_from(seam_at)
        return news[len(self._seam) :] if news.startswith(self._seam) else None

    def settle(self) -> None:
        """Say that all of the file is known."""
        if not self._open():
            self.settle_absent()
            return
        state = os.fstat(self._held())
        self.end, self._stamp = state.st_size, _stamp(state)
        self._seam = self._read_from(max(0, self.end - _SEAM))
        self._let_go()

    def settle_absent(self) -> None:
        """Say that there is no file."""
        self.close()
        self.end, self._seam, self._stamp = 0, b"", None

    def append(self, data: bytes) -> None:
        """Add to the end and wait for the disk. Raises OSError or StoreStopped, with the file as it was."""
        created = not self._open()
        descriptor = self._held()
        try:
            _write(descriptor, data)
            fsync(descriptor, Path(self._path))
            if created:
                fsync_directory(Path(self._path).resolve().parent)
        except BaseException:
            # Should this fail too, what was added is an unfinished write, and is cut away by whoever reads it next.
            with suppress(OSError):
                os.ftruncate(descriptor, self.end)
            raise
        self._seam = (self._seam + data[-_SEAM:])[-_SEAM:]
        self.end += len(data)
        self._stamp = _stamp(os.fstat(descriptor))
        self._let_go()

    def cut(self, end: int) -> None:
        """Take everything after an offset away, and wait for the disk."""
        if self._open():
            os.ftruncate(self._held(), end)
            fsync(self._held(), Path(self._path))

    def forget(self) -> None:
        """Have it read again, all of it."""
        self._stamp = _UNREAD

    def close(self) -> None:
        """Let go of the file; what is known of it has to be read again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._stamp = _UNREAD

    def _look(self) -> Stamp | None:
        try:
            return _stamp(os.stat(self._path))  # noqa: PTH116  # before every operation, and Path.stat takes longer
        except FileNotFoundError:
            return None

    def _open(self) -> bool:
        """Whether there is a file."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, self._mode)
            except FileNotFoundError:
                return False
        return True

    def _held(self) -> int:
        """The descriptor of the file, which is made if it is not there."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, _MODE | os.O_CREAT, 0o600)
        return self._descriptor

    def _let_go(self) -> None:
        if not _HELD_OPEN and self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read_from(self, at: int) -> bytes:
        with open(self._held(), "rb", closefd=False) as file:
            file.seek(at)
            return file.read()


def keep_aside(path: Path, data: bytes, *, after_others: bool) -> None:
    """Write data to a file of its owner's, or to the end of one. Raises FileExistsError if it is to be a new one."""
    mode = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0) | (os.O_APPEND if after_others else os.O_EXCL)
    descriptor = os.open(path, mode, 0o600)
    try:
        _write(descriptor, data)
        fsync(descriptor, path)
    finally:
        os.close(descriptor)


def _stamp(state: os.stat_result) -> Stamp:
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def _write(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):  # no room, or more than the system takes at once
        written += os.write(descriptor, memoryview(data)[written:])
