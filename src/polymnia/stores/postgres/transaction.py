"""Transactions in PostgreSQL: what is sent together is one round trip.

Over a network a wait for the server costs more than most statements. So writes are queued until the
commit. `answer_together` runs several functions side by side: each one runs until it must wait for
rows, then all that they ask for is sent at once.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
from greenlet import getcurrent, greenlet
from psycopg import errors, pq

from polymnia.errors import StoreSealed
from polymnia.stores.postgres.connection import (
    QUERIES,
    CommitLost,
    ConnectionLost,
    PooledConnection,
    Row,
    apply_settings,
    encode,
)
from polymnia.stores.versioned.port import LastChange

if TYPE_CHECKING:
    from polymnia.stores.postgres.database import Database

logger = logging.getLogger(__name__)

_Status = pq.TransactionStatus
# The server ended the connection, or will not let it write any more: after a failover it may have
# become a replica.
_ENDED = (
    ConnectionLost,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    errors.ReadOnlySqlTransaction,
)
# What a policy of row-level security raises in a transaction that has not named its workspace.
_UNNAMED = (errors.UndefinedObject, errors.InvalidTextRepresentation)

# The name of a query, and its values.
Call = tuple[Any, ...]
_Statement = tuple[int | None, str, tuple[object, ...]]
_Request = tuple["WorkspaceConnection", Call]


class WorkspaceConnection:
    """One transaction on the rows of a workspace.

    It takes a connection when rows are first fetched. Every query about a workspace has the
    workspace's id as its first parameter. A transaction that only reads needs no BEGIN on a direct
    connection: without a sync between them, statements share a transaction, and the connection's
    isolation level makes it one snapshot. So a read of one statement is one round trip. Readings of
    other workspaces can join it.
    """

    def __init__(
        self,
        database: "Database",
        workspace: int | None = None,
        *,
        write: bool = False,
        lock: bool = False,
        once: bool = False,
        joined: "WorkspaceConnection | None" = None,
    ) -> None:
        """Without a workspace the transaction is about the catalogue."""
        self.workspace = workspace
        self.main = joined or self
        self._database = database
        self._write = write
        self._lock = lock
        self._once = once
        self._locked_cursor: psycopg.Cursor[Row] | None = None
        self._last_change: LastChange | None = None
        self._connection: PooledConnection | None = None
        self._pipeline: psycopg.Pipeline | None = None
        self._leave_pipeline = ExitStack()
        self._queue: list[_Statement] = []
        self._written: list[_Statement] = []
        self._is_answered = False
        # The workspace that row-level security was told of last.
        self._named: int | None = None

    def join(self, workspace: int) -> "WorkspaceConnection":
        """Return a reading of another workspace in the same snapshot."""
        return WorkspaceConnection(self._database, workspace, joined=self.main)

    def ask(self, query: str, *values: object) -> list[Row]:
        """Return the rows of a named query. Raise StoreSealed, psycopg.Error."""
        return _fetch_rows([(self, (query, *values))])[0]

    def ask_all(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Return the rows of several queries, in one round trip.

        Raise StoreSealed, psycopg.Error.
        """
        return _fetch_rows([(self, call) for call in calls])

    def send(self, query: str, *values: object) -> None:
        """Queue a named query for the next `fetch` or `commit`."""
        if self.workspace is not None:
            values = (self.workspace, *values)
        self.main._queue.append((self.workspace, query, values))

    def write(self, query: str, *values: object) -> None:
        """Queue a named query that changes rows and returns none that are needed."""
        self.send(query, *values)
        self._written.append(self._queue[-1])

    @property
    def has_written(self) -> bool:
        """True if there is something to commit."""
        return bool(self._written)

    def repeat(self, other: "WorkspaceConnection") -> None:
        """Queue everything that another transaction wrote."""
        self._written += other._written
        self._queue += other._written

    def last_change(self) -> LastChange:
        """Return the last change of the locked workspace. Raise StoreSealed, psycopg.Error."""
        if self._last_change is None:
            self.fetch()
        assert self._last_change is not None  # only locked transactions are asked
        return self._last_change

    def fetch(self) -> list[list[Row]]:
        """Return the rows of every query that was queued, in one round trip.

        Raise StoreSealed, psycopg.Error.
        Begin again on another connection if the server has not answered anything yet.
        """
        assert not (self._once and self._is_answered)  # another fetch would see another snapshot
        deadline = monotonic() + self._database.url.timeout
        while True:
            try:
                rows = self._fetch_once()
            except psycopg.Error as exc:
                if self._is_answered:
                    raise
                if isinstance(exc, _UNNAMED) and self._must_name_workspace():
                    continue
                if not self._is_lost(exc) or monotonic() > deadline:
                    raise
                logger.info("a connection to %s was lost: %s", self._database.url.title, exc)
                self._discard()
                self._database.replace_broken()
            else:
                if self._locked_cursor is not None and not self._is_answered:
                    self._last_change = _last_change(self._locked_cursor.fetchall())
                self._is_answered = True
                self._queue.clear()
                return rows

    def commit(self) -> None:
        """Carry out what is queued, and make everything durable, in one round trip.

        Raise psycopg.Error. If it is CommitLost, it is unknown whether the commit took place.
        """
        cursor: psycopg.Cursor[Row] | None = None
        try:
            self._send_queue()
            cursor = self._execute("commit", prepare=False)
            self._leave_pipeline.close()  # this sends a sync and receives every result
        except psycopg.Error as exc:
            # The server may end the connection right after the commit: it has taken place.
            if cursor is not None and cursor.statusmessage == "COMMIT":
                return
            if self._is_lost(exc):
                raise CommitLost(str(exc)) from exc
            raise

    def close(self) -> None:
        """Return the connection. What was written and not committed is undone."""
        connection = self._connection
        if connection is None:
            return
        try:
            with suppress(psycopg.Error):
                if self._pipeline is not None and not self._written and self._has_begun:
                    self._execute("commit", prepare=False)  # ends it without another round trip
                self._leave_pipeline.close()
            with suppress(psycopg.Error):
                if connection.info.transaction_status in (_Status.INTRANS, _Status.INERROR):
                    connection.rollback()
            if connection.info.pipeline_status != pq.PipelineStatus.OFF:
                connection.close()
        finally:
            self._release()

    @property
    def _has_begun(self) -> bool:
        """True if the transaction starts with BEGIN."""
        return self._write or self._database.is_pooled

    def _fetch_once(self) -> list[list[Row]]:
        cursors = self._send_queue()
        if self._once:
            if self._has_begun:
                self._execute("commit", prepare=False)
            self._leave_pipeline.close()
        elif self._has_begun and self._pipeline is not None:
            self._pipeline.sync()
        rows = []
        for cursor in cursors:
            # Without a sync, the first cursor that is asked receives the results of all.
            has_rows = cursor.description is not None or not (self._once or self._has_begun)
            rows.append(cursor.fetchall() if has_rows else [])
        return rows

    def _send_queue(self) -> list[psycopg.Cursor[Row]]:
        """Send what is queued, in a new transaction if there is none. Return a cursor for each."""
        if self._connection is None:
            self._begin()
        cursors = []
        for workspace, query, values in self._queue:
            if workspace is not None and self._database.row_security and workspace != self._named:
                self._named = workspace
                self._execute("set_workspace", workspace)
            cursors.append(self._execute(query, *values))
        return cursors

    def _begin(self) -> None:
        database = self._database
        self._connection = connection = database.acquire()
        database.check_schema(connection)
        connection.patience = database.url.patience
        connection.is_cancellable = not self._write
        self._pipeline = self._leave_pipeline.enter_context(connection.pipeline())
        if self._has_begun:
            self._execute("begin" if self._write else "begin_reading", prepare=False)
        if database.is_pooled:
            apply_settings(connection, database.url.settings, local=True)
        self._named = None
        if self._lock:
            if database.row_security:
                self._named = self.workspace
                self._execute("set_workspace", self.workspace)
            self._locked_cursor = self._execute("lock_workspace", self.workspace)

    def _execute(
        self, query: str, *values: object, prepare: bool | None = None
    ) -> psycopg.Cursor[Row]:
        assert self._connection is not None  # _begin took it
        texts = [encode(value) for value in values]
        return self._connection.execute(QUERIES[query], texts, prepare=prepare, binary=True)

    def _must_name_workspace(self) -> bool:
        """Begin again with the workspace's name if row-level security was switched on meanwhile."""
        if self._database.row_security or self.workspace is None:
            return False
        self._database.row_security = True
        self.close()
        return True

    def _is_lost(self, exc: psycopg.Error) -> bool:
        """Return True if the connection ended, so that it is unknown what the server did."""
        if self._connection is None:
            return False
        is_ours = isinstance(exc, psycopg.OperationalError) and exc.sqlstate is None
        return isinstance(exc, _ENDED) or is_ours or self._connection.broken

    def _discard(self) -> None:
        if self._connection is not None:
            self._connection.close()
            with suppress(psycopg.Error):
                self._leave_pipeline.close()
            self._release()

    def _release(self) -> None:
        connection, self._connection, self._pipeline = self._connection, None, None
        if connection is not None:
            connection.patience, connection.is_cancellable = None, False
            self._database.release(connection)


def _last_change(locked: list[Row]) -> LastChange:
    """Return what the row says that was locked. Raise StoreSealed."""
    if not locked or not locked[0][4]:
        raise StoreSealed(
            "this workspace was archived or deleted during the call; nothing was changed"
        )
    return LastChange(*locked[0][:4])


class _Branch(greenlet):  # type: ignore[misc]  # greenlet has no type hints
    """One of several functions that run side by side. It gives way whenever it needs rows."""


def answer_together(questions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return what the functions return. Each may read in several steps.

    The first steps of all are one round trip, then the second steps, and so on.
    """
    branches = [_Branch(question) for question in questions]
    outcomes: dict[_Branch, Any] = {}
    try:
        for branch in branches:
            branch.gr_context = copy_context()
            outcomes[branch] = branch.switch()  # what it asks for, or what it returns
        while waiting := [branch for branch in branches if not branch.dead]:
            requests = [request for branch in waiting for request in outcomes[branch]]
            answers = iter(_fetch_rows(requests))
            for branch in waiting:
                own_rows = [next(answers) for _ in outcomes[branch]]
                outcomes[branch] = branch.switch(own_rows)
    finally:
        for branch in branches:
            if not branch.dead:
                branch.throw()  # another one failed
    return [outcomes[branch] for branch in branches]


def _fetch_rows(requests: Sequence[_Request]) -> list[list[Row]]:
    """Return the rows of each request. Those of one transaction are one round trip."""
    current = getcurrent()
    if isinstance(current, _Branch):
        rows: list[list[Row]] = current.parent.switch(requests)
        return rows
    for connection, (query, *values) in requests:
        connection.send(query, *values)
    mains = [connection.main for connection, _ in requests]
    answers = {}
    for main in dict.fromkeys(mains):
        answers[main] = iter(main.fetch()[-mains.count(main) :])
    return [next(answers[main]) for main in mains]
