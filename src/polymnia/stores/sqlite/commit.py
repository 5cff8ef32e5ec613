"""Group commit: writers that wait for one another share one fsync."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from polymnia.errors import StoreError, StoreSealed, StoreStopped, StoreTooNew
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, DRIVER_ERRORS, SEALED_ID, map_errors
from polymnia.stores.sqlite.lineage import FileWatch, renew_lineage

# Writers in one commit, so that the first never waits long for the last.
MAX_GROUP_SIZE = 64


class _Group:
    """Transactions that are committed together, and the result."""

    def __init__(self) -> None:
        self.size = 0
        self.done = threading.Event()
        self.failure: StoreError | None = None


class GroupCommit:
    """The one writing connection of a store.

    `transaction()` returns only when the disk has the data. A writer that finds others waiting
    leaves its work in the open transaction for the next one; the last of them commits for all. Each
    writer's work is whole or absent: a failure undoes only its own.
    """

    def __init__(
        self, path: str, connection: apsw.Connection, watch: FileWatch | None = None
    ) -> None:
        """Without a watch the store is in memory."""
        self._path = path
        self._connection = connection
        self._map_errors = map_errors(path)
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0
        self._group: _Group | None = None
        self._stopped: str | None = None
        self._watch = watch
        self._schema = connection.pragma("user_version")
        self._cookie = 0
        self._count = 0

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Yield the connection inside a transaction."""
        with self._exclusive():
            group = self._join()
            try:
                with self._map_errors:
                    yield self._connection
                    if group.size:
                        self._connection.execute("RELEASE writer")
            except BaseException as exc:
                self._undo(group, exc)
                raise
            group.size += 1
        group.done.wait()
        if group.failure is not None:
            raise group.failure

    def rewrite_file(self, query: str) -> None:
        """Run VACUUM: it writes every page anew, and cannot be part of a transaction.

        Writers of this process wait until it is done, readers do not. Raise StoreError.
        """
        with self._exclusive():
            self._commit_open_group()
            self._join()
            # A log that begins with all pages would fit any file, so it begins with these
            # (lineage.py).
            self._commit_lineage()
            with self._map_errors:
                # Its intermediate results are too large for the memory.
                self._connection.execute("PRAGMA temp_store = FILE")
                try:
                    self._connection.execute(query)
                finally:
                    self._connection.execute("PRAGMA temp_store = MEMORY")
                self._begin()
            self._commit_lineage()  # the rewrite has changed the schema cookie

    def require_in_place(self) -> None:
        """Raise StoreError if something happened to the files, so that writes would be lost.

        Never wait: a writer has verified the files itself.
        """
        if self._watch is None or self._watch.is_unchanged():
            return
        problem = self._verify(self._watch)
        if problem is not None:
            raise StoreError(problem)

    def require_schema(self, schema: object) -> None:
        """Raise StoreTooNew if another process changed the schema since the store was opened."""
        if schema != self._schema:
            raise StoreTooNew(
                f"another version of polymnia has changed {self._path} to schema {schema}; "
                "nothing was changed, upgrade polymnia and start the server again"
            )

    def may_checkpoint(self) -> bool:
        """Return True if closing may bring the log into the file.

        It may if both are still ours, or if only the log was deleted.
        """
        try:
            return (
                self._watch is None
                or self._verify(self._watch) is None
                or self._watch.is_log_lost()
            )
        except (*DRIVER_ERRORS, StoreError):
            return False  # the file or its log cannot even be read

    def _verify(self, watch: FileWatch) -> str | None:
        """Return what happened to the files.

        While a writer uses the connection, only their names are looked at.
        """
        if not self._lock.acquire(blocking=False):
            return watch.find_problem()
        try:
            return watch.verify()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection when no writer uses it any more."""
        is_free = self._lock.acquire(timeout=BUSY_TIMEOUT_MS / 1000)
        try:
            if is_free:
                self._commit_open_group()
            self._connection.close()
        finally:
            if is_free:
                self._lock.release()

    def _commit_open_group(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            self._commit(group)

    def _commit_lineage(self) -> None:
        """Commit the open transaction, which has only a new token."""
        self._group = None
        try:
            with self._map_errors:
                if self._watch is not None:
                    renew_lineage(self._connection, self._cookie)
                self._connection.execute("COMMIT")
        except StoreError as exc:
            self._roll_back(exc)
            raise

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Use the connection alone. The last of the writers that wait for it commits for all."""
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1
        try:
            yield
        finally:
            try:
                size = self._group.size if self._group is not None else 0
                if self._waiting == 0 or size >= MAX_GROUP_SIZE:
                    self._commit_open_group()
            finally:
                self._lock.release()

    def _join(self) -> _Group:
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        with self._map_errors:
            if self._group is not None:
                self._connection.execute("SAVEPOINT writer")
                return self._group
        try:
            with self._map_errors:
                self._require_files()
                self._begin()
                if self._watch is not None and self._watch.is_log_empty():
                    # Give the file a new token before the log begins, so that no earlier copy of
                    # it fits the log.
                    renew_lineage(self._connection, self._cookie)
                    self._connection.execute("COMMIT")
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    self._begin()
                    # If the first commit to the log fails, nothing else shows that this change
                    # was ours.
                    self._watch.accept_checkpoint()
        except StoreError as exc:
            self._roll_back(exc)
            raise
        self._group = _Group()
        return self._group

    def _roll_back(self, exc: StoreError) -> None:
        """End the transaction, and write no more if the state of the disk is unknown."""
        if isinstance(exc, StoreStopped):
            self._stopped = str(exc)
        with suppress(apsw.ConnectionClosedError):  # closing rolls back too
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _require_files(self) -> None:
        problem = None if self._watch is None else self._watch.verify()
        if self._watch is None or problem is None:
            return
        if not self._watch.is_in_place():
            self._read_header()  # an archived file has moved too: raise StoreSealed for it
        elif self._watch.is_log_lost():
            self._connection.execute(
                "PRAGMA wal_checkpoint(PASSIVE)"
            ).fetchall()  # we still have it open
        raise StoreError(problem)

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._cookie = self._read_header()
        self._count = self._connection.total_changes()

    def _read_header(self) -> int:
        """Return the schema cookie.

        Raise StoreSealed and StoreTooNew: both are written inside a transaction.
        """
        query = "PRAGMA application_id; PRAGMA user_version; PRAGMA schema_version"
        mark, schema, cookie = [
            int(str(value)) for (value,) in self._connection.execute(query).fetchall()
        ]
        if mark == SEALED_ID:
            raise StoreSealed(
                "this workspace was archived or deleted during the call; nothing was changed"
            )
        self.require_schema(schema)
        return cookie

    def _undo(self, group: _Group, exc: BaseException) -> None:
        if group.size and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO writer; RELEASE writer")
            return
        # The first of the group, or SQLite rolled everything back itself, as on a full disk.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._group = None
        undone = StoreError(
            f"{self._path}: the transaction was undone; nothing was changed, try again"
        )
        group.failure = exc if isinstance(exc, StoreError) else undone
        group.done.set()

    def _commit(self, group: _Group) -> None:
        try:
            with self._map_errors:
                if self._connection.total_changes() != self._count and self._watch is not None:
                    renew_lineage(self._connection, self._cookie)
                self._connection.execute("COMMIT")
            problem = None if self._watch is None else self._watch.find_problem()
            if problem is not None:
                group.failure = StoreStopped(problem)
        except StoreError as exc:
            group.failure = exc
            self._roll_back(exc)
        finally:
            group.done.set()
