"""The registry of a data directory, `_meta.db`: its workspaces, and unfinished file changes."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import time_ns
from typing import Any, Literal

import apsw
from msgspec import DecodeError, Struct, json

from polymnia.disk.files import Leftovers, file_identity, make_parent, replace_file
from polymnia.errors import StoreError, StoreStopped
from polymnia.model import Status, Workspace
from polymnia.stores.sql import load_queries
from polymnia.stores.sqlite.connection import ReaderPool, Row, connect, map_errors
from polymnia.stores.sqlite.schema import migrate

logger = logging.getLogger(__name__)

QUERIES = load_queries(Path(__file__).parent)
REGISTRY = "_meta.db"
# A copy of the rows as text, from which a lost registry is rebuilt with its names.
COPY = "_meta.json"
# "PLYR", in the file's header.
_APPLICATION_ID = 0x504C5952
_COLUMNS = {"id", "name", "description", "db_path", "status", "created_at", "updated_at"}

Operation = Literal["create", "archive", "restore", "delete"]


class Intent(Struct, frozen=True):
    """A change to a workspace's file that was begun."""

    workspace: str
    operation: Operation


class Registry:
    """The rows. Each method is one transaction. Safe for several threads and several processes."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """Open the registry of a directory, a new one if there is none. Raise StoreError."""
        self.path = directory / REGISTRY
        self._copy = directory / COPY
        self._leftovers = Leftovers(self._copy)
        self._map_errors = map_errors(str(self.path))
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._read_only_pool: ReaderPool | None = None
        if read_only:
            self._read_only_pool = ReaderPool(
                str(self.path),
                lambda uri: connect(uri, partial(_refuse_foreign, str(self.path)), read_only=True),
                read_only=True,
            )
        else:
            make_parent(self.path)
            self._connection = connect(str(self.path), partial(_refuse_foreign, str(self.path)))
            with self._map_errors:
                migrate(
                    str(self.path),
                    self._connection,
                    package=Path(__file__).parent,
                    application_id=_APPLICATION_ID,
                )
        self._file = file_identity(str(self.path))

    def find(self, name: str) -> Workspace | None:
        """Return the workspace with that name."""
        rows = self._run("project_named", name)
        return Workspace(*rows[0]) if rows else None

    def find_all(self, status: Status | None = None) -> list[Workspace]:
        """Return the workspaces of a status, or all, by name."""
        return [Workspace(*row) for row in self._run("projects_listed", status)]

    def rows(self) -> list[Row]:
        """Return every row as it is: id, name, path, status."""
        return self._run("project_rows")

    def location(self, workspace: str) -> str | None:
        """Return the path of the workspace's file in the directory; None if it is unknown."""
        rows = self._run("project_path", workspace)
        return str(rows[0][0]) if rows else None

    def intents(self) -> list[Intent]:
        """Return the changes that were begun and not finished."""
        if not self._run("has_intents"):
            return []  # the registry of an earlier program, which is only looked at
        return [Intent(*row) for row in self._run("intents")]

    def begin(self, workspace: str, operation: Operation) -> None:
        """Record what is about to happen to a workspace's file."""
        self._run("insert_intent", workspace, operation)

    def forget(self, workspace: str) -> None:
        """Remove the intent of a workspace."""
        self._run("delete_intent", workspace)

    def add(self, workspace: Workspace, path: str) -> None:
        """Add a workspace whose file is at the path, and remove its intent."""
        created = _spell_time(workspace.created_at or time_ns() // 1000)
        row = (workspace.id, workspace.name, workspace.description, path, workspace.status, created)
        with self._transaction():
            self._execute("insert_project", *row)
            self._execute("delete_intent", workspace.id)

    def relocate(self, workspace: str, status: Status, path: str) -> None:
        """Record that a workspace's file is at another path, and remove its intent."""
        with self._transaction():
            self._execute("move_project", workspace, status, path, _now())
            self._execute("delete_intent", workspace)

    def remove(self, workspace: str) -> None:
        """Remove a workspace and its intent."""
        with self._transaction():
            self._execute("delete_project", workspace)
            self._execute("delete_intent", workspace)

    def rename(self, workspace: str, name: str) -> None:
        """Change the name of a workspace."""
        self._run("rename_project", workspace, name, _now())

    def describe(self, workspace: str, description: str, at: int | None = None) -> None:
        """Change the description of a workspace, now or at another time."""
        self._run(
            "describe_project", workspace, description, _now() if at is None else _spell_time(at)
        )

    def save_copy(self) -> None:
        """Write the workspaces to the copy if it does not hold them. A failure does no harm."""
        workspaces = self.find_all()
        self._leftovers.remove()  # the caller holds the lock of the directory
        try:
            if read_copy(self._copy) != workspaces:
                replace_file(self._copy, [json.format(json.encode(workspaces))])
        except (OSError, StoreStopped) as exc:
            logger.warning("%s cannot be written: %s", self._copy, exc)

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self._read_only_pool is not None:
                self._read_only_pool.close()

    def _run(self, query: str, *bindings: Any) -> list[Row]:
        with self._use() as connection:
            return connection.execute(QUERIES[query], bindings).fetchall()

    @contextmanager
    def _use(self) -> Iterator[apsw.Connection]:
        if self._file != file_identity(str(self.path)):
            raise StoreError(
                f"{self.path} was moved, deleted or replaced meanwhile; start the server again"
            )
        if self._read_only_pool is not None:
            with self._map_errors, self._read_only_pool.connection() as connection:
                yield connection
            return
        assert self._connection is not None  # it is not read-only
        with self._lock, self._map_errors:
            yield self._connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _execute(self, query: str, *bindings: Any) -> None:
        """Run a query inside the open transaction."""
        assert self._connection is not None
        self._connection.execute(QUERIES[query], bindings)


def read_copy(path: Path) -> list[Workspace] | None:
    """Return the workspaces in a copy of the registry; None if it cannot be read."""
    try:
        return json.decode(path.read_bytes(), type=list[Workspace])
    except (OSError, DecodeError):
        return None


def _now() -> str:
    return _spell_time(time_ns() // 1000)


def _spell_time(at: int) -> str:
    """Return a time as the registry keeps it: ISO 8601, to the millisecond."""
    time = datetime.fromtimestamp(at / 1e6, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _refuse_foreign(path: str, connection: apsw.Connection) -> None:
    """Raise StoreError for a file that has tables and is not a registry."""
    is_empty = not connection.execute(QUERIES["count_tables"]).fetchall()[0][0]
    if is_empty and not connection.readonly("main"):
        return  # a new one
    columns = {name for (name,) in connection.execute(QUERIES["columns_of_projects"]).fetchall()}
    if not columns >= _COLUMNS:
        raise StoreError(
            f"{path} is not a registry of projects; give polymnia a directory of its own"
        )
