"""A project's file: sealing it, moving it, copying it back, taking it away. Each step may be repeated."""

import shutil
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

import apsw

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import fsync, fsync_directory, open_private
from polymnia.errors import StoreBusy
from polymnia.stores.sqlite.connection import APPLICATION_ID, BUSY_TIMEOUT_MS, SEALED_ID, connect, map_errors

_LOGS = ("-wal", "-shm")
_MOMENT = 0.005


def seal(path: Path) -> None:
    """Let nobody write any more, and bring all that was written into the file itself.

    Writers look for the seal inside their transactions: a write is before it, and in the file, or is refused.
    """
    with map_errors(str(path)), closing(connect(str(path), create=False)) as connection:
        _mark(connection, SEALED_ID, instead_of=APPLICATION_ID)
        _empty_log(path, connection)


def unseal(path: Path) -> None:
    """The other way round, for a file that never left its place, or a copy that nobody has opened yet."""
    with map_errors(str(path)), closing(connect(str(path), create=False)) as connection:
        _mark(connection, APPLICATION_ID, instead_of=SEALED_ID)


def move(source: Path, target: Path) -> None:
    """Put a sealed file elsewhere. Raises StoreError."""
    with map_os_errors(str(source)):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        for directory in (target.parent, source.parent):
            fsync_directory(directory)
    drop_logs(source)


def drop_logs(path: Path) -> None:
    """Take away the side files of a file that is sealed and moved: they are empty, and in the way of its successor."""
    with map_os_errors(str(path)):
        for ending in _LOGS:
            path.with_name(path.name + ending).unlink(missing_ok=True)


def fold_log_in(path: Path) -> None:
    """Bring what is only in the log of a file into the file; sealed ones have none, those of others may."""
    if path.with_name(f"{path.name}-wal").exists():
        with map_errors(str(path)), closing(connect(str(path), create=False)) as connection:
            _empty_log(path, connection)


def copy(source: Path, target: Path) -> None:
    """A copy on disk, open to those the file is open to. Not the file itself: others may have that open, sealed."""
    with map_os_errors(str(target)):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        with source.open("rb") as old, open(target, "xb", opener=open_private) as new:
            shutil.copymode(source, target)
            shutil.copyfileobj(old, new, 1 << 20)
            new.flush()
            fsync(new.fileno(), target)


def put(source: Path, target: Path) -> None:
    """Put a finished copy into its place."""
    with map_os_errors(str(target)):
        source.replace(target)
        fsync_directory(target.parent)


def discard(path: Path) -> None:
    """Take a file away, its side files and its copy from before an adoption too."""
    with map_os_errors(str(path)):
        for ending in ("", *_LOGS, ".bak"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        if path.parent.is_dir():
            fsync_directory(path.parent)


def _empty_log(path: Path, connection: apsw.Connection) -> None:
    """Bring the log into the file. SQLite waits for readers, but not for somebody who does the same just now."""
    until = monotonic() + BUSY_TIMEOUT_MS / 1000
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]:
        if monotonic() > until:
            raise StoreBusy(f"{path} is being read by somebody who does not finish; nothing was changed, try again")
        sleep(_MOMENT)


def _mark(connection: apsw.Connection, mark: int, *, instead_of: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if connection.pragma("application_id") == instead_of:
        connection.pragma("application_id", mark)
    connection.execute("COMMIT")
