"""A bare durable SQLite commit: the least that a write can cost."""

from pathlib import Path
from time import perf_counter

import apsw


class CommitProbe:
    """A database of one row, updated durably on each sample."""

    def __init__(self, folder: Path) -> None:
        self._connection = apsw.Connection(str(folder / "commit.db"))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute("CREATE TABLE tally (value INTEGER NOT NULL)")
        self._connection.execute("INSERT INTO tally VALUES (0)")

    def sample(self) -> float:
        """Return the seconds of one commit."""
        execute = self._connection.execute
        began = perf_counter()
        execute("BEGIN IMMEDIATE")
        execute("UPDATE tally SET value = value + 1")
        execute("COMMIT")
        return perf_counter() - began

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
