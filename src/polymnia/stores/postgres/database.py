"""A PostgreSQL database: its pool, and transactions that survive lost connections."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from time import monotonic, sleep
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from polymnia.errors import (
    ChangeInDoubt,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreSealed,
    StoreUnavailable,
)
from polymnia.stores.postgres.connection import (
    CommitLost,
    Connection,
    ConnectionLost,
    Pipeline,
    Row,
    apply_settings,
)
from polymnia.stores.postgres.pooler import require_sessions
from polymnia.stores.postgres.presence import ServerPresence
from polymnia.stores.postgres.replica import ReadReplica
from polymnia.stores.postgres.schema import read_state
from polymnia.stores.postgres.url import PostgresUrl, parse_url
from polymnia.stores.versioned.port import LastChange

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

_ARGUMENTS: dict[str, Any] = {
    "autocommit": True,
    "cursor_factory": psycopg.RawCursor,
    "prepare_threshold": None,  # psycopg would remove the statements that pipelines prepare
}

# A call that waits this long for a connection asks whether the server accepts any.
_PROBE_AFTER_S = 1.0
# The pool gives up a connection that cannot be made after this time.
# The next call begins again at once.
_RECONNECT_S = 1.0
# How long a starting server waits before it tries to connect again.
_START_PAUSE_S = 1.0
# How often a process looks whether a later version has changed the schema.
_SCHEMA_CHECK_S = 5.0

# What a policy of row-level security raises in a transaction that has not named its workspace.
_UNNAMED = (errors.UndefinedObject, errors.InvalidTextRepresentation)


class Database:
    """Connections to one database.

    Stores and catalogues of a process share them, and the last one closes them.
    """

    def __init__(self, url: PostgresUrl) -> None:
        self.url = url
        self.row_security = False
        self.users = 0
        self.server = ServerPresence(self._connect_apart)
        self._schema_checked_at = monotonic()
        self._lock = Lock()
        self._in_use = 0  # connections that calls hold
        # The last changes that this process made, by workspace: a replica may not have them yet.
        self.written: dict[int, int] = {}
        replica = url.replica_url
        self.replica = ReadReplica(partial(Database, replica)) if replica else None
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url.conninfo,
            connection_class=Connection,
            kwargs=_ARGUMENTS,
            configure=self._configure,
            min_size=1,
            max_size=max(url.connections, 1),
            timeout=url.timeout,
            reconnect_timeout=min(url.timeout, _RECONNECT_S),
            num_workers=1,
            open=False,
        )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Yield a connection for work that is not in a pipeline. Raise StoreError."""
        try:
            connection = self.acquire()
            try:
                yield connection
            finally:
                self.release(connection)
        except psycopg.Error as exc:
            raise store_error(self.url.title, exc) from exc

    @contextmanager
    def transaction(
        self,
        workspace: int | None = None,
        *,
        write: bool = False,
        lock: bool = False,
        once: bool = False,
    ) -> Iterator["WorkspaceConnection"]:
        """Yield a transaction on a workspace or, without one, on the catalogue. Raise StoreError.

        What was written is undone at the end, unless it was committed. With `lock`, other writers
        of the workspace wait from the first fetch to the end. With `once`, the first fetch ends the
        transaction.
        """
        connection = WorkspaceConnection(self, workspace, write=write or lock, lock=lock, once=once)
        try:
            yield connection
        except psycopg.Error as exc:
            raise store_error(self.url.title, exc) from exc
        finally:
            connection.close()

    def ask(self, query: str, *values: object) -> list[Row]:
        """Return the rows of a named query on the catalogue, in one round trip.

        Raise StoreError.
        """
        with self.transaction(once=True) as connection:
            connection.send(query, *values)
            return connection.fetch()[-1]

    def acquire(self) -> Connection:
        """Return a connection from the pool. Raise psycopg.Error.

        If others hold all connections, wait for them. If the server refuses connections, do not.
        """
        deadline = monotonic() + self.url.timeout
        while True:
            try:
                connection = self._pool.getconn(timeout=min(self.url.timeout, _PROBE_AFTER_S))
            except PoolTimeout:
                if not self._in_use:
                    psycopg.connect(self.url.conninfo).close()
                if monotonic() > deadline:
                    raise
            else:
                with self._lock:
                    self._in_use += 1
                return connection

    def release(self, connection: Connection) -> None:
        """Return a connection to the pool, which replaces it if it is broken."""
        with self._lock:
            self._in_use -= 1
        self._pool.putconn(connection)

    def check_schema(self, connection: Connection) -> None:
        """Raise StoreTooNew if a later version changed the schema beyond what this one can use."""
        now = monotonic()
        if now > self._schema_checked_at + _SCHEMA_CHECK_S:
            read_state(connection).require_usable(self.url.title)
            self._schema_checked_at = now

    def replace_broken(self) -> None:
        """Let the pool replace idle connections that no longer work, as after a restart."""
        self._pool.check()

    def close(self) -> None:
        """Close the connections when the last user closes the database."""
        with _opening:
            self.users -= 1
            if self.users:
                return
            _open.pop(_key(self.url), None)
        self.disconnect()

    def disconnect(self) -> None:
        """Close all connections."""
        self.server.close()
        self._pool.close()
        if self.replica is not None:
            self.replica.close()

    def share(self) -> None:
        """Count one more user, who closes the database too."""
        with _opening:
            self.users += 1

    def connect(self) -> None:
        """Fill the pool.

        Raise StoreError with what the server says: the pool itself only says that it waited.
        """
        try:
            with psycopg.connect(self.url.conninfo, autocommit=True) as connection:
                require_sessions(self.url, connection)
            self._pool.open(wait=True, timeout=self.url.timeout)
        except psycopg.Error as exc:
            self._pool.close()
            raise store_error(self.url.title, exc) from exc

    def _connect_apart(self) -> Connection:
        """Return a connection that is not in the pool."""
        connection = Connection.connect(self.url.conninfo, **_ARGUMENTS)
        self._configure(connection)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    def _configure(self, connection: Connection) -> None:
        apply_settings(connection, self.url.settings)


_opening = Lock()
_open: dict[Row, Database] = {}


def open_database(url: PostgresUrl) -> Database:
    """Return the database of a URL, which this process may have open already. Raise StoreError."""
    with _opening:
        database = _open.get(_key(url))
        if database is None:
            database = Database(url)
            database.connect()
            _open[_key(url)] = database
        database.users += 1
        return database


def wait_for_server(url: str) -> None:
    """Try to connect until the server accepts it. Raise SettingsError for an invalid URL."""
    parts = parse_url(url)
    is_first = True
    while True:
        try:
            psycopg.connect(parts.conninfo).close()
        except psycopg.OperationalError as exc:
            if is_first:
                logger.warning(
                    "waiting for the database, which cannot be reached: %s",
                    store_error(parts.title, exc),
                )
            is_first = False
            sleep(_START_PAUSE_S)
        else:
            return


def _key(url: PostgresUrl) -> Row:
    """Return what URLs have in common that share their connections."""
    return url.conninfo, url.timeout, url.connections, url.replica


class WorkspaceConnection:
    """One transaction on the rows of a workspace.

    It takes a connection when rows are first fetched.
    Every query about a workspace has the workspace's id as its first parameter.
    """

    def __init__(
        self,
        database: Database,
        workspace: int | None = None,
        *,
        write: bool = False,
        lock: bool = False,
        once: bool = False,
    ) -> None:
        """Without a workspace the transaction is about the catalogue."""
        self.workspace = workspace
        self._database = database
        self._write = write
        self._lock = lock
        self._once = once
        self._last_change: LastChange | None = None
        self._connection: Connection | None = None
        self._pipeline: Pipeline | None = None
        self._queue: list[tuple[str, tuple[object, ...]]] = []
        self._written: list[tuple[str, tuple[object, ...]]] = []
        self._is_answered = False

    def send(self, query: str, *values: object) -> None:
        """Queue a named query for the next `fetch` or `commit`."""
        self._queue.append((query, values if self.workspace is None else (self.workspace, *values)))

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

    @property
    def last_change(self) -> LastChange:
        """The last change of the locked workspace. Raise StoreSealed, psycopg.Error."""
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
                pipeline = self._send_queue()
                rows = pipeline.end() if self._once else pipeline.fetch()
            except psycopg.Error as exc:
                if isinstance(exc, _UNNAMED) and self._names_workspace():
                    continue
                if not self._is_lost(exc) or self._is_answered or monotonic() > deadline:
                    raise
                logger.info("a connection to %s was lost: %s", self._database.url.title, exc)
                self._discard()
                self._database.replace_broken()
            else:
                if self._once:
                    self._pipeline = None
                if self._lock and not self._is_answered:
                    self._last_change = _last_change(rows.pop(0))
                self._is_answered = True
                self._queue.clear()
                return rows

    def commit(self) -> None:
        """Carry out what is queued, and make everything durable, in one round trip.

        Raise psycopg.Error. If it is CommitLost, nobody knows whether the commit took place.
        """
        pipeline = self._send_queue()
        try:
            pipeline.send("commit")
            pipeline.end()
        except psycopg.Error as exc:
            if self._is_lost(exc):
                raise CommitLost(str(exc)) from exc
            raise
        self._pipeline = None

    def close(self) -> None:
        """Return the connection. What was written and not committed is undone."""
        connection, pipeline = self._connection, self._pipeline
        self._connection = self._pipeline = None
        if connection is None:
            return
        try:
            with suppress(psycopg.Error):
                if pipeline is not None and not pipeline.is_lost:
                    pipeline.end()
                if connection.pgconn.transaction_status in (_Status.INTRANS, _Status.INERROR):
                    undo = Pipeline(connection, self._database.url.patience)
                    undo.send("rollback")
                    undo.end()
            if connection.pgconn.pipeline_status != pq.PipelineStatus.OFF:
                connection.close()
        finally:
            self._database.release(connection)

    def _send_queue(self) -> Pipeline:
        if self._pipeline is None:
            self._connection = self._database.acquire()
            self._database.check_schema(self._connection)
            self._pipeline = Pipeline(
                self._connection, self._database.url.patience, write=self._write
            )
            if self._write:
                self._pipeline.send("begin", has_rows=False)
            if self._database.row_security and self.workspace is not None:
                self._pipeline.send("set_workspace", (self.workspace,), has_rows=False)
            if self._lock:
                self._pipeline.send("lock_workspace", (self.workspace,))
        for query, values in self._queue:
            self._pipeline.send(query, values)
        return self._pipeline

    def _names_workspace(self) -> bool:
        """Begin again with the workspace's name if row-level security was switched on meanwhile."""
        if self._is_answered or self._database.row_security or self.workspace is None:
            return False
        self._database.row_security = True
        self.close()
        return True

    def _is_lost(self, exc: psycopg.Error) -> bool:
        return isinstance(exc, _ENDED) or (
            self._connection is not None and self._connection.pgconn.status == pq.ConnStatus.BAD
        )

    def _discard(self) -> None:
        connection, self._connection, self._pipeline = self._connection, None, None
        if connection is not None:
            connection.close()
            self._database.release(connection)


def _last_change(locked: list[Row]) -> LastChange:
    """Return what the row says that was locked. Raise StoreSealed."""
    if not locked or not locked[0][4]:
        raise StoreSealed(
            "this workspace was archived or deleted during the call; nothing was changed"
        )
    return LastChange(*locked[0][:4])


def store_error(title: str, exc: psycopg.Error) -> StoreError:
    """Return our error for what the driver raised."""
    said = str(exc).strip().partition("\n")[0]
    if isinstance(
        exc, errors.LockNotAvailable | errors.DeadlockDetected | errors.SerializationFailure
    ):
        return StoreBusy(
            f"{title}: the workspace is being written by another process; "
            "nothing was changed, try again"
        )
    if isinstance(exc, errors.QueryCanceled):
        return StoreBusy(
            f"{title} timed out; nothing was changed, try again, or raise `timeout` in the URL"
        )
    if isinstance(exc, errors.DiskFull):
        return StoreFull(
            f"no space left on the disk of {title}; nothing was changed, free some space"
        )
    if isinstance(exc, errors.DataCorrupted | errors.IndexCorrupted):
        return StoreDamaged(f"{title} is damaged: {said}; restore it from a backup")
    if isinstance(exc, PoolTimeout | errors.TooManyConnections):
        return StoreUnavailable(f"{title}: no connection became free in time; try again")
    if isinstance(exc, errors.InvalidAuthorizationSpecification | errors.InsufficientPrivilege):
        return StoreError(
            f"{title} refused the role: {said}; check the URL and the role's privileges"
        )
    if isinstance(exc, CommitLost):
        return ChangeInDoubt(
            f"{title}: connection lost during a commit; check whether the change was saved: {said}"
        )
    if isinstance(exc, psycopg.OperationalError | PoolClosed):
        return StoreUnavailable(
            f"{title} cannot be reached: {said}; nothing was changed, try again"
        )
    return StoreError(f"{title}: {said}")
