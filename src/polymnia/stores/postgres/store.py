"""One workspace of a PostgreSQL database: its snapshots and transactions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from polymnia.errors import ChangeInDoubt, StoreBusy, StoreError, StoreUnavailable
from polymnia.model import PurgeCounts
from polymnia.stores.contract import Capabilities
from polymnia.stores.postgres.connection import QUERIES, CommitLost, apply_settings
from polymnia.stores.postgres.database import Database, WorkspaceConnection
from polymnia.stores.postgres.reader import PostgresReader, PostgresWriter
from polymnia.stores.postgres.rows import run

if TYPE_CHECKING:
    from polymnia.stores.postgres.feed import PostgresChangeFeed
    from polymnia.stores.postgres.tables import PostgresTableWriter
    from polymnia.stores.postgres.vectors import PostgresVectorStore

_MAX_ATTEMPTS = 3
_numbers = count(1)


class PostgresStore:
    """Any number of processes on any number of machines may use the same workspace."""

    best_batch = 8_000
    # A server on the network may take its time.
    short_reads = False

    def __init__(
        self, database: Database, workspace: int, name: str, generation: int, *, read_only: bool
    ) -> None:
        self.workspace = workspace
        self.generation = generation
        self.url = f"{database.url.title}, workspace {name}"
        self.capabilities = Capabilities(
            notes=True,
            match=True,
            vectors=True,
            history=True,
            trash=True,
            change_feed=True,
            tables=True,
        )
        self._database = database
        self._name = f"{database.server.name}/{next(_numbers)}"
        self._read_only = read_only
        self._is_closed = False
        # Writers of this process take turns, so that those who wait hold no connection.
        self._turn = Lock()
        database.share()

    @cached_property
    def vectors(self) -> "PostgresVectorStore":
        from polymnia.stores.postgres.vectors import PostgresVectorStore

        return PostgresVectorStore(self._database, self.workspace, self._writing_rows, self._name)

    @property
    def tables(self) -> "PostgresTableWriter":
        from polymnia.stores.postgres.tables import PostgresTableWriter

        return PostgresTableWriter(self._writing_rows)

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[PostgresReader]:
        with self._database.transaction(self.workspace, once=once) as connection:
            yield PostgresReader(connection, self._database.server)

    @contextmanager
    def writing(self) -> Iterator[PostgresWriter]:
        with self._take_turn(), self._database.transaction(self.workspace, lock=True) as connection:
            writer = PostgresWriter(connection, self._database.server, self._name)
            yield writer
            try:
                if connection.has_written:
                    connection.commit()
            except CommitLost:
                connection.close()  # so that the server releases the lock
                self._settle(connection, writer)

    def follow(self, wake: Callable[[], None] | None = None) -> "PostgresChangeFeed":
        from polymnia.stores.postgres.feed import PostgresChangeFeed

        return PostgresChangeFeed(
            self._database, self.workspace, self._name, wake, read_only=self._read_only
        )

    def purge(self, before: int) -> PurgeCounts:
        from polymnia.stores.postgres.history import PostgresRows
        from polymnia.stores.version_trash import purge

        with self._writing_rows(lock=True) as connection:
            purged = purge(PostgresRows(connection), before)
            connection.write("delete_unused_terms")
        if purged != PurgeCounts():
            self.compact()
        return purged

    def compact(self) -> None:
        """Free the space of deleted rows. It concerns all workspaces of the database."""
        with self._database.connection() as connection:
            connection.execute(QUERIES["without_timeout"])
            try:
                connection.execute(QUERIES["vacuum"])
            finally:
                apply_settings(connection, self._database.url.settings)

    def check(self) -> list[str]:
        with self._database.transaction(self.workspace) as connection:
            counts = run(connection, "count_problems")[0]
        problems = (
            "observations belong to no entity",
            "passages are missing from the words index",
            "rows of the words index belong to no passage",
            "passages too many or too few in the totals of the words index",
            "words too many or too few in the totals of the words index",
        )
        found = [
            f"{number} {problem}"
            for number, problem in zip(counts, problems, strict=True)
            if number
        ]
        return [f"{self.url}: {problem}" for problem in found]

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._database.close()

    @contextmanager
    def _writing_rows(self, *, lock: bool = False) -> Iterator[WorkspaceConnection]:
        """Yield a transaction that is committed at the end."""
        self._require_writable()
        with self._database.transaction(self.workspace, write=True, lock=lock) as connection:
            yield connection
            connection.commit()

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        self._require_writable()
        if not self._turn.acquire(timeout=self._database.url.timeout):
            raise StoreBusy(f"{self.url} is being written; nothing was changed, try again")
        try:
            yield
        finally:
            self._turn.release()

    def _require_writable(self) -> None:
        if self._read_only:
            raise StoreError(f"{self.url} was opened with --read-only; nothing was changed")

    def _settle(self, lost: WorkspaceConnection, writer: PostgresWriter) -> None:
        """Find out whether a commit took place whose answer was lost. Repeat it if it did not.

        The lock tells: once it is ours, the lost transaction has ended. Raise StoreBusy if somebody else changed the
        workspace meanwhile, ChangeInDoubt if nobody can tell.
        """
        for _ in range(_MAX_ATTEMPTS):
            try:
                with self._database.transaction(self.workspace, lock=True) as connection:
                    last = connection.last_change
                    if writer.key is not None and run(
                        connection, "change_keyed", writer.last.id, writer.key
                    ):
                        return
                    if last != writer.last:
                        raise StoreBusy(
                            f"{self.url}: the connection was lost; nothing was changed, try again"
                        )
                    connection.repeat(lost)
                    connection.commit()
                    return
            except StoreUnavailable:
                continue
        raise ChangeInDoubt(
            f"{self.url}: the connection was lost while a change was committed, and cannot be restored; "
            "look whether the change was made before you repeat it"
        )
