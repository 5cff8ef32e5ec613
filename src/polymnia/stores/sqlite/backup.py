"""Back up and restore a SQLite file while servers use it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import apsw

from polymnia.disk.files import fsync_directory, map_os_errors, open_private
from polymnia.errors import StoreDamaged, StoreForeign
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, map_errors, run
from polymnia.stores.sqlite.lineage import log_path, renew_lineage, set_aside_foreign_log
from polymnia.stores.sqlite.schema import refuse_foreign, refuse_newer

_SIDE_FILES = ("", "-wal", "-shm", "-journal")


def copy_store(source: Path, target: Path) -> None:
    """Copy a store to a new file as it is at one moment, private to the user, and check the copy.

    Raise StoreError.
    """

    def inspect(connection: apsw.Connection) -> None:
        set_aside_foreign_log(str(source), connection, read_only=True)
        refuse_foreign(str(source), connection)
        refuse_newer(str(source), connection)

    _copy(source, target, inspect)


def copy_database(source: Path, target: Path) -> None:
    """Copy any SQLite file in the same way: a registry, an archive, the file of another program."""
    _copy(
        source,
        target,
        lambda connection: set_aside_foreign_log(str(source), connection, read_only=True),
    )


def replace_store(new: Path, path: Path, kept: Path) -> bool:
    """Put a new file in the place of a store. Give the former file and its log the name `kept`.

    Servers that use the former file notice, and refuse further calls.
    Return False if there was none. Raise StoreError.
    """
    path = path.resolve()  # a symbolic link stays a link
    with map_os_errors(str(path)):
        if not path.exists():
            new.rename(path)
            fsync_directory(path.parent)
            return False
        with _lock_out_writers(path):
            # Give the new file the mode and, where allowed, the owner of the one it replaces.
            state = path.stat()
            new.chmod(state.st_mode & 0o777)
            if hasattr(os, "chown"):
                with suppress(PermissionError):
                    os.chown(new, state.st_uid, state.st_gid)
            _link(path, kept)
            log = log_path(str(path))
            if log.exists() and log.stat().st_size:
                _link(log, Path(f"{kept}-wal"))
            new.replace(path)
            # From here on the log fits no file at its path.
            # If this process ends, the log is set aside later.
            for ending in ("-wal", "-shm"):
                Path(f"{path}{ending}").unlink(missing_ok=True)
            fsync_directory(path.parent)
    return True


def _copy(source: Path, target: Path, inspect: Callable[[apsw.Connection], None]) -> None:
    with map_os_errors(str(target)):
        os.close(open_private(str(target), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    try:
        # Not with `connect`, which would turn the write-ahead log on in a backup.
        with map_errors(str(source)), closing(_open(source)) as connection:
            inspect(connection)
            problem = _copy_pages(connection, source, target)
        if problem != "ok":
            raise StoreDamaged(
                f"{source} is damaged ({problem}); run `polymnia doctor --store {source}`"
            )
    except BaseException:
        for ending in _SIDE_FILES:
            Path(f"{target}{ending}").unlink(missing_ok=True)
        raise


def _copy_pages(connection: apsw.Connection, source: Path, target: Path) -> str:
    """Copy in one step, which is one snapshot. Return the result of SQLite's integrity check."""
    with map_errors(str(target)), closing(apsw.Connection(str(target))) as copy:
        with copy.backup("main", connection, "main") as backup:
            backup.step(-1)
        with map_errors(str(source)):  # damage in the copy is damage in the source
            # Make the copy one file with a lineage of its own, so that no log of the original fits
            # it.
            copy.execute("PRAGMA journal_mode = DELETE; PRAGMA secure_delete = ON").fetchall()
            if ("lineage",) in run(copy, "table_names"):
                copy.execute("BEGIN")
                run(copy, "delete_all_session_notes")
                had_session_notes = copy.changes() > 0
                run(copy, "delete_all_session_members")
                renew_lineage(copy, copy.pragma("schema_version"))
                copy.execute("COMMIT")
                # Zeroing deleted cells leaves copies of them in pages that were split.
                ((purge_left_text,),) = run(copy, "rewrite_is_due")
                if had_session_notes or purge_left_text:
                    run(copy, "rewrite")
                    run(copy, "end_rewrite")
            return str(copy.pragma("integrity_check"))


@contextmanager
def _lock_out_writers(path: Path) -> Iterator[None]:
    """Hold the write lock of a store, if it is sound enough to have one.

    Closing leaves its log alone.
    """
    with ExitStack() as stack:
        try:
            with map_errors(str(path)):
                connection = stack.enter_context(closing(_open(path)))
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                set_aside_foreign_log(str(path), connection, read_only=False)
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                connection.execute("BEGIN IMMEDIATE")
        except (StoreDamaged, StoreForeign):
            stack.close()
        yield


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def _link(path: Path, kept: Path) -> None:
    try:
        kept.hardlink_to(path)
    except OSError:  # not every file system has hard links
        shutil.copy(path, kept)
