"""A PostgreSQL database: its pool, and transactions that survive lost connections."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from time import monotonic, sleep
from typing import Any

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from polymnia.errors import (
    ChangeInDoubt,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from polymnia.stores.contract import OpenReaders
from polymnia.stores.postgres.connection import (
    QUERIES,
    CommitLost,
    PooledConnection,
    Row,
    apply_settings,
)
from polymnia.stores.postgres.presence import ServerPresence
from polymnia.stores.postgres.replica import ReadReplica
from polymnia.stores.postgres.schema import read_state
from polymnia.stores.postgres.transaction import WorkspaceConnection
from polymnia.stores.postgres.url import PostgresUrl, parse_url

logger = logging.getLogger(__name__)

_ARGUMENTS: dict[str, Any] = {"autocommit": True, "cursor_factory": psycopg.RawCursor}


# How often a process looks whether a later version has changed the schema.
_SCHEMA_CHECK_S = 5.0


class Database:
    """Connections to one database.

    Stores and catalogues of a process share them, and the last one closes them.
    """

    def __init__(self, url: PostgresUrl) -> None:
        self.url = url
        self.row_security = False
        self.users = 0
        # Behind a pooler, settings, prepared statements and locks end with the transaction.
        self.is_pooled = False
        self.server = ServerPresence(self._connect_apart)
        self.snapshots: OpenReaders[WorkspaceConnection] = OpenReaders()
        self._schema_checked_at = monotonic()
        self._lock = Lock()
        self._in_use = 0  # connections that calls hold
        # The last changes that this process made, by workspace: a replica may not have them yet.
        self.written: dict[int, int] = {}
        replica = url.replica_url
        self.replica = ReadReplica(partial(Database, replica)) if replica else None
        # The pool gives up a connection that cannot be made after this time.
        # The next call begins again at once.
        self._pool: ConnectionPool[PooledConnection] = ConnectionPool(
            url.conninfo,
            connection_class=PooledConnection,
            kwargs=_ARGUMENTS,
            configure=self._configure,
            min_size=1,
            max_size=max(url.connections, 1),
            timeout=url.timeout,
            reconnect_timeout=min(url.timeout, 1.0),
            num_workers=1,
            open=False,
        )

    @contextmanager
    def connection(self) -> Iterator[PooledConnection]:
        """Yield a connection for single statements. Behind a pooler it has no settings.

        Raise StoreError.
        """
        try:
            connection = self.acquire()
            try:
                yield connection
            finally:
                self.release(connection)
        except psycopg.Error as exc:
            raise store_error(self.url.title, exc) from exc

    @contextmanager
    def schema_transaction(self, *, read_only: bool) -> Iterator[PooledConnection]:
        """Yield a connection in a transaction on the schema. Raise StoreError."""
        with self.connection() as connection:
            connection.execute(QUERIES["begin_reading" if read_only else "begin"])
            try:
                if self.is_pooled:
                    apply_settings(connection, self.url.settings, local=True)
                yield connection
                connection.commit()
            except BaseException:
                with suppress(psycopg.Error):
                    connection.rollback()
                raise

    @contextmanager
    def transaction(
        self,
        workspace: int | None = None,
        *,
        write: bool = False,
        lock: bool = False,
        once: bool = False,
    ) -> Iterator[WorkspaceConnection]:
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

    @contextmanager
    def reading(self, workspace: int) -> Iterator[WorkspaceConnection]:
        """Yield a snapshot of a workspace. Raise StoreError.

        Inside a reading of another workspace in this thread it is the same snapshot.
        """
        snapshot = self.snapshots.last
        if snapshot is not None:
            yield snapshot.join(workspace)
            return
        with self.transaction(workspace) as connection, self.snapshots.hold(connection):
            yield connection

    def ask(self, query: str, *values: object) -> list[Row]:
        """Return the rows of a named query on the catalogue, in one round trip.

        Raise StoreError.
        """
        with self.transaction(once=True) as connection:
            return connection.ask(query, *values)

    def acquire(self) -> PooledConnection:
        """Return a connection from the pool. Raise psycopg.Error.

        If others hold all connections, wait for them. If the server refuses connections, do not.
        """
        deadline = monotonic() + self.url.timeout
        while True:
            try:
                # A call that waits this long for a connection asks whether the server accepts any.
                connection = self._pool.getconn(timeout=min(self.url.timeout, 1.0))
            except PoolTimeout:
                if not self._in_use:
                    psycopg.connect(self.url.conninfo).close()
                if monotonic() > deadline:
                    raise
            else:
                with self._lock:
                    self._in_use += 1
                return connection

    def release(self, connection: PooledConnection) -> None:
        """Return a connection to the pool, which replaces it if it is broken."""
        with self._lock:
            self._in_use -= 1
        self._pool.putconn(connection)

    def check_schema(self, connection: PooledConnection) -> None:
        """Raise StoreTooNew if a later version changed the schema beyond what this one can use."""
        now = monotonic()
        if now > self._schema_checked_at + _SCHEMA_CHECK_S:
            read_state(connection).require_usable(self.url.title)
            self._schema_checked_at = now

    def replace_broken(self) -> None:
        """Let the pool replace idle connections that no longer work, as after a restart."""
        self._pool.check()

    def gauges(self) -> dict[str, float]:
        """Return what monitoring wants to know of the pool and the server. Raise StoreError."""
        ((size, lock_waits),) = self.ask("gauges")
        pool = self._pool.get_stats()
        gauges = {
            "store_bytes": float(size),
            "database_lock_waits": float(lock_waits),
            "database_connections_used": float(self._in_use),
            "database_connections_max": float(self._pool.max_size),
            "database_requests_waiting": float(pool.get("requests_waiting", 0)),
        }
        if self.replica is not None:
            lag = self.replica.lag_s()
            gauges["replica_up"] = float(lag is not None)
            if lag is not None:
                gauges["replica_lag_seconds"] = lag
        return gauges

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
                ((backend,),) = connection.execute(QUERIES["backend"]).fetchall()
                self.is_pooled = backend != connection.info.backend_pid
            if self.is_pooled and not self.url.direct:
                self.server = ServerPresence(None)
            self._pool.open(wait=True, timeout=self.url.timeout)
        except psycopg.Error as exc:
            self._pool.close()
            raise store_error(self.url.title, exc) from exc

    @contextmanager
    def maintenance(self, settings: Mapping[str, str]) -> Iterator[PooledConnection]:
        """Yield a connection of its own, without time limits and our settings. Raise StoreError."""
        own = {"search_path": "polymnia,public", "statement_timeout": "0"}
        try:
            with self._connect_apart({**own, **settings}) as connection:
                yield connection
        except psycopg.Error as exc:
            raise store_error(self.url.title, exc) from exc

    def _connect_apart(self, settings: Mapping[str, str] | None = None) -> PooledConnection:
        """Return a connection that is not in the pool."""
        connection = PooledConnection.connect(self.url.direct_conninfo, **_ARGUMENTS)
        apply_settings(connection, settings or self.url.settings)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    def _configure(self, connection: PooledConnection) -> None:
        if self.is_pooled:
            connection.prepare_threshold = None
            return
        connection.prepare_threshold = 0
        connection.prepared_max = 10_000  # more than there are
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
            # How long a starting server waits before it tries to connect again.
            sleep(1.0)
        else:
            return


def _key(url: PostgresUrl) -> Row:
    """Return what URLs have in common that share their connections."""
    return url.conninfo, url.timeout, url.connections, url.replica, url.direct


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
