"""A SQLite connection: set up for durability, with driver errors mapped to ours."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic, sleep

import apsw

from polymnia.disk.errors import ErrorMapping
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
from polymnia.stores.contract import cancellation, is_cancelled
from polymnia.stores.sqlite.readers import file_state

# What reading and writing may raise. Stored text that is not UTF-8 is damage.
DRIVER_ERRORS = (apsw.Error, UnicodeError)

# How long a writer waits for another process before it gives up.
BUSY_TIMEOUT_MS = 15_000
_WAL_RETRY_S = 0.005


# The application id in the file's header. "PLYM" marks a store, "PLYS" an archived one, which may
# be copied but is never written again.
APPLICATION_ID = 0x504C594D
SEALED_ID = 0x504C5953

_creating = Lock()
_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_READING = """
PRAGMA cache_size = -8192;
PRAGMA mmap_size = 268435456;
PRAGMA temp_store = MEMORY;
"""
# secure_delete: a purge must leave no text in unused pages.
_WRITING = """
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 67108864;
"""


def connect(
    path: str,
    inspect: Callable[[apsw.Connection], None] = lambda connection: None,
    *,
    create: bool = True,
    read_only: bool = False,
) -> apsw.Connection:
    """Open a connection that waits for other writers and whose commits are durable.

    `inspect` sees it before anything is changed. A read-only connection leaves the file unchanged;
    its path may be a URI. Raise StoreError.
    """
    with map_errors(path):
        if read_only:
            uri = path if path.startswith("file:") else file_state(path).uri(path)
            connection = apsw.Connection(
                uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            )
        elif create:
            _create_private(path)
            connection = apsw.Connection(path, flags=_CREATE)
        else:
            connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # Without this, SQLite compiles a statement over a partial index again whenever a bound
            # value changes: half the time of a point read.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            inspect(connection)
            if not read_only:
                if path != ":memory:":
                    _require_writable(connection, path)
                    refuse_other_names(Path(path))
                _enable_wal(connection)
            connection.execute(_READING if read_only else _WRITING + _READING).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


def watch_cancelling(connection: apsw.Connection) -> None:
    """Interrupt reads of the connection that were cancelled."""
    # Steps of its virtual machine after which SQLite asks whether to continue.
    # They take less than a millisecond.
    connection.set_progress_handler(is_cancelled, 2_000)


def file_identity(path: str) -> tuple[int, int] | None:
    """Return what distinguishes the file at the path from another one; None if there is none."""
    try:
        state = os.stat(path)  # noqa: PTH116  # before every operation, and Path.stat is slower
    except OSError:
        return None
    return (state.st_dev, state.st_ino)


def map_errors(path: str) -> ErrorMapping:
    """Return a block that turns driver errors into StoreErrors about the store at that path."""
    return ErrorMapping(path, DRIVER_ERRORS, store_error)


def _create_private(path: str) -> None:
    """Create a file that only its owner may read.

    SQLite gives the files beside it the same mode.
    """
    if path == ":memory:":
        return
    # Closing a file ends all locks of this process on it, so this must happen before any connection
    # opens it.
    with _creating, suppress(OSError):  # it exists, or SQLite says what is wrong
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _require_writable(connection: apsw.Connection, path: str) -> None:
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
            sleep(_WAL_RETRY_S)


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
