"""The presence of a server process in the database.

Others see that it runs, and it hears of their changes.
"""

import logging
import os
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakSet

import psycopg

from polymnia.stores.postgres.connection import QUERIES, PooledConnection

if TYPE_CHECKING:
    from polymnia.stores.postgres.feed import PostgresChangeFeed
    from polymnia.stores.postgres.transaction import WorkspaceConnection

logger = logging.getLogger(__name__)

# How often the thread checks whether it is still needed, and how long it waits to connect again.
_PAUSE_S = 1.0


class ServerPresence:
    """One connection of this process that others can see.

    It holds a lock in the server's name, and it listens. It is made when first needed. A thread
    keeps it, and makes it again when it is lost.
    """

    def __init__(self, connect: Callable[[], PooledConnection] | None) -> None:
        """Without `connect`, as behind a pooler, no server can see whether this one runs.

        Its name then ends in a tilde, and others take it for running until its leases expire.
        """
        self.name = os.urandom(8).hex() + ("~" if connect is None else "")
        self._connect = connect
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_closed = Event()
        self._feeds: WeakSet[PostgresChangeFeed] = WeakSet()

    def acquire(self) -> str:
        """Show that this server runs, and return its name. Raise psycopg.Error."""
        with self._lock:
            if self._thread is None and self._connect is not None:
                connection = self._appear(self._connect)
                self._thread = Thread(
                    target=self._run,
                    args=(self._connect, connection),
                    name="polymnia-presence",
                    daemon=True,
                )
                self._thread.start()
        return self.name

    def is_running(self, connection: "WorkspaceConnection", name: str) -> bool:
        """Return True if the named server runs."""
        if name == self.name or name.endswith("~"):
            return True
        ((is_running,),) = connection.ask("is_server_running", _lock_key(name))
        return bool(is_running)

    @property
    def listens(self) -> bool:
        """True if this process hears of changes without asking."""
        return self._connect is not None

    def wake(self, feed: "PostgresChangeFeed") -> None:
        """Wake the feed when another server changes its workspace. Raise psycopg.Error."""
        self.acquire()
        self._feeds.add(feed)

    def close(self) -> None:
        """Let the thread end the connection."""
        self._is_closed.set()

    def _appear(self, connect: Callable[[], PooledConnection]) -> PooledConnection:
        connection = connect()
        connection.execute(QUERIES["show_server"], [_lock_key(self.name)])
        connection.execute(QUERIES["listen"])
        return connection

    def _run(
        self, connect: Callable[[], PooledConnection], connection: PooledConnection | None
    ) -> None:
        renewed = monotonic()
        while not self._is_closed.is_set():
            try:
                if connection is None:
                    connection = self._appear(connect)
                    self._wake_all()
                for notification in connection.notifies(timeout=_PAUSE_S, stop_after=1):
                    self._wake_all(notification.payload)
                # Writers notify for a while after a follower was last there (`follow_workspace`).
                # It renews that this often.
                if monotonic() > renewed + 20.0:
                    self._renew(connection)
                    renewed = monotonic()
            except psycopg.Error as exc:
                logger.info("the connection that listens for changes was lost: %s", exc)
                if connection is not None:
                    connection.close()
                connection = None
                self._is_closed.wait(_PAUSE_S)
        if connection is not None:
            connection.close()

    def _wake_all(self, workspace: str | None = None) -> None:
        for feed in list(self._feeds):
            if workspace in (None, str(feed.workspace)):
                feed.wake()

    def _renew(self, connection: PooledConnection) -> None:
        for workspace in {feed.workspace for feed in list(self._feeds)}:
            with connection.transaction():
                connection.execute(QUERIES["set_workspace"], [workspace])
                connection.execute(QUERIES["follow_workspace"], [workspace])


def _lock_key(server: str) -> int:
    """Return the advisory lock that stands for a server."""
    return int.from_bytes(bytes.fromhex(server), signed=True)
