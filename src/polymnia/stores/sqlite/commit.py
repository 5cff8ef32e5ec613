"""Group commit: writers that wait for one another share one fsync."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from polymnia.errors import StoreBusy, StoreError, StoreSealed, StoreStopped
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, SEALED_ID, file_identity, map_errors

# Writers in one commit, so that the first never waits long for the last.
MAX_GROUP_SIZE = 64


class _Group:
    """Transactions that are committed together, and the result."""

    def __init__(self) -> None:
        self.size = 0
        self.done = threading.Event()
        self.failure: StoreError | None = None


class GroupCommit:
    """The one writing connection of a store. `transaction()` returns only when the disk has the data.

    A writer that finds others waiting leaves its work in the open transaction for the next one; the last of them
    commits for all. Each writer's work is whole or absent: a failure undoes only its own.
    """

    def __init__(self, path: str, connection: apsw.Connection) -> None:
        self._path = path
        self._connection = connection
        self._map_errors = map_errors(path)
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0
        self._group: _Group | None = None
        self._stopped: str | None = None
        self._file = file_identity(path)

    @contextmanager
    def transaction(self, timeout: float | None = None) -> Iterator[apsw.Connection]:
        """Yield the connection inside a transaction.

        With a timeout, raise StoreBusy when other writers of this process take longer, in seconds.
        """
        self._acquire(timeout)
        try:
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
        finally:
            self._release()
        group.done.wait()
        if group.failure is not None:
            raise group.failure

    @property
    def in_place(self) -> bool:
        """True while the file that was opened is the one at its path."""
        return self._file == file_identity(self._path)

    def require_in_place(self) -> None:
        """Raise StoreError if the file was replaced: writes to the old one would be lost with this process."""
        if not self.in_place:
            raise StoreError(f"{self._path} was moved, deleted or replaced meanwhile; start the server again")

    def close(self) -> None:
        """Close the connection when no writer uses it any more."""
        is_free = self._lock.acquire(timeout=BUSY_TIMEOUT_MS / 1000)
        try:
            if is_free and self._group is not None:
                group, self._group = self._group, None
                self._commit(group)
            self._connection.close()
        finally:
            if is_free:
                self._lock.release()

    def _acquire(self, timeout: float | None) -> None:
        """Take the lock. Only a writer that will not give up counts as waiting: others may leave their commit to it."""
        if timeout is not None:
            if not self._lock.acquire(timeout=timeout):
                raise StoreBusy(f"{self._path} is being written; nothing was changed, try again")
            return
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1

    def _release(self) -> None:
        try:
            group = self._group
            if group is not None and (self._waiting == 0 or group.size >= MAX_GROUP_SIZE):
                self._group = None
                self._commit(group)
        finally:
            self._lock.release()

    def _join(self) -> _Group:
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        with self._map_errors:
            if self._group is not None:
                self._connection.execute("SAVEPOINT writer")
                return self._group
            if not self.in_place:
                self._require_unsealed()  # says more than that the file is gone
                self.require_in_place()
            self._connection.execute("BEGIN IMMEDIATE")
            self._require_unsealed()
        self._group = _Group()
        return self._group

    def _require_unsealed(self) -> None:
        """Raise StoreSealed. Asked inside the transaction, because a file is sealed in one."""
        ((mark,),) = self._connection.execute("PRAGMA application_id").fetchall()
        if mark == SEALED_ID:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreSealed("this workspace was archived or deleted during the call; nothing was changed")

    def _undo(self, group: _Group, exc: BaseException) -> None:
        if group.size and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO writer; RELEASE writer")
            return
        # The first of the group, or SQLite rolled everything back by itself (a full disk does that).
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._group = None
        undone = StoreError(f"{self._path}: the transaction was undone; nothing was changed, try again")
        group.failure = exc if isinstance(exc, StoreError) else undone
        group.done.set()

    def _commit(self, group: _Group) -> None:
        try:
            with self._map_errors:
                self._connection.execute("COMMIT")
        except StoreError as exc:
            group.failure = exc
            if isinstance(exc, StoreStopped):
                self._stopped = str(exc)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            group.done.set()
