"""Connections that read a SQLite file, also without changing the file, its log or its directory."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
from msgspec import Struct

from polymnia.errors import StoreBusy

# What distinguishes one content of a file from another: device, inode, size, time of last write.
Stamp = tuple[int, int, int, int]

_LOG_HEADER_BYTES = 32
# How a write-ahead log begins, by the byte order of its checksums.
_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")


class FileState(Struct, frozen=True):
    """A database file and its write-ahead log, as they are now.

    A log without a frame counts as none, and so does a file that is not a log. A power cut may
    leave either, and SQLite, which ignores them when it may write the index beside them, says
    "locking protocol" when it may not.
    """

    file: Stamp | None
    log: tuple[int, int] | None = None
    has_index: bool = True

    def uri(self, path: str) -> str:
        """Return the URI to open the file with.

        Without a log, SQLite needs no locks and no other files.
        """
        base = f"{Path(path).absolute().as_uri()}?mode=ro"
        if self.log is None:
            return f"{base}&immutable=1"
        # Without its index SQLite has to build one beside the log.
        return f"{base}&readonly_shm=1" if self.has_index else base


def file_state(path: str) -> FileState:
    """Return the present state of a database file."""
    log = _stat(f"{path}-wal")
    if log is not None and log.st_size > _LOG_HEADER_BYTES and _is_log(f"{path}-wal"):
        return FileState(None, (log.st_dev, log.st_ino), _stat(f"{path}-shm") is not None)
    return FileState(_stamp(path))


class ReaderPool:
    """Connections to a file, one for each read that is going on."""

    def __init__(
        self, path: str, connect: Callable[[str], apsw.Connection], *, read_only: bool
    ) -> None:
        """`connect` opens the path, or the URI, that it is given."""
        self._path = path
        self._connect = connect
        self._read_only = read_only
        self._state: FileState | None = None
        self._idle: list[apsw.Connection] = []
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """Yield a connection to the present content.

        Raise StoreBusy if a file that is only read is overwritten during the block.
        """
        name = self._path
        state = None
        if self._read_only:
            state = file_state(self._path)
            name = state.uri(self._path)
            if state != self._state:
                self._close_idle()
                self._state = state
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect(name)
        try:
            yield connection
        finally:
            # A read may be interrupted in its last statement, the COMMIT.
            if self._is_closed or connection.in_transaction:
                connection.close()
            else:
                self._idle.append(connection)
            # Without a log nothing is locked: a writer may have changed the pages that were read.
            if state is not None and state.log is None and _stamp(self._path) != state.file:
                self._close_idle()
                raise StoreBusy(f"{self._path} was changed while it was read; try again")

    def close(self) -> None:
        """Close the idle connections now, and the others when their reads end."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _is_log(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # before every read, and Path.open is slower
            return file.read(4) in _LOG_MAGIC
    except OSError:
        return True  # SQLite says what is wrong


def _stamp(path: str) -> Stamp | None:
    state = _stat(path)
    return None if state is None else (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  # before every read, and Path.stat is slower
    except OSError:
        return None
