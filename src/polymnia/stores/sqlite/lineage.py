"""Which write-ahead log belongs to a database file, and whether both are still in place.

SQLite itself does not know, and replays any log.

Every commit writes a new random token, and the token before it, to the one row of `lineage`. The
table is the first of the schema, so its row ends page 2, in the file and in the log. A log fits a
file that has one of the log's tokens or the one before its first. It does not fit a file with
another schema cookie, unless the log itself changes the schema: SQLite's own ways to copy a
database keep the token, but not the cookie.
"""

import logging
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import apsw

from polymnia.disk.files import (
    dated_name,
    file_identity,
    file_stamp,
    fsync_directory,
    map_os_errors,
)
from polymnia.disk.lock import file_lock
from polymnia.errors import StoreError
from polymnia.stores.sqlite.connection import run

logger = logging.getLogger(__name__)

_TOKEN_BYTES = 8
_LINEAGE = struct.Struct(f">4sI{_TOKEN_BYTES}s{_TOKEN_BYTES}s")
_MARK = b"PLYL"
_COOKIE = struct.Struct(">I")
_COOKIE_OFFSET = 40
_LOG_HEADER = struct.Struct(">IIII8sII")
_FRAME_HEADER = struct.Struct(">II8sII")
_MAX_ATTEMPTS = 10


class Lineage(NamedTuple):
    """The row: the schema cookie at the commit, the token before it, and its own."""

    cookie: int
    previous: bytes
    token: bytes


class FileHead(NamedTuple):
    """What a database file says about itself, without its log. Both are zero in a new file."""

    cookie: int
    token: bytes


class LogHead:
    """What the whole transactions of a log say about the file they belong to."""

    def __init__(self) -> None:
        self.lineage: list[Lineage] = []
        self.cookies: set[int] = set()
        self.replaces_file = False


def renew_lineage(connection: apsw.Connection, cookie: int) -> None:
    """Write a new token inside the open transaction."""
    rows = run(connection, "lineage")
    if rows:  # another program may have deleted it
        previous = _unpack(rows[0][0]).token
        run(
            connection,
            "update_lineage",
            _LINEAGE.pack(_MARK, cookie, previous, os.urandom(_TOKEN_BYTES)),
        )


def log_path(path: str) -> Path:
    """Return where SQLite keeps the log of a database."""
    return Path(f"{os.path.realpath(path)}-wal")


def read_file_head(connection: apsw.Connection) -> FileHead:
    """Return what the connection's file says about itself.

    Read through SQLite: if this process opened and closed the file, it would lose SQLite's locks.
    """
    header = connection.read("main", 0, 0, 512)[1]
    size = _page_size(int.from_bytes(header[16:18]))
    page = connection.read("main", 0, size, size)[1]
    (cookie,) = _COOKIE.unpack_from(header, _COOKIE_OFFSET)
    return FileHead(cookie, _unpack(page).token)


def log_fits(path: str, connection: apsw.Connection) -> bool | None:
    """Return True if the log at the path belongs to the file; None if unknown, as when it is empty.

    Raise StoreError if the log cannot be read.
    """
    with map_os_errors(path):
        log = log_path(path)
        for _ in range(_MAX_ATTEMPTS):
            header = _log_header(log)
            if header is None:
                return None
            file = read_file_head(connection)
            fits = _fits(file, _read_log(log, verify=False))
            if fits is False:  # frames that a power cut left unfinished do not count
                fits = _fits(file, _read_log(log, verify=True))
            if fits is not False or (
                _log_header(log) == header and read_file_head(connection) == file
            ):
                return fits
            # Another process is writing them: try again.
        return None


def set_aside_foreign_log(path: str, connection: apsw.Connection, *, read_only: bool) -> None:
    """Rename a log that does not fit the file, before the connection uses it.

    Raise StoreError if it is read-only.
    """
    if log_fits(path, connection) is not False:
        return
    if read_only:
        raise StoreError(
            f"{log_path(path)} belongs to another file; open {path} once without --read-only"
        )
    with map_os_errors(path), file_lock(Path(os.path.realpath(path))):
        if log_fits(path, connection) is False:  # another process may have renamed it first
            log = log_path(path)
            kept = dated_name(log, ".orphan-")
            log.rename(kept)
            with suppress(FileNotFoundError):
                Path(f"{os.path.realpath(path)}-shm").unlink()  # SQLite's index of the log
            fsync_directory(log.parent)
            logger.warning(
                "%s was replaced while a server used it: "
                "the log of the former file was not applied and is kept as %s",
                path,
                kept,
            )


class FileWatch:
    """The files of a store as it opened them.

    The connection is the one that writes; nothing else may use it during a call. SQLite keeps the
    log as long as a connection is open, so the log must stay the file it was. Checkpoints of any
    process change the database file, so after a change its lineage decides.
    """

    def __init__(self, path: str, connection: apsw.Connection, *, read_only: bool) -> None:
        """Begin to watch, after the connection's first read: that opens the log."""
        self._path = path
        self._connection = connection
        self._log_path = str(log_path(path))
        self._identity = file_identity(path)
        self._file = file_stamp(path)
        self._log = None if read_only else file_identity(self._log_path)
        self._is_read_only = read_only
        self._problem: str | None = None
        if not read_only:
            self._version = connection.pragma("data_version")
            self._head = read_file_head(connection)

    def is_in_place(self) -> bool:
        """Return True while the file that was opened is the one at its path."""
        return self._identity == file_identity(self._path)

    def is_log_empty(self) -> bool:
        """Return True if nothing was written since the log was created."""
        state = file_stamp(self._log_path)
        return state is not None and not state.size

    def is_log_lost(self) -> bool:
        """Return True if the log was deleted, and nothing else happened."""
        return self._log is not None and file_stamp(self._log_path) is None and self.is_in_place()

    def is_unchanged(self) -> bool:
        """Return True if the files are as they were when they were last verified."""
        if self._problem is not None:
            return False
        if self._is_read_only:
            return self.is_in_place()
        return file_stamp(self._path) == self._file and file_identity(self._log_path) == self._log

    def find_problem(self) -> str | None:
        """Return what happened to the names of the files, None if nothing did.

        A problem never goes away.
        """
        if self._problem is None and not self.is_in_place():
            self._problem = (
                f"{self._path} was moved, deleted or replaced meanwhile; start the server again"
            )
        if self._problem is not None or self._log is None:
            return self._problem
        if file_identity(self._log_path) != self._log:
            self._problem = (
                f"{self._log_path} was deleted or replaced while the server used it; "
                "start the server again"
            )
        return self._problem

    def verify(self) -> str | None:
        """Return what happened to the files.

        If the file changed, find out whether that was a checkpoint.
        """
        if not self.is_unchanged() and self.find_problem() is None:
            self._problem = self._find_overwrite()
        return self._problem

    def accept_checkpoint(self) -> None:
        """Take the file as it is after a checkpoint of this connection."""
        self._file = file_stamp(self._path)
        self._head = read_file_head(self._connection)

    def _find_overwrite(self) -> str | None:
        file, version = file_stamp(self._path), self._connection.pragma("data_version")
        head, fits = read_file_head(self._connection), log_fits(self._path, self._connection)
        if fits is None and version != self._connection.pragma("data_version"):
            return None  # another process is using the log; check again next time
        # With an empty log the file changes only if the log was used since the last check.
        # SQLite counts that.
        if fits is False or (fits is None and head != self._head and version == self._version):
            return f"{self._path} was overwritten while the server used it; start the server again"
        self._file, self._head, self._version = file, head, version
        return None


def _fits(file: FileHead, log: LogHead) -> bool | None:
    if not log.lineage:
        return None
    if log.replaces_file:
        return True
    if file.token != log.lineage[0].previous and file.token not in {
        item.token for item in log.lineage
    }:
        return False
    return not file.cookie or len(log.cookies) > 1 or file.cookie in log.cookies


def _read_log(log: Path, *, verify: bool) -> LogHead:
    """Return the head of the log.

    Verifying checksums takes some 0.1 ms a frame and ends at the first wrong one.
    """
    head = LogHead()
    pages: list[tuple[int, bytes]] = []  # those of a transaction that has not ended yet
    with suppress(FileNotFoundError), log.open("rb", buffering=0) as file:
        for number, size, part in _frames(file, verify=verify):
            pages.append((number, part))
            if not size:
                continue
            rows = [_unpack(part) for number, part in pages if number == 2]
            lineage = [row for row in rows if any(row.token)]
            if lineage and not head.lineage:
                # Another program restored a backup through SQLite, which writes every page.
                # A new store does the same.
                is_whole = len({number for number, _ in pages}) >= size
                head.replaces_file = is_whole and any(lineage[0].previous)
            head.lineage += lineage
            for number, part in pages:
                if number == 1 and len(part) == _COOKIE.size:  # it may have been cut off meanwhile
                    head.cookies.update(_COOKIE.unpack(part))
            head.cookies.update([item.cookie for item in lineage if item.cookie])
            pages = []
    return head


def _frames(file: IO[bytes], *, verify: bool) -> Iterator[tuple[int, int, bytes]]:
    """Yield page number, size of the database and what matters of the page.

    That is the schema cookie of page 1 and the end of page 2. The size is 0 unless the frame ends
    a transaction.
    """
    header = file.read(_LOG_HEADER.size)
    if len(header) < _LOG_HEADER.size:
        return
    magic, _, size, _, salts, *_ = _LOG_HEADER.unpack(header)
    size = _page_size(size)
    checksum = _Checksum("<" if magic % 2 == 0 else ">", header[:24]) if verify else None
    frame_size = _FRAME_HEADER.size + size
    end = os.fstat(file.fileno()).st_size
    # A log that was cut off may end in a part of a frame.
    for offset in range(_LOG_HEADER.size, end - frame_size + 1, frame_size):
        file.seek(offset)
        head = file.read(_FRAME_HEADER.size)
        if len(head) < _FRAME_HEADER.size:
            return
        number, pages, frame_salts, *sums = _FRAME_HEADER.unpack(head)
        if frame_salts != salts:
            return  # the rest is from before the log was restarted
        if checksum is not None and checksum.add(head[:8], file.read(size)) != sums:
            return
        part = b""
        if number <= 2:
            length = _COOKIE.size if number == 1 else _LINEAGE.size
            start = _COOKIE_OFFSET if number == 1 else size - length
            file.seek(offset + _FRAME_HEADER.size + start)
            part = file.read(length)
        yield number, pages, part


class _Checksum:
    """SQLite's checksum of a log, which runs over all its frames."""

    def __init__(self, order: str, header: bytes) -> None:
        self._format = f"{order}II"
        self._sums = [0, 0]
        self.add(header)

    def add(self, *parts: bytes) -> list[int]:
        first, second = self._sums
        for part in parts:
            for one, other in struct.iter_unpack(self._format, part[: len(part) // 8 * 8]):
                first = (first + one + second) & 0xFFFFFFFF
                second = (second + other + first) & 0xFFFFFFFF
        self._sums = [first, second]
        return self._sums


def _unpack(page: bytes) -> Lineage:
    """Return the row at the end of a page; zeros if there is none."""
    if len(page) >= _LINEAGE.size:
        mark, *fields = _LINEAGE.unpack(page[-_LINEAGE.size :])
        if mark == _MARK:
            return Lineage(*fields)
    return Lineage(0, bytes(_TOKEN_BYTES), bytes(_TOKEN_BYTES))


def _page_size(size: int) -> int:
    return 65536 if size <= 1 else size  # a number of two bytes in the header


def _log_header(log: Path) -> bytes | None:
    try:
        with log.open("rb") as file:
            return file.read(_LOG_HEADER.size) or None
    except FileNotFoundError:
        return None
