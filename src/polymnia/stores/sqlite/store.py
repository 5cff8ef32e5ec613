"""A workspace in one SQLite file: connections, the schema, and the store contract over them."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import apsw
from msgspec import json

from polymnia.disk.replace import make_parent
from polymnia.errors import StoreBusy, StoreError, StoreForeign, StoreSealed, StoreTooNew
from polymnia.model import VAULT, Change, Graph, PurgeCounts, Rows
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite.commit import CommitLane
from polymnia.stores.sqlite.connection import BUSY_WAIT, FAILURES, OURS, SEALED, connect, ours, translated
from polymnia.stores.sqlite.elsewhere import Elsewhere, Follow
from polymnia.stores.sqlite.graph import SqliteGraph, look_up
from polymnia.stores.sqlite.indexing import index_now, index_waiting, waiting
from polymnia.stores.sqlite.layout import run
from polymnia.stores.sqlite.replica import Replica
from polymnia.stores.sqlite.trash import purge
from polymnia.stores.sqlite.vectors import SqliteVectors
from polymnia.stores.sqlite.words import define_functions

if TYPE_CHECKING:
    from polymnia.stores.sqlite.notes import NoteKeeping, SqliteNotes

logger = logging.getLogger(__name__)

IN_MEMORY = ":memory:"
# Some milliseconds' worth: a request that comes meanwhile waits no longer.
_PAGES_PER_TIDY = 100
# How long a search waits for another process, in milliseconds, to index what waits.
_SEARCH_WAIT = 1_000


class SqliteStore:
    """One writing connection behind a commit lane, and as many reading ones as are read from at once."""

    best_batch = 1000
    short_reads = True

    def __init__(self, path: str, *, create: bool = True, read_only: bool = False) -> None:
        self.url = path
        self._path = path
        self._alone = path == IN_MEMORY
        self._open = True
        self._read_only = read_only and not self._alone
        if create and not (self._alone or self._read_only):
            make_parent(Path(path))
        self._writer = connect(path, partial(_refuse_strangers, path), create=create, read_only=self._read_only)
        self._replica = Replica(path, self.reading, read_only=self._read_only)
        self._lane = CommitLane(path, self._writer, self._replica)
        self._translated = translated(path)
        self._idle: list[apsw.Connection] = []
        self._elsewhere = Elsewhere()
        self._starting = Lock()
        self._keeping: NoteKeeping | None = None
        # In memory there is but one connection, and a search needs a second one for vectors.
        self.vectors = None if self._alone else SqliteVectors(self._own_reader, self._lane.transaction)
        with self._translated:
            (require_schema if self._read_only else migrate)(path, self._writer)

    @contextmanager
    def reading(self) -> Iterator[SqliteGraph]:
        if self._alone:
            with self.writing() as writer:
                yield writer
            return
        self._lane.refuse_another_file()
        with self._translated, self._reader() as connection:
            connection.execute("BEGIN")
            try:
                yield SqliteGraph(connection, self._notes, self._see_all_indexed)
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[SqliteGraph]:
        changes: list[Change] = []
        number = 0
        try:
            with self._lane.transaction(changes) as connection:
                yield SqliteGraph(connection, self._notes, index_now, changes)
                if changes:
                    number = run(connection, "last_change")[0][0]
                    self._elsewhere.begin(number)
        except BaseException:
            self._elsewhere.end(number, kept=False)
            raise
        self._elsewhere.end(number, kept=True)

    def look_up(self, name: str) -> Graph:
        if self._alone:
            with self._lane.transaction() as connection:
                return look_up(connection, name)
        if (known := self._replica.look_up(name)) is not None:
            return known
        # Still a common read: what `with self._translated, self._reader()` does, in fewer steps.
        connection = self._take()
        try:
            found = look_up(connection, name)
        except FAILURES as exc:
            raise ours(self._path, exc) from exc
        finally:
            self._idle.append(connection)
        self._replica.missed()
        return found

    def changes(self, since: int = 0, limit: int = -1) -> list[Change]:
        """The change log after that id, oldest first."""
        with self._translated, self._reader() as connection:
            rows = run(connection, "changes_since", since, limit)
        return [_change(*row) for row in rows]

    def follow(self) -> Follow:
        """What gives the changes that other processes make from now on."""
        with self._translated, self._reader() as connection:
            since: int = run(connection, "last_change")[0][0]
        return self._elsewhere.follow(since, self.changes)

    def check(self) -> list[str]:
        # On a connection of its own: one that has searched before the index was merged checks it against its memory
        # of the old segments and finds damage where there is none.
        connection = self._another()
        with self._translated, closing(connection) if not self._alone else nullcontext():
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
            graph = SqliteGraph(connection, self._notes, index_now)
            readings: tuple[Callable[[], object], ...] = (
                graph.entities,
                graph.relations,
                partial(graph.notes.page, VAULT, 0, None),
            )
            found += [each for each in map(_failure, readings) if each]
            ((orphans,),) = run(connection, "count_orphans")
            if orphans:
                found.append(f"{orphans} observations belong to no entity")
            ((missing, stray),) = run(connection, "count_lost_notes")
            if missing:
                found.append(f"{missing} notes are missing in the words index")
            if stray:
                found.append(f"{stray} rows of the words index belong to no note")
        return [f"{self._path}: {problem}" for problem in found if problem != "ok"]

    def tidy(self) -> bool:
        return not self._read_only and self._merge(wait=0)

    def compact(self) -> None:
        """Merge the text indexes whole and empty the write-ahead log; deleted rows stay, as the history they are."""
        while self._merge(wait=BUSY_WAIT):
            continue
        if not self._alone:
            with self._translated, self._reader() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def purge(self, before: int) -> PurgeCounts:
        """The file is written anew and the log emptied: pages that were given up before still have what was on them."""
        with self._lane.transaction() as connection:
            gone = purge(connection, before)
        if gone != PurgeCounts() and not self._alone:
            self._write_anew()
        self.compact()
        return gone

    def _write_anew(self) -> None:
        try:
            with self._translated, closing(self._another()) as connection:
                connection.execute("VACUUM")
        except StoreBusy as exc:
            raise StoreBusy(
                f"what was purged is gone from every table, but {self._path} could not be written anew while others "
                "write to it: traces may be left in unused pages until the next purge"
            ) from exc

    def close(self) -> None:
        if self._open and not (self._alone or self._read_only):
            self._leave_nothing_waiting()
        self._close()

    def _close(self) -> None:
        self._open = False
        self._replica.close()
        while self._idle:
            self._idle.pop().close()  # a connection may be closed twice
        self._writer.close()
        if self._keeping is not None:
            self._keeping.presence.close()

    def _notes(self, connection: apsw.Connection) -> "SqliteNotes":
        from polymnia.stores.sqlite.notes import NoteKeeping, SqliteNotes  # few servers keep notes

        with self._starting:
            if self._keeping is None:
                self._keeping = NoteKeeping(None if self._alone else self._path)
        return SqliteNotes(connection, self._keeping)

    @property
    def in_place(self) -> bool:
        """Whether the file that was opened is still the one at its path."""
        return self._lane.in_place

    def leave(self) -> None:
        """Close without touching the write-ahead log: the one at its path may be another file's by now."""
        for connection in (*self._replica.connections, *self._idle, self._writer):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._close()

    def _see_all_indexed(self, connection: apsw.Connection) -> None:
        """Begin a reader's transaction anew, at a moment when nothing waits to be indexed.

        Where nothing can be written, what is indexed is searched: the rest is found by its characters alone.
        """
        while not self._read_only and waiting(connection):
            connection.execute("COMMIT")
            try:
                indexed = self._index_waiting(wait=_SEARCH_WAIT)
            finally:
                connection.execute("BEGIN")
            if not indexed:
                return

    def _leave_nothing_waiting(self) -> None:
        """For those who may only read the file; a process that writes just now will see to it itself."""
        with suppress(StoreError), self._translated:
            if waiting(self._writer):
                self._index_waiting(wait=0)

    def _index_waiting(self, *, wait: int) -> bool:
        try:
            with self._lane.transaction(wait=wait) as connection:
                index_waiting(connection)
        except StoreError as exc:
            logger.info("not everything is indexed: %s", exc)
            return False
        return True

    def _merge(self, *, wait: int) -> bool:
        """Index what waits and join the segments that every search looks into; True while there are more."""
        with self._lane.transaction(wait=wait) as connection:
            index_waiting(connection)
            more = [_merged(connection, command) for command in ("merge_trigrams", "merge_words")]
            return True in more

    @contextmanager
    def _own_reader(self) -> Iterator[apsw.Connection]:
        with self._translated, self._reader() as connection:
            yield connection

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        """A reading connection for the length of the block: an idle one, or a new one when all are in use."""
        connection = self._take()
        try:
            yield connection
        finally:
            self._idle.append(connection)

    def _take(self) -> apsw.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._another()

    def _another(self) -> apsw.Connection:
        return self._writer if self._alone else connect(self._path, create=False, read_only=self._read_only)


def _merged(connection: apsw.Connection, command: str) -> bool:
    before = connection.total_changes()
    run(connection, command, _PAGES_PER_TIDY)
    return connection.total_changes() - before > 1  # one change is the command itself


def migrate(path: str, connection: apsw.Connection) -> None:
    """Bring the file to the newest schema, each step recorded with what it did. Raises StoreTooNew."""
    migrations = load_migrations(Path(__file__).parent)
    newest = migrations[-1][0]
    if _version(connection) == newest:
        return
    define_functions(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > newest:
            raise StoreTooNew(f"{path} has schema {version}, this version knows up to {newest}; upgrade polymnia")
        _refuse_strangers(path, connection)
        for number, statements in migrations:
            if number > version:
                _step(connection, number, statements)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_schema(path: str, connection: apsw.Connection) -> None:
    """Raises StoreError for a file that would have to be changed before it can be read."""
    newest = load_migrations(Path(__file__).parent)[-1][0]
    version = _version(connection)
    if version > newest:
        raise StoreTooNew(f"{path} has schema {version}, this version knows up to {newest}; upgrade polymnia")
    if version < newest:
        raise StoreError(f"{path} has schema {version} and must be brought to {newest}; start it without --read-only")


def _failure(reading: Callable[[], object]) -> str | None:
    """Why not everything can be read: the integrity check does not look into texts."""
    try:
        reading()
    except FAILURES as exc:
        return f"not everything can be read ({exc})"
    return None


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def _refuse_strangers(path: str, connection: apsw.Connection) -> None:
    # In this order: another process may be making the store, and its tables and its id come in one moment.
    tables, mark = run(connection, "count_tables")[0][0], connection.pragma("application_id")
    if mark == SEALED:
        raise StoreSealed(f"{path} is an archived workspace; `polymnia workspace restore` makes it usable again")
    if tables and mark != OURS:
        raise StoreForeign(f"{path} is a SQLite file of another program; give polymnia a file of its own")


def _step(connection: apsw.Connection, number: int, statements: str) -> None:
    connection.execute(statements)
    run(connection, "record_migration", number)
    connection.pragma("user_version", number)
    connection.pragma("application_id", OURS)


def _change(number: int, at: int, actor: str, operation: str, before: str, after: str) -> Change:
    return Change(operation, actor, at, json.decode(before, type=Rows), json.decode(after, type=Rows), number)
