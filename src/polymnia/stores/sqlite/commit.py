"""Group commit: writers that wait for one another share one trip to the disk."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from polymnia.errors import StoreBusy, StoreError, StoreSealed, StoreStopped
from polymnia.model import Change
from polymnia.stores.sqlite.connection import BUSY_WAIT, SEALED, translated
from polymnia.stores.sqlite.replica import Replica

# Writers in one commit at most, so that the first never waits long for the last.
_LARGEST_GROUP = 64


def identity(path: str) -> tuple[int, int] | None:
    """What tells the file at the path from another one; None where there is none."""
    try:
        state = os.stat(path)  # noqa: PTH116  # before every write, and Path.stat takes longer
    except OSError:
        return None
    return (state.st_dev, state.st_ino)


class _Group:
    """Transactions that will be committed together, and how that went."""

    def __init__(self) -> None:
        self.size = 0
        self.changes: list[Change] = []
        self.over = threading.Event()
        self.failure: StoreError | None = None


class CommitLane:
    """The one writing connection of a store; `transaction()` returns only when the disk has the data.

    A writer that finds others waiting leaves its work in the open transaction for the next one; the last of
    them commits for all. Each writer's work is whole or absent: a failure takes back only its own.
    """

    def __init__(self, path: str, connection: apsw.Connection, replica: Replica) -> None:
        """The replica is told of what is committed."""
        self._replica = replica
        self._translated = translated(path)
        self._connection = connection
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0
        self._group: _Group | None = None
        self._stopped: str | None = None
        self._path = path
        self._file = identity(path)

    @contextmanager
    def transaction(self, changes: Sequence[Change] = (), *, wait: int = BUSY_WAIT) -> Iterator[apsw.Connection]:
        """The connection, inside a transaction; when the block ends, `changes` has what was done in it.

        `wait` says for how many milliseconds others that write are waited for; then it is StoreBusy.
        """
        self._enter(wait)
        try:
            group = self._join(wait)
            try:
                with self._translated:
                    yield self._connection
                    if group.size:
                        self._connection.execute("RELEASE writer")
            except BaseException as exc:
                self._take_back(group, exc)
                raise
            group.size += 1
            group.changes += changes
        finally:
            self._leave()
        group.over.wait()
        if group.failure is not None:
            raise group.failure

    def refuse_another_file(self) -> None:
        """What is written to a file that is no longer at its path is lost with this process. Raises StoreError."""
        if not self.in_place:
            raise StoreError(f"{self._path} was moved, deleted or replaced meanwhile; start the server again")

    def _enter(self, wait: int) -> None:
        """Wait for the other writers of this process: who waits long for other processes, as long as it takes."""
        with self._counting:
            self._waiting += 1
        try:
            if not self._lock.acquire(timeout=-1 if wait == BUSY_WAIT else wait / 1000):
                raise StoreBusy(f"{self._path} is being written; nothing was changed, try again")
        finally:
            with self._counting:
                self._waiting -= 1

    def _join(self, wait: int) -> _Group:
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        with self._translated:
            if self._group is None:
                if not self.in_place:
                    self._refuse_sealed()  # that says more than that the file is gone
                    self.refuse_another_file()
                self._begin(wait)
                self._refuse_sealed()
                self._replica.begun()
                self._group = _Group()
            else:
                self._connection.execute("SAVEPOINT writer")
        return self._group

    @property
    def in_place(self) -> bool:
        """Whether the file that was opened is still the one at its path."""
        return self._file == identity(self._path)

    def _refuse_sealed(self) -> None:
        """Asked inside the transaction: who seals a file does it in one, so nothing comes between."""
        ((mark,),) = self._connection.execute("PRAGMA application_id").fetchall()
        if mark == SEALED:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreSealed(
                "this workspace was archived or deleted while the call was under way; nothing was changed"
            )

    def _begin(self, wait: int) -> None:
        if wait == BUSY_WAIT:
            self._connection.execute("BEGIN IMMEDIATE")
            return
        self._connection.set_busy_timeout(wait)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._connection.set_busy_timeout(BUSY_WAIT)

    def _take_back(self, group: _Group, exc: BaseException) -> None:
        if group.size and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO writer; RELEASE writer")
            return
        # The first of the group, or SQLite has rolled everything back by itself (a full disk does that).
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._group = None
        undone = StoreError(f"{self._path}: the transaction was undone; nothing was changed, try again")
        group.failure = exc if isinstance(exc, StoreError) else undone
        group.over.set()

    def _leave(self) -> None:
        try:
            group = self._group
            if group is not None and (self._waiting == 0 or group.size >= _LARGEST_GROUP):
                self._group = None
                self._commit(group)
        finally:
            self._lock.release()

    def _commit(self, group: _Group) -> None:
        try:
            with self._translated:
                self._connection.execute("COMMIT")
            self._replica.committed(group.changes)
        except StoreError as exc:
            group.failure = exc
            if isinstance(exc, StoreStopped):
                self._stopped = str(exc)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            group.over.set()
