"""One SQLite connection, set up for durability, and the one place where its errors become ours."""

from collections.abc import Callable
from time import monotonic, sleep

import apsw

from polymnia.disk.errors import ErrorMapping
from polymnia.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreStopped

# What reading and writing may raise; a text that is not UTF-8 is damage.
FAILURES = (apsw.Error, UnicodeDecodeError)

# How long a writer waits for another process before it gives up, in milliseconds.
BUSY_WAIT = 15_000
# How soon one asks again where SQLite itself does not wait, in seconds.
_ASK_AGAIN = 0.005

_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

_READING = """
PRAGMA cache_size = -8192;
PRAGMA mmap_size = 268435456;
PRAGMA temp_store = MEMORY;
"""
_WRITING = """
PRAGMA synchronous = FULL;
PRAGMA journal_size_limit = 67108864;
"""


# "PLYM", in the file's header: says that a database is ours. "PLYS": that it was, and is sealed: it may be copied,
# but nothing is written to it ever again.
OURS = 0x504C594D
SEALED = 0x504C5953


def connect(
    path: str,
    inspect: Callable[[apsw.Connection], None] = lambda connection: None,
    *,
    create: bool = True,
    read_only: bool = False,
) -> apsw.Connection:
    """A connection that waits for others and whose commits are on disk; `inspect` sees it before anything is changed.

    A read-only one leaves the file as it is, to the last byte. Raises StoreError.
    """
    with translated(path):
        writing = _CREATE if create else apsw.SQLITE_OPEN_READWRITE
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY if read_only else writing)
        try:
            connection.set_busy_timeout(BUSY_WAIT)
            inspect(connection)
            if not read_only:
                _write_ahead(connection)
            connection.execute(_READING if read_only else _WRITING + _READING).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


def _write_ahead(connection: apsw.Connection) -> None:
    """Turn the write-ahead log on; while another does so to a new file SQLite does not wait, so we ask again."""
    deadline = monotonic() + BUSY_WAIT / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if monotonic() > deadline:
                raise
            sleep(_ASK_AGAIN)


def translated(path: str) -> ErrorMapping:
    """A block in which what the driver raises becomes a sentence about the store at that path."""
    return ErrorMapping(path, FAILURES, ours)


def ours(path: str, exc: apsw.Error | UnicodeDecodeError) -> StoreError:
    """Our error for what the driver raised about the store at that path."""
    if isinstance(exc, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"{path} is being written by another process; nothing was changed, try again")
    if isinstance(exc, apsw.FullError):
        return StoreFull(f"no room left on the device of {path}; nothing was changed, free some space")
    if isinstance(exc, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError):
        return StoreDamaged(f"{path} is damaged ({exc}); run `polymnia doctor --store {path}`")
    if isinstance(exc, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreError(f"{path} cannot be opened for writing ({exc}); check the path and its permissions")
    if isinstance(exc, apsw.IOError) and getattr(exc, "extendedresult", 0) in _LOST_WRITES:
        return StoreStopped(f"the disk did not confirm a write to {path} ({exc}); nothing was acknowledged")
    if isinstance(exc, apsw.IOError):
        return StoreError(f"the disk refused {path} ({exc}); nothing was changed, check its room, quotas and health")
    return StoreError(f"{path}: {exc}")


# After one of these the operating system may have dropped pages it had accepted: nobody can know what is on disk.
_LOST_WRITES = frozenset(
    {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_CLOSE, apsw.SQLITE_IOERR_TRUNCATE}
)
