"""A replica that answers searches in place of the primary, while it is up to date."""

import logging
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from polymnia.errors import StoreError

if TYPE_CHECKING:
    from polymnia.stores.postgres.database import Database

logger = logging.getLogger(__name__)

# A replica that failed is not asked again for this long.
_RETRY_S = 10.0


class ReadReplica:
    """The connections to a replica. Without it, or while it lags, the primary answers."""

    def __init__(self, make_database: Callable[[], "Database"]) -> None:
        self._make_database = make_database
        self._database: Database | None = None
        self._opening = Lock()
        self._retry_at = 0.0

    def find(self, workspace: int, change: int) -> "Database | None":
        """Return the replica if it has that change of the workspace; else, or if it fails, None."""
        if monotonic() < self._retry_at:
            return None
        try:
            database = self._open()
            with database.transaction(workspace, once=True) as connection:
                rows = connection.ask("last_change")
        except StoreError as exc:
            logger.warning("searching without the replica for %g seconds: %s", _RETRY_S, exc)
            self._retry_at = monotonic() + _RETRY_S
            return None
        # Without a row, the replica does not know the workspace yet.
        return database if rows and rows[0][0] >= change else None

    def lag_s(self) -> float | None:
        """Return how many seconds the replica is behind; None if it cannot be reached."""
        try:
            ((seconds,),) = self._open().ask("replica_lag")
        except StoreError:
            return None
        return float(seconds)

    def close(self) -> None:
        """Close the connections."""
        if self._database is not None:
            self._database.disconnect()

    def _open(self) -> "Database":
        """Return the database, connected. Raise StoreError."""
        with self._opening:
            if self._database is None:
                database = self._make_database()
                database.connect()
                self._database = database
            return self._database
