"""A workspace's file: seal, move, copy and delete it. Each step may be repeated."""

import re
from contextlib import closing
from glob import escape
from pathlib import Path
from time import monotonic, sleep

import apsw

from polymnia.disk.files import fsync, fsync_directory, make_parent, map_os_errors, open_private
from polymnia.errors import StoreBusy
from polymnia.stores.sqlite.connection import (
    APPLICATION_ID,
    BUSY_TIMEOUT_MS,
    SEALED_ID,
    connect,
    map_errors,
)

# Suffixes of a workspace's companion files.
_COMPANIONS = re.compile(r"(\.part)?(-wal|-shm|-journal)?|\.bak\d*|-server-[0-9a-f]+~?")


def seal(path: Path) -> None:
    """Reject all further writes, and bring everything that was written into the file itself.

    Writers check for the seal inside their transactions, so a later write is rejected.
    """
    with map_errors(str(path)), closing(connect(str(path), create=False)) as connection:
        _set_mark(connection, SEALED_ID)
        _empty_log(path, connection)


def unseal(path: Path) -> None:
    """Undo `seal`, for a file that was not moved, or a copy that no process has opened yet."""
    with map_errors(str(path)), closing(connect(str(path), create=False)) as connection:
        _set_mark(connection, APPLICATION_ID)


def move(source: Path, target: Path) -> None:
    """Move a sealed file. Raise StoreError."""
    make_parent(target)
    with map_os_errors(str(source)):
        source.rename(target)
        fsync_directory(target.parent)
    drop_logs(source)


def drop_logs(path: Path) -> None:
    """Delete the empty logs of a sealed and moved file: a new file must not find them."""
    with map_os_errors(str(path)):
        for ending in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        # A log that a power cut brings back would seal the file again when it is restored.
        fsync_directory(path.parent)


def fold_log(path: Path) -> None:
    """Bring the log of a file into the file, if it has one."""
    if path.with_name(f"{path.name}-wal").exists():
        with map_errors(str(path)), closing(connect(str(path), create=False)) as connection:
            _empty_log(path, connection)


def copy(source: Path, target: Path) -> None:
    """Make a durable copy with the same mode. Others may have the sealed original open."""
    import shutil  # slow to import, and rarely needed

    make_parent(target)
    with map_os_errors(str(target)):
        target.unlink(missing_ok=True)
        with source.open("rb") as old, open(target, "xb", opener=open_private) as new:
            shutil.copymode(source, target)
            shutil.copyfileobj(old, new, 1 << 20)
            new.flush()
            fsync(new.fileno(), target)


def put(source: Path, target: Path) -> None:
    """Rename a finished copy to its final name."""
    with map_os_errors(str(target)):
        source.replace(target)
        fsync_directory(target.parent)


def discard(path: Path) -> None:
    """Delete a file with its logs, unfinished copies, and the original of an adopted file."""
    with map_os_errors(str(path)):
        if not path.parent.is_dir():
            return
        for file in sorted(path.parent.glob(f"{escape(path.name)}*")):  # the file itself first
            if _COMPANIONS.fullmatch(file.name.removeprefix(path.name)):
                file.unlink(missing_ok=True)
        fsync_directory(path.parent)


def _empty_log(path: Path, connection: apsw.Connection) -> None:
    """Bring the log into the file. SQLite waits for readers, but not for another checkpoint."""
    deadline = monotonic() + BUSY_TIMEOUT_MS / 1000
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]:
        if monotonic() > deadline:
            raise StoreBusy(f"a long read of {path} is going on; nothing was changed, try again")
        sleep(0.005)


def _set_mark(connection: apsw.Connection, mark: int) -> None:
    """Write a mark, also if the file seems to have it.

    A commit that failed may have left the other mark in the log, where only the next process would
    see it. This commit overwrites it.
    """
    connection.execute("BEGIN IMMEDIATE")
    if connection.pragma("application_id") in (APPLICATION_ID, SEALED_ID):
        connection.pragma("application_id", mark)
    connection.execute("COMMIT")
