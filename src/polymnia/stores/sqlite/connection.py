"""Connections to a SQLite file: durable, pooled, and with our errors instead of the driver's."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import apsw
from msgspec import Struct, json

from polymnia.disk.files import ErrorMapping, FileStamp, file_stamp
from polymnia.disk.lock import refuse_other_names
from polymnia.errors import (
    BadInput,
    PolymniaError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreStopped,
)
from polymnia.stores.contract import cancellation
from polymnia.stores.sql import load_queries

QUERIES = load_queries(Path(__file__).parent)
Row = tuple[Any, ...]

# What reading and writing may raise. Stored text that is not UTF-8 is damage.
DRIVER_ERRORS = (apsw.Error, UnicodeError)

# How long a writer waits for another process before it gives up.
BUSY_TIMEOUT_MS = 15_000

# The application id in the file's header. "PLYM" marks a store, "PLYS" an archived one, which may
# be copied but is never written again.
APPLICATION_ID = 0x504C594D
SEALED_ID = 0x504C5953

_creating = Lock()
# secure_delete: a purge must leave no text in unused pages.
_WRITING = """
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 67108864;
"""
_READING = """
PRAGMA cache_size = -8192;
PRAGMA mmap_size = 268435456;
PRAGMA temp_store = MEMORY;
"""
# How a write-ahead log begins, by the byte order of its checksums, and how long its header is.
_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_LOG_HEADER_BYTES = 32


def run(connection: apsw.Connection, query: str, *bindings: Any) -> list[Row]:
    """Return the rows of a named query."""
    return connection.execute(QUERIES[query], bindings).fetchall()


def run_many(connection: apsw.Connection, query: str, bindings: Collection[Row]) -> None:
    """Run a named query once for each set of bindings."""
    if bindings:
        connection.executemany(QUERIES[query], bindings)


def as_json(values: Iterable[object]) -> str:
    """Encode many values as one binding, which the query takes apart with `json_each`."""
    return json.encode(list(values)).decode()


def connect(
    path: str,
    inspect: Callable[[apsw.Connection], None] | None = None,
    *,
    create: bool = True,
    read_only: bool = False,
) -> apsw.Connection:
    """Open a connection that waits for other writers and whose commits are durable.

    `inspect` sees it before anything is changed. A read-only connection leaves the file unchanged;
    its path may be a URI. Raise StoreError.
    """
    in_memory = path == ":memory:"
    with map_errors(path):
        flags = apsw.SQLITE_OPEN_READWRITE
        if read_only:
            path = path if path.startswith("file:") else file_state(path).uri(path)
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        elif create:
            flags |= apsw.SQLITE_OPEN_CREATE
            if not in_memory:
                # Private: SQLite gives the files beside it the same mode. Closing a file ends all
                # locks of this process on it, so this happens before any connection opens it.
                with _creating, suppress(OSError):  # it exists, or SQLite says what is wrong
                    mode = os.O_CREAT | os.O_EXCL | os.O_RDWR
                    os.close(os.open(os.path.realpath(path), mode, 0o600))
        connection = apsw.Connection(path, flags=flags)
        try:
            # Without this, SQLite compiles a statement over a partial index again whenever a bound
            # value changes: half the time of a point read.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            if inspect is not None:
                inspect(connection)
            if not read_only:
                if not in_memory:
                    require_writable(connection, path)
                    refuse_other_names(Path(path))
                _enable_wal(connection)
            connection.execute(_READING if read_only else _WRITING + _READING).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


def require_writable(connection: apsw.Connection, path: str) -> None:
    """Refuse a connection that can only read although the file can be written.

    SQLite opens a file for reading if it cannot be opened for writing at this moment, and the
    connection would never write again.
    """
    if connection.readonly("main") and os.access(path, os.W_OK):
        raise apsw.CantOpenError("it could not be opened for writing")


def _enable_wal(connection: apsw.Connection) -> None:
    """Turn write-ahead logging on.

    SQLite does not wait while another process does this on a new file, so retry.
    """
    deadline = monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if monotonic() > deadline:
                raise
            sleep(0.005)


class FileState(Struct, frozen=True):
    """A database file and its write-ahead log, as they are now.

    A log without a frame counts as none, and so does a file that is not a log. A power cut may
    leave either, and SQLite, which ignores them when it may write the index beside them, says
    "locking protocol" when it may not.
    """

    file: FileStamp | None
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
    log = file_stamp(f"{path}-wal")
    if log is None or log.size <= _LOG_HEADER_BYTES:
        return FileState(file_stamp(path))
    try:
        with open(f"{path}-wal", "rb") as file:  # noqa: PTH123  # before every read: Path is slower
            if file.read(4) not in _LOG_MAGIC:
                return FileState(file_stamp(path))
    except OSError:
        pass  # SQLite says what is wrong
    return FileState(None, log.identity, file_stamp(f"{path}-shm") is not None)


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
        """Yield a connection to the present content, as `take` and `give_back` do."""
        connection, state = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection, state)

    def take(self) -> tuple[apsw.Connection, FileState | None]:
        """Return a connection to the present content, and the state of a file that is only read."""
        name = self._path
        state = None
        if self._read_only:
            state = file_state(self._path)
            name = state.uri(self._path)
            if state != self._state:
                self._close_idle()
                self._state = state
        try:
            return self._idle.pop(), state
        except IndexError:
            return self._connect(name), state

    def give_back(self, connection: apsw.Connection, state: FileState | None) -> None:
        """Keep a connection for the next read.

        Raise StoreBusy if a file that is only read was overwritten meanwhile.
        """
        # A read may be interrupted in its last statement, the COMMIT.
        if self._is_closed or connection.in_transaction:
            connection.close()
        else:
            self._idle.append(connection)
        # Without a log nothing is locked: a writer may have changed the pages that were read.
        if state is not None and state.log is None and file_stamp(self._path) != state.file:
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


def map_errors(path: str) -> ErrorMapping:
    """Return a block that turns driver errors into StoreErrors about the store at that path."""
    return ErrorMapping(path, DRIVER_ERRORS, store_error)


def read_error(path: str, exc: apsw.Error | UnicodeError) -> PolymniaError:
    """Return our error for what the driver raised during a read."""
    return cancellation() if isinstance(exc, apsw.InterruptError) else store_error(path, exc)


def store_error(path: str, exc: apsw.Error | UnicodeError) -> PolymniaError:
    """Return our error for what the driver raised about the store at that path."""
    if isinstance(exc, UnicodeEncodeError):
        return BadInput(
            "a text contains half of a surrogate pair, which is not a character; remove it"
        )
    if isinstance(exc, apsw.BusyError | apsw.LockedError):
        return StoreBusy(
            f"{path} is being written by another process; nothing was changed, try again"
        )
    if isinstance(exc, apsw.FullError):
        return StoreFull(
            f"no space left on the device of {path}; nothing was changed, free some space"
        )
    if isinstance(exc, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError):
        return StoreDamaged(f"{path} is damaged ({exc}); run `polymnia doctor --store {path}`")
    if isinstance(exc, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreError(
            f"{path} cannot be opened for writing ({exc}); check the path and its permissions"
        )
    if isinstance(exc, apsw.ConnectionClosedError):
        return StoreError(f"{path} was closed during the call; start the server again")
    if isinstance(exc, apsw.IOError) and getattr(exc, "extendedresult", 0) in _LOST_WRITES:
        return StoreStopped(
            f"the disk did not confirm a write to {path} ({exc}); nothing was acknowledged"
        )
    if isinstance(exc, apsw.IOError):
        return StoreError(
            f"the disk refused {path} ({exc}); nothing was changed, "
            "check its space, quotas and health"
        )
    return StoreError(f"{path}: {exc}")


# After one of these it is unknown what is on disk: the operating system may have dropped pages that
# it had accepted.
_LOST_WRITES = frozenset(
    {
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_CLOSE,
        apsw.SQLITE_IOERR_TRUNCATE,
    }
)
