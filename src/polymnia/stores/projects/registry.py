"""The registry of a data directory, `_meta.db`: which projects there are, and what was begun with their files."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import time_ns
from typing import Any, Literal

import apsw
from msgspec import Struct

from polymnia.disk.replace import make_parent
from polymnia.errors import StoreError, StoreTooNew
from polymnia.model import Status, Workspace
from polymnia.stores.sql import load_migrations, load_queries
from polymnia.stores.sqlite.connection import connect, map_errors

QUERIES = load_queries(Path(__file__).parent)
# "PLYR", in the file's header.
_REGISTRY = 0x504C5952
_COLUMNS = {"id", "name", "description", "db_path", "status", "created_at", "updated_at"}

Operation = Literal["create", "archive", "restore", "delete"]


class Intent(Struct, frozen=True):
    """Something begun with a project's file."""

    project: str
    operation: Operation


class Registry:
    """The rows. Each method is one transaction; several threads and processes may call them."""

    def __init__(self, path: Path) -> None:
        make_parent(path)
        self._map_errors = map_errors(str(path))
        self._lock = threading.Lock()
        self._connection = connect(str(path), partial(_refuse_strangers, str(path)))
        with self._map_errors:
            _migrate(str(path), self._connection)

    def find(self, name: str) -> Workspace | None:
        """The project of that name."""
        rows = self._run("project_named", name)
        return Workspace(*rows[0]) if rows else None

    def listed(self, status: Status | None) -> list[Workspace]:
        """The projects of a status, or all, by name."""
        return [Workspace(*row) for row in self._run("projects_listed", status)]

    def path(self, project: str) -> str | None:
        """Where the file of a project is, below the directory; None when there is no such project."""
        rows = self._run("project_path", project)
        return str(rows[0][0]) if rows else None

    def intents(self) -> list[Intent]:
        """What was begun and not finished."""
        return [Intent(*row) for row in self._run("intents")]

    def intend(self, project: str, operation: Operation) -> None:
        """Say what is about to happen to a project's file."""
        self._run("insert_intent", project, operation)

    def forget(self, project: str) -> None:
        """Nothing happens to it any more."""
        self._run("delete_intent", project)

    def add(self, project: str, name: str, description: str, path: str) -> None:
        """A new project, and the intent to create it done."""
        with self._transaction():
            self._run_inside("insert_project", project, name, description, path, _now())
            self._run_inside("delete_intent", project)

    def settle(self, project: str, status: Status, path: str) -> None:
        """A project whose file is elsewhere now, and the intent done."""
        with self._transaction():
            self._run_inside("move_project", project, status, path, _now())
            self._run_inside("delete_intent", project)

    def remove(self, project: str) -> None:
        """A project that is gone, and the intent done."""
        with self._transaction():
            self._run_inside("delete_project", project)
            self._run_inside("delete_intent", project)

    def rename(self, project: str, name: str) -> None:
        self._run("rename_project", project, name, _now())

    def describe(self, project: str, description: str) -> None:
        self._run("describe_project", project, description, _now())

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _run(self, query: str, *bindings: Any) -> list[tuple[Any, ...]]:
        with self._lock, self._map_errors:
            return self._connection.execute(QUERIES[query], bindings).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, self._map_errors:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _run_inside(self, query: str, *bindings: Any) -> None:
        self._connection.execute(QUERIES[query], bindings)


def _now() -> str:
    """The time as the registry spells it: ISO 8601, to the millisecond."""
    now = datetime.fromtimestamp(time_ns() / 1e9, UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _refuse_strangers(path: str, connection: apsw.Connection) -> None:
    if not connection.execute(QUERIES["count_tables"]).fetchall()[0][0]:
        return
    columns = {name for (name,) in connection.execute(QUERIES["columns_of_projects"]).fetchall()}
    if not columns >= _COLUMNS:
        raise StoreError(f"{path} is not a registry of projects; give polymnia a directory of its own")


def _migrate(path: str, connection: apsw.Connection) -> None:
    """Bring the registry to the newest schema; one of an earlier program gets what it lacks."""
    migrations = load_migrations(Path(__file__).parent)
    newest = migrations[-1][0]
    if connection.pragma("user_version") == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.pragma("user_version")
        if version > newest:
            raise StoreTooNew(f"{path} has schema {version}, this version knows up to {newest}; upgrade polymnia")
        for number, statements in migrations:
            if number > version:
                connection.execute(statements)
                connection.execute(QUERIES["record_migration"], (number,))
        connection.pragma("user_version", newest)
        connection.pragma("application_id", _REGISTRY)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
