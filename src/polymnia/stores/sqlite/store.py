"""A workspace in one SQLite file: connections, the schema, and the store contract over them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
from msgspec import json

from polymnia.errors import StoreError, StoreTooNew
from polymnia.model import Change, Graph, Rows
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite.commit import CommitLane
from polymnia.stores.sqlite.connection import Translated, connect
from polymnia.stores.sqlite.graph import SqliteGraph
from polymnia.stores.sqlite.layout import run

IN_MEMORY = ":memory:"
# Some milliseconds' worth: a request that comes meanwhile waits no longer.
_PAGES_PER_TIDY = 100
# "PLYM", in the file's header: says that a database is ours.
_APPLICATION_ID = 0x504C594D


class SqliteStore:
    """One writing connection behind a commit lane, one reading connection per thread."""

    best_batch = 1000

    def __init__(self, path: str) -> None:
        self.url = path
        self._path = path
        self._alone = path == IN_MEMORY
        if not self._alone:
            _make_parent(Path(path))
        self._writer = connect(path)
        self._lane = CommitLane(path, self._writer)
        self._translated = Translated(path)
        self._threads = threading.local()
        self._connections: list[apsw.Connection] = [self._writer]
        with self._translated:
            migrate(path, self._writer)

    @contextmanager
    def reading(self) -> Iterator[SqliteGraph]:
        if self._alone:
            with self.writing() as writer:
                yield writer
            return
        connection = self._reader()
        with self._translated:
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
            with self.writing() as writer:
                return writer.look_up(name)
        with self._translated:
            return SqliteGraph(self._reader()).look_up(name)

    def changes(self, since: int = 0, limit: int = -1) -> list[Change]:
        """The change log after that id, oldest first."""
        with self._translated:
            rows = run(self._writer if self._alone else self._reader(), "changes_since", since, limit)
        return [_change(*row) for row in rows]

    def check(self) -> list[str]:
        connection = self._writer if self._alone else self._reader()
        with self._translated:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
        return [f"{self._path}: {problem}" for problem in found if problem != "ok"]

    def tidy(self) -> bool:
        """Merge segments of the trigram index: every search looks into each of them."""
        with self._lane.transaction() as connection:
            before = connection.total_changes()
            run(connection, "merge_trigrams", _PAGES_PER_TIDY)
            return connection.total_changes() - before > 1  # one change is the command itself

    def compact(self) -> None:
        """Merge the trigram index whole and empty the write-ahead log; deleted rows stay, as the history they are."""
        while self.tidy():
            continue
        if not self._alone:
            with self._translated:
                self._reader().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._threads = threading.local()

    def _reader(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            connection = connect(self._path)
            self._threads.connection = connection
            self._connections.append(connection)
        return connection


def migrate(path: str, connection: apsw.Connection) -> None:
    """Bring the file to the newest schema, each step recorded with what it did. Raises StoreTooNew."""
    migrations = load_migrations(Path(__file__).parent)
    newest = migrations[-1][0]
    if _version(connection) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > newest:
            raise StoreTooNew(f"{path} has schema {version}, this version knows up to {newest}; upgrade polymnia")
        _refuse_strangers(path, connection, version)
        for number, statements in migrations:
            if number > version:
                _step(connection, number, statements)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def _refuse_strangers(path: str, connection: apsw.Connection, version: int) -> None:
    if version == 0 and run(connection, "count_tables")[0][0]:
        raise StoreError(f"{path} is a SQLite file of another program; give polymnia a file of its own")


def _step(connection: apsw.Connection, number: int, statements: str) -> None:
    connection.execute(statements)
    run(connection, "record_migration", number)
    connection.pragma("user_version", number)
    connection.pragma("application_id", _APPLICATION_ID)


def _change(number: int, at: int, actor: str, operation: str, before: str, after: str) -> Change:
    return Change(operation, actor, at, json.decode(before, type=Rows), json.decode(after, type=Rows), number)


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError(f"the directory of {path} cannot be made ({exc.strerror}); choose another path") from exc
