"""The changes that other servers make, read by id.

They are read without delay when the database notifies this process.
"""

from collections.abc import Callable
from threading import Event
from time import monotonic

from polymnia.model import Change
from polymnia.stores.postgres.database import Database
from polymnia.stores.postgres.port import PostgresPort
from polymnia.stores.versioned.history import changes_by_server

# Changes read at once, so that a large import elsewhere arrives in steps.
MAX_FEED_CHANGES = 100


class PostgresChangeFeed:
    """The changes that other servers make to one workspace."""

    def __init__(
        self,
        database: Database,
        workspace: int,
        name: str,
        listener: Callable[[], None] | None,
        *,
        read_only: bool = False,
    ) -> None:
        """Follow from now on what others than the store of that name change. Raise StoreError.

        With `read_only`, ask no server to notify: that writes a row, and a replica cannot listen.
        """
        self.workspace = workspace
        self._database = database
        self._name = name
        self._listener = listener
        self._is_awake = Event()
        self._next_poll = 0.0
        if database.server.listens and not read_only:
            with database.transaction(workspace, write=True) as connection:
                database.server.wake(self)
                connection.write("follow_workspace")
                connection.commit()
        with database.transaction(workspace) as connection:
            self._since: int = connection.ask("last_change")[0][0]

    def wake(self) -> None:
        """Let the next call read, and wake the thread that makes it."""
        self._is_awake.set()
        if self._listener is not None:
            self._listener()

    def read(self) -> list[Change]:
        if not self._is_awake.is_set() and monotonic() < self._next_poll:
            return []
        self._is_awake.clear()
        # A notification is only a hint: without one, a feed is read this often.
        self._next_poll = monotonic() + 2.0
        with self._database.transaction(self.workspace) as connection:
            found = changes_by_server(
                PostgresPort(connection, self._database.server), self._since, MAX_FEED_CHANGES
            )
        if found:
            self._since = found[-1][1].id
        if len(found) == MAX_FEED_CHANGES:
            self._is_awake.set()
        return [change for server, change in found if server != self._name]
