"""One workspace of a PostgreSQL database: its snapshots and transactions."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from psycopg.errors import Diagnostic, InsufficientPrivilege

from polymnia.errors import ChangeInDoubt, StoreBusy, StoreError, StoreUnavailable
from polymnia.model import Counts
from polymnia.stores.contract import Capabilities, ChangeFeed, OpenReaders, TableRow
from polymnia.stores.postgres.connection import QUERIES, CommitLost, apply_settings
from polymnia.stores.postgres.database import Database
from polymnia.stores.postgres.port import PostgresPort
from polymnia.stores.postgres.transaction import WorkspaceConnection
from polymnia.stores.versioned.reader import VersionReader, VersionWriter

if TYPE_CHECKING:
    from polymnia.stores.postgres.vector_index import NearVectors
    from polymnia.stores.versioned.vectors import VectorStore

logger = logging.getLogger(__name__)

_numbers = count(1)


class PostgresStore:
    """Any number of processes on any number of machines may use the same workspace."""

    best_batch = 8_000

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
            keeps_deleted=True,
        )
        self._database = database
        self._name = f"{database.server.name}/{next(_numbers)}"
        self._read_only = read_only
        self._is_closed = False
        # Writers of this process take turns, so that those who wait hold no connection.
        self._turn = Lock()
        self._readers: OpenReaders[VersionReader] = OpenReaders()
        self._rows_written = 0
        # After this many rows the planner's statistics are updated; then after twice as many, and
        # so on.
        self.analyze_after = 1_000
        database.share()

    @cached_property
    def vectors(self) -> "VectorStore":
        from polymnia.stores.versioned.vectors import VectorStore

        return VectorStore(self._transaction, self._name, self.vector_indexes)

    @cached_property
    def vector_indexes(self) -> "NearVectors":
        """The HNSW indexes of the workspace."""
        from polymnia.stores.postgres.vector_index import NearVectors

        return NearVectors(self._database, self.workspace)

    @contextmanager
    def reading(self, *, may_lag: bool = False) -> Iterator[VersionReader]:
        open_reader = self._readers.last
        if open_reader is not None:
            yield open_reader
            return
        database = self._database
        if may_lag and database.replica is not None:
            own_change = database.written.get(self.workspace, 0)
            database = database.replica.find(self.workspace, own_change) or database
        with (
            database.reading(self.workspace) as connection,
            self._readers.hold(VersionReader(self._port(connection))) as reader,
        ):
            yield reader

    @contextmanager
    def writing(self) -> Iterator[VersionWriter]:
        self._forget_readers()
        with self._take_turn(), self._database.transaction(self.workspace, lock=True) as connection:
            port = self._port(connection)
            yield VersionWriter(port)
            try:
                if connection.has_written:
                    connection.commit()
            except CommitLost:
                connection.close()  # so that the server releases the lock
                self._settle(port)
            if port.change is not None:
                self._database.written[self.workspace] = port.change
        self._after_writing(port.rows_written)

    def write_rows(self, table: str, rows: Sequence[TableRow]) -> None:
        from polymnia.stores.versioned.tables import write_rows

        with self._transaction() as port:
            write_rows(port, table, rows)
        self._after_writing(port.rows_written)

    def follow(self, wake: Callable[[], None] | None = None) -> ChangeFeed:
        from polymnia.stores.postgres.feed import PostgresChangeFeed

        return PostgresChangeFeed(
            self._database, self.workspace, self._name, wake, read_only=self._read_only
        ).read

    def record_reads(
        self, facts: Collection[tuple[str, int]], *, at: int, actor: str, tool: str, since: int
    ) -> None:
        with self._transaction() as port:
            port.write_rows("insert_read", facts, at, actor, tool)
            port.write("forget_reads", since)

    def purge(self, before: int | None) -> Counts:
        from polymnia.stores.versioned.trash import purge

        with self._transaction(lock=True) as port:
            purged = purge(port, before)
            port.write("forget_counts")
            port.write("keep_counts")
            port.write("delete_unused_terms")
        if purged != Counts():
            try:
                self.compact()
            except StoreError as exc:  # the rows are gone; autovacuum frees the space later
                logger.warning("cannot free the space of purged rows: %s", exc)
        return purged

    def remove_copies(self) -> None:
        """Do nothing: a role that may write need not be allowed to VACUUM."""

    def compact(self) -> None:
        """Free the space of deleted rows. It concerns all workspaces of the database."""
        with self._database.connection() as connection:
            is_pooled = self._database.is_pooled
            if not is_pooled:
                apply_settings(connection, {"statement_timeout": "0"})
            refused: list[str] = []

            def notice(said: Diagnostic) -> None:
                if said.sqlstate == InsufficientPrivilege.sqlstate:
                    refused.append(said.message_primary or "")

            connection.add_notice_handler(notice)
            try:
                connection.execute(QUERIES["vacuum"], prepare=False)
            finally:
                connection.remove_notice_handler(notice)
                if not is_pooled:
                    apply_settings(connection, self._database.url.settings)
        if refused:  # VACUUM leaves out what it may not do, and succeeds
            raise StoreError(
                f"{self.url}: this role may not VACUUM, so the space of deleted rows stays until "
                "autovacuum frees it: as the owner run `GRANT MAINTAIN ON ALL TABLES IN SCHEMA "
                "polymnia` to it (PostgreSQL 17), or VACUUM there"
            )

    def check(self) -> list[str]:
        with self._database.transaction(self.workspace) as connection:
            counts = connection.ask("count_problems")[0]
        problems = (
            "facts belong to no entity",
            "passages are missing from the words index",
            "rows of the words index belong to no passage",
            "passages too many or too few in the totals of the words index",
            "words too many or too few in the totals of the words index",
            "vectors have a wrong length; `polymnia index` makes them anew",
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

    def _port(self, connection: WorkspaceConnection) -> PostgresPort:
        return PostgresPort(connection, self._database.server, self._name)

    @contextmanager
    def _transaction(self, *, lock: bool = False) -> Iterator[PostgresPort]:
        """Yield a transaction that is committed at the end."""
        self._require_writable()
        self._forget_readers()
        with self._database.transaction(self.workspace, write=True, lock=lock) as connection:
            yield self._port(connection)
            connection.commit()

    def _forget_readers(self) -> None:
        """Let the next reading of this thread open a new snapshot, because it writes."""
        self._readers.forget()
        self._database.snapshots.forget()

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        self._require_writable()
        if not self._turn.acquire(timeout=self._database.url.timeout):
            raise StoreBusy(f"{self.url} is being written; nothing was changed, try again")
        try:
            yield
        finally:
            self._turn.release()

    def _after_writing(self, rows: int) -> None:
        """Update the statistics of the planner after many rows: autovacuum takes minutes.

        That also makes every connection give up its plans, which may be for small tables.
        """
        self._rows_written += rows
        if self._rows_written < self.analyze_after:
            return
        self._rows_written = 0
        self.analyze_after *= 2
        try:
            with self._database.connection() as connection:
                connection.execute(QUERIES["analyze_tables"])
        except StoreError as exc:
            # The write itself has succeeded, and queries find their indexes without statistics.
            logger.warning("cannot update the statistics: %s", exc)

    def _require_writable(self) -> None:
        if self._read_only:
            raise StoreError(f"{self.url} was opened with --read-only; nothing was changed")

    def _settle(self, lost: PostgresPort) -> None:
        """Find out whether a commit took place whose answer was lost. Repeat it if it did not.

        The lock tells: once it is ours, the lost transaction has ended. Raise StoreBusy if another
        server changed the workspace meanwhile, ChangeInDoubt if the outcome is unknown.
        """
        deadline = monotonic() + self._database.url.timeout
        while True:
            try:
                with self._database.transaction(self.workspace, lock=True) as connection:
                    before = lost.last_change()
                    key = lost.key
                    if key is not None and connection.ask("change_keyed", before.id, key):
                        return
                    if connection.last_change() != before:
                        raise StoreBusy(
                            f"{self.url}: the connection was lost; nothing was changed, try again"
                        )
                    connection.repeat(lost.connection)
                    connection.commit()
                    return
            except StoreUnavailable as exc:
                # Other calls fail at once while the server refuses connections. This one waits,
                # because no other process can find out.
                if monotonic() < deadline:
                    continue
                raise ChangeInDoubt(
                    f"{self.url}: the connection was lost while a change was committed, "
                    "and cannot be restored; "
                    "check whether the change was saved before you repeat it"
                ) from exc
