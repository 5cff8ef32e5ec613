"""A workspace in one SQLite file: its connections, snapshots and transactions."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import apsw

from polymnia.disk.files import make_parent
from polymnia.disk.lock import ServerLock, file_lock, find_other_name
from polymnia.errors import StoreBusy, StoreError
from polymnia.model import VAULT, Change, Counts
from polymnia.stores.contract import Capabilities, ChangeFeed, OpenReaders, TableRow, is_cancelled
from polymnia.stores.sqlite.commit import GroupCommit
from polymnia.stores.sqlite.connection import (
    DRIVER_ERRORS,
    QUERIES,
    ReaderPool,
    connect,
    map_errors,
    read_error,
    run,
)
from polymnia.stores.sqlite.lineage import FileWatch, set_aside_foreign_log
from polymnia.stores.sqlite.port import SqlitePort
from polymnia.stores.sqlite.schema import migrate, refuse_foreign, require_schema
from polymnia.stores.sqlite.search import define_functions
from polymnia.stores.sqlite.vectors import VectorIndexes
from polymnia.stores.versioned.reader import VersionReader, VersionWriter
from polymnia.stores.versioned.vectors import VectorStore

# Pages per step of a full merge of the text indexes.
_MERGE_PAGES = 200


class SqliteStore:
    """One writing connection with group commit, and a reading connection per concurrent read."""

    best_batch = 16_000

    def __init__(
        self,
        path: str,
        *,
        create: bool = True,
        read_only: bool = False,
        allow_archived: bool = False,
        moved_under: str | None = None,
    ) -> None:
        """Open the file. Those who move it hold the lock of the file `moved_under`."""
        self.url = path
        self._path = path
        self._moved_under = moved_under
        self._in_memory = path == ":memory:"
        self._read_only = read_only and not self._in_memory
        self.capabilities = Capabilities(
            notes=True,
            match=True,
            vectors=True,
            history=True,
            trash=True,
            change_feed=not self._in_memory,
            tables=True,
        )
        if create and not (self._in_memory or self._read_only):
            make_parent(Path(path))
        self._map_errors = map_errors(path)

        def inspect(connection: apsw.Connection) -> None:
            """Look at the file before anything is changed, and before its log is used."""
            if not self._in_memory:
                set_aside_foreign_log(path, connection, read_only=self._read_only)
            refuse_foreign(path, connection, allow_archived=allow_archived)

        self._writer = connect(path, inspect, create=create, read_only=self._read_only)
        with self._map_errors:
            if self._read_only:
                require_schema(path, self._writer)
            else:
                migrate(path, self._writer)
            define_functions(self._writer)
            self._watch = None
            if not self._in_memory:
                self._watch = FileWatch(path, self._writer, read_only=self._read_only)
            self._commit = GroupCommit(path, self._writer, self._watch)
        self._is_closed = False
        self._readers: OpenReaders[VersionReader] = OpenReaders()
        self._pool = ReaderPool(path, self._connect, read_only=self._read_only)
        self._server = ServerLock(None if self._in_memory else path)
        self._indexes: VectorIndexes = {}
        self.vectors = VectorStore(self._transaction, self._server.name)

    @contextmanager
    def reading(self, *, may_lag: bool = False) -> Iterator[VersionReader]:
        if self._readers.last is not None:
            yield self._readers.last
            return
        if self._in_memory:
            with self.writing() as writer, self._readers.hold(writer):
                yield writer
            return
        try:
            with (
                self._snapshot() as connection,
                self._readers.hold(VersionReader(self._port(connection))) as reader,
            ):
                yield reader
        except DRIVER_ERRORS as exc:
            raise read_error(self._path, exc) from exc

    @contextmanager
    def writing(self) -> Iterator[VersionWriter]:
        with self._transaction() as port:
            yield VersionWriter(port)

    def write_rows(self, table: str, rows: Sequence[TableRow]) -> None:
        from polymnia.stores.versioned.tables import write_rows

        with self._transaction() as port:
            write_rows(port, table, rows)

    def follow(self, wake: Callable[[], None] | None = None) -> ChangeFeed:
        with self._map_errors, self._snapshot() as connection:
            since = self._port(connection).last_change().id

        def read_changes() -> list[Change]:
            from polymnia.stores.versioned.history import changes_by_server

            nonlocal since
            with self._map_errors, self._snapshot() as connection:
                # Changes that a feed returns at once: a large import elsewhere arrives in steps.
                changes = changes_by_server(self._port(connection), since, 100)
            if changes:
                since = changes[-1][1].id
            return [change for server, change in changes if server != self._server.name]

        return read_changes

    def record_reads(
        self, facts: Collection[tuple[str, int]], *, at: int, actor: str, tool: str, since: int
    ) -> None:
        with self._transaction() as port:
            port.write_rows("insert_read", facts, at, actor, tool)
            port.write("forget_reads", since)

    def purge(self, before: int | None) -> Counts:
        from polymnia.stores.versioned.trash import purge

        with self._transaction() as port:
            purged = purge(port, before)
            if purged != Counts():
                port.write("request_rewrite")
        self.remove_copies()
        return purged

    def remove_copies(self) -> None:
        # A rewrite that was interrupted or could not finish is still due.
        if not self._rewrite_is_due():
            return
        try:
            self.compact()
        except StoreBusy:
            raise
        except StoreError as exc:
            # The rows are gone, so the usual "nothing was changed" would be wrong.
            raise StoreError(
                f"the rows are deleted, but deleted text may be left in {self._path}: "
                "it could not be written anew; free twice its size on the disk and purge again"
            ) from exc

    def compact(self) -> None:
        """Merge the text indexes and write the file anew, so that no deleted text is left in it.

        It needs free space of twice the size of the file. Other writers wait; readers do not.
        Raise StoreBusy if readers kept the old pages from being replaced.
        """
        # Until a full merge is complete, the words of deleted rows remain in old segments. Between
        # its steps other writers get their turn.
        is_merging = self._merge_indexes(-_MERGE_PAGES)
        while is_merging:
            is_merging = self._merge_indexes(_MERGE_PAGES)
        if self._in_memory:
            return
        self._commit.rewrite_file(QUERIES["rewrite"])
        with self._map_errors, self._pool.connection() as connection:
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise StoreBusy(
                f"deleted text may be left in {self._path} and its write-ahead log: "
                "others are reading them; run this again when they are idle"
            )
        if self._rewrite_is_due():
            with self._transaction() as port:
                port.write("end_rewrite")

    def check(self) -> list[str]:
        # On a new connection: one that searched before the index was merged compares it with cached
        # segments and reports damage where there is none.
        with (
            self._map_errors,
            nullcontext(self._writer)
            if self._in_memory
            else closing(self._connect(self._path)) as connection,
        ):
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
            reader = VersionReader(self._port(connection))
            everything: list[Callable[[], object]] = [
                reader.entities,
                reader.relations,
                partial(reader.notes.notes, VAULT),
            ]
            for read in everything:  # the integrity check does not check texts
                try:
                    read()
                except DRIVER_ERRORS as exc:
                    found.append(f"not everything can be read ({exc})")
            ((orphans,),) = run(connection, "count_orphans")
            ((missing, stray),) = run(connection, "count_unindexed")
            ((broken,),) = run(connection, "count_broken_vectors")
            problems = (
                (orphans, "facts belong to no entity"),
                (missing, "passages are missing from the words index"),
                (stray, "rows of the words index belong to no passage"),
                (broken, "vectors have a wrong length; `polymnia index` makes them anew"),
            )
            found += [f"{count} {problem}" for count, problem in problems if count]
        if not self._in_memory:
            found.append(find_other_name(Path(self._path)) or "ok")
        return [f"{self._path}: {problem}" for problem in found if problem != "ok"]

    def close(self) -> None:
        if self._is_closed or self._moved_under is None:
            self._close()
            return
        try:
            # The file is not moved between the look at its path and the last use of its log.
            with file_lock(Path(self._moved_under), timeout=0):
                if not self.is_in_place():
                    self._keep_log()
                self._close()
        except (StoreBusy, OSError):
            self._keep_log()
            self._close()

    def _close(self) -> None:
        if not self._is_closed and not self._commit.may_checkpoint():
            self._keep_log()
        self._is_closed = True
        self._pool.close()
        self._commit.close()
        self._server.close()

    def is_in_place(self) -> bool:
        """Return True while the file that was opened is the one at its path."""
        return self._watch is None or self._watch.is_in_place()

    def _keep_log(self) -> None:
        """Leave the log as it is when the connections close; those that read always leave it."""
        self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _port(self, connection: apsw.Connection) -> SqlitePort:
        return SqlitePort(connection, self._server, self._indexes)

    @contextmanager
    def _transaction(self) -> Iterator[SqlitePort]:
        self._readers.forget()
        with self._commit.transaction() as connection:
            yield self._port(connection)

    def _merge_indexes(self, pages: int) -> bool:
        """Merge some pages of the text indexes; return True while there is more to do."""
        is_merging = pages < 0  # the first step starts a merge
        with self._commit.transaction() as connection:
            for query in ("merge_words", "merge_trigrams"):
                before = connection.total_changes()
                run(connection, query, pages)
                # One change is the command itself.
                is_merging = is_merging or connection.total_changes() - before > 1
        return is_merging

    def _rewrite_is_due(self) -> bool:
        if self._in_memory:
            return False
        with self._map_errors, self._snapshot() as connection:
            ((is_due,),) = run(connection, "rewrite_is_due")
        return bool(is_due)

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        """Yield a reading connection inside a transaction on the file at its path."""
        if self._watch is not None and not self._watch.is_unchanged():
            self._commit.require_in_place()
        connection, state = self._pool.take()
        try:
            connection.execute("BEGIN")
            try:
                # This read also starts the snapshot.
                self._commit.require_schema(connection.pragma("user_version"))
                yield connection
            finally:
                connection.execute("COMMIT")
        finally:
            self._pool.give_back(connection, state)

    def _connect(self, path: str) -> apsw.Connection:
        connection = connect(path, create=False, read_only=self._read_only)
        # The writing connection brings the log into the file.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        define_functions(connection)
        # SQLite asks whether to continue after so many steps: less than a millisecond.
        connection.set_progress_handler(is_cancelled, 2_000)
        return connection
