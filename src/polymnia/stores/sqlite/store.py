"""A workspace in one SQLite file: connections, the schema, and the store contract over them."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import apsw
from msgspec import json

from polymnia.errors import StoreError, StoreTooNew
from polymnia.model import Change, Graph, Rows
from polymnia.stores.place import make_place
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite.commit import CommitLane
from polymnia.stores.sqlite.connection import FAILURES, connect, ours, translated
from polymnia.stores.sqlite.graph import SqliteGraph, look_up
from polymnia.stores.sqlite.layout import run
from polymnia.stores.sqlite.vectors import SqliteVectors
from polymnia.stores.sqlite.words import define_functions

IN_MEMORY = ":memory:"
# Some milliseconds' worth: a request that comes meanwhile waits no longer.
_PAGES_PER_TIDY = 100
# "PLYM", in the file's header: says that a database is ours.
_APPLICATION_ID = 0x504C594D


class SqliteStore:
    """One writing connection behind a commit lane, and as many reading ones as are read from at once."""

    best_batch = 1000

    def __init__(self, path: str) -> None:
        self.url = path
        self._path = path
        self._alone = path == IN_MEMORY
        if not self._alone:
            make_place(Path(path))
        self._writer = connect(path, partial(_refuse_strangers, path))
        self._lane = CommitLane(path, self._writer)
        self._translated = translated(path)
        self._idle: list[apsw.Connection] = []
        # In memory there is but one connection, and a search needs a second one for vectors.
        self.vectors = None if self._alone else SqliteVectors(self._own_reader, self._lane.transaction)
        with self._translated:
            migrate(path, self._writer)

    @contextmanager
    def reading(self) -> Iterator[SqliteGraph]:
        if self._alone:
            with self.writing() as writer:
                yield writer
            return
        with self._translated, self._reader() as connection:
            connection.execute("BEGIN")
            try:
                yield SqliteGraph(connection)
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[SqliteGraph]:
        with self._lane.transaction() as connection:
            yield SqliteGraph(connection)

    def look_up(self, name: str) -> Graph:
        if self._alone:
            with self._lane.transaction() as connection:
                return look_up(connection, name)
        # The commonest read: what `with self._translated, self._reader()` does, in fewer steps.
        connection = self._take()
        try:
            return look_up(connection, name)
        except FAILURES as exc:
            raise ours(self._path, exc) from exc
        finally:
            self._idle.append(connection)

    def changes(self, since: int = 0, limit: int = -1) -> list[Change]:
        """The change log after that id, oldest first."""
        with self._translated, self._reader() as connection:
            rows = run(connection, "changes_since", since, limit)
        return [_change(*row) for row in rows]

    def check(self) -> list[str]:
        # On a connection of its own: one that has searched before the index was merged checks it against its memory
        # of the old segments and finds damage where there is none.
        connection = self._another()
        with self._translated, closing(connection) if not self._alone else nullcontext():
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
            graph = SqliteGraph(connection)
            found += [each for each in map(_failure, (graph.entities, graph.relations)) if each]
            ((orphans,),) = run(connection, "count_orphans")
            if orphans:
                found.append(f"{orphans} observations belong to no entity")
        return [f"{self._path}: {problem}" for problem in found if problem != "ok"]

    def tidy(self) -> bool:
        return self._merge(patient=False)

    def compact(self) -> None:
        """Merge the text indexes whole and empty the write-ahead log; deleted rows stay, as the history they are."""
        while self._merge(patient=True):
            continue
        if not self._alone:
            with self._translated, self._reader() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()  # a connection may be closed twice
        self._writer.close()

    def _merge(self, *, patient: bool) -> bool:
        """Join segments of the text indexes, since every search looks into each; True while there are more."""
        with self._lane.transaction(patient=patient) as connection:
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
        return self._writer if self._alone else connect(self._path)


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
    if run(connection, "count_tables")[0][0] and connection.pragma("application_id") != _APPLICATION_ID:
        raise StoreError(f"{path} is a SQLite file of another program; give polymnia a file of its own")


def _step(connection: apsw.Connection, number: int, statements: str) -> None:
    connection.execute(statements)
    run(connection, "record_migration", number)
    connection.pragma("user_version", number)
    connection.pragma("application_id", _APPLICATION_ID)


def _change(number: int, at: int, actor: str, operation: str, before: str, after: str) -> Change:
    return Change(operation, actor, at, json.decode(before, type=Rows), json.decode(after, type=Rows), number)
