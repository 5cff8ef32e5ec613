"""The workspaces of a database."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from time import monotonic, sleep, time_ns
from uuid import uuid4

from polymnia.errors import BadInput, StoreBusy, StoreError, WorkspaceArchived, WorkspaceNotFound
from polymnia.model import Status, Workspace
from polymnia.search.terms import fold
from polymnia.stores.contract import Store
from polymnia.stores.directory.repair import WorkspaceReport
from polymnia.stores.names import check_name
from polymnia.stores.postgres.connection import Row
from polymnia.stores.postgres.database import Database, open_database
from polymnia.stores.postgres.schema import (
    SchemaChange,
    SchemaState,
    build_indexes,
    grant,
    migrate,
    newest_schema,
    read_state,
    require_row_security,
    require_schema,
    set_row_security,
)
from polymnia.stores.postgres.store import PostgresStore
from polymnia.stores.postgres.transaction import WorkspaceConnection
from polymnia.stores.postgres.url import parse_url

logger = logging.getLogger(__name__)

# A store holds nothing but the workspace's id, but while clients follow changes, each is read every
# two seconds.
_MAX_OPEN = 200


class PostgresCatalogue:
    """The workspaces of one database. Safe for several threads and several processes."""

    max_open = _MAX_OPEN

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Connect, and create the tables in a new database.

        A read-only catalogue changes nothing. Raise StoreError.
        """
        self.url = url
        self._read_only = read_only
        self._database = open_migrated(url, read_only=read_only)

    def find(self, name: str) -> Workspace:
        return Workspace(*self._row(name)[:6])

    def find_all(
        self, status: Status | None = None, *, limit: int | None = None
    ) -> list[Workspace]:
        rows = self._database.ask("workspaces_listed", status, limit)
        return [Workspace(*row) for row in rows]

    def create(self, name: str, description: str = "") -> Workspace:
        self._create(Workspace(str(uuid4()), name, description, created_at=_now()))
        return self.find(name)

    def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        status: Status | None = None,
    ) -> Workspace:
        if status == "archived":
            self._archive(name)
        elif status == "active":
            self._restore(name)
        if new_name is not None:
            self._rename(name, new_name)
            name = new_name
        if description is not None:
            self._describe(name, description)
        return self.find(name)

    def _archive(self, name: str) -> None:
        found = self._row(name)
        if found[3] != "active":
            raise WorkspaceArchived(name)
        self._set_status(found, "archive_workspace", "archived")

    def _restore(self, name: str) -> None:
        found = self._row(name)
        if found[3] != "archived":
            raise BadInput(f"{name} is not archived: there is nothing to restore")
        self._set_status(found, "restore_workspace", "active")

    def delete(self, name: str) -> Workspace:
        found = self._row(name)
        with self._writing(found[6]) as connection:
            connection.write("drop_near_vectors", None, None)
            for query in (
                "archive_workspace",
                "delete_workspace",
                "delete_workspace_roots",
                "delete_from_catalogue",
            ):
                connection.write(query)
            connection.commit()
        return Workspace(*found[:6])

    def _rename(self, name: str, new: str) -> None:
        check_name(new)
        found = self._row(name)
        with self._writing() as connection:
            other = connection.ask("workspace_like", fold(new))
            if other and other[0][0] != found[0]:
                raise _taken(other)
            connection.write("rename_workspace", found[6], new, fold(new), _now())
            connection.commit()

    def _describe(self, name: str, description: str) -> None:
        found = self._row(name)
        with self._writing() as connection:
            connection.write("describe_workspace", found[6], description, _now())
            connection.commit()

    def adopt(self, workspace: Workspace) -> None:
        try:
            found = self._row(workspace.name)
        except WorkspaceNotFound:
            self._create(workspace)
            found = self._row(workspace.name)
        if found[0] != workspace.id:
            raise _taken([(found[0], found[1], found[3])])
        if found[3] != workspace.status:
            query = "archive_workspace" if workspace.status == "archived" else "restore_workspace"
            self._set_status(found, query, workspace.status)
        with self._writing() as connection:
            connection.write(
                "describe_workspace", found[6], workspace.description, workspace.updated_at
            )
            connection.commit()

    def open(self, name: str, *, archived: bool = False) -> PostgresStore:
        found = self._row(name)
        is_active = found[3] == "active"
        if not is_active and not archived:
            raise WorkspaceArchived(name)
        read_only = self._read_only or not is_active
        return PostgresStore(self._database, found[6], name, found[7], read_only=read_only)

    def find_open(self, stores: Mapping[str, Store]) -> set[str]:
        current = set(self._database.ask("workspaces_active", list(map(fold, stores))))
        ours = [(name, store) for name, store in stores.items() if isinstance(store, PostgresStore)]
        return {
            name for name, store in ours if (name, store.workspace, store.generation) in current
        }

    def find_texts(self, name: str, texts: Collection[str]) -> list[str]:
        """Return the tables with a row of the workspace that has one of the texts."""
        with self._database.transaction(self._row(name)[6], once=True) as connection:
            return [table for (table,) in connection.ask("tables_with_texts", texts)]

    def close(self) -> None:
        self._database.close()

    def _row(self, name: str) -> Row:
        rows = self._database.ask("workspace_named", fold(name), name)
        if not rows:
            raise WorkspaceNotFound(
                name, f"`polymnia workspace create {name} --store URL` makes it"
            )
        return rows[0]

    def _create(self, new: Workspace) -> None:
        check_name(new.name)
        with self._writing() as connection:
            row = (new.id, new.name, fold(new.name), new.description, new.created_at)
            added = connection.ask("insert_workspace", *row)
            if not added:
                raise _taken(connection.ask("workspace_like", fold(new.name)))
            connection.write("set_workspace", added[0][0])
            connection.write("fill_workspace", added[0][0])
            connection.commit()

    def _set_status(self, found: Row, query: str, status: Status) -> Workspace:
        with self._writing(found[6]) as connection:
            connection.write(query)
            connection.write("set_workspace_status", status, _now())
            connection.commit()
        return self.find(found[1])

    @contextmanager
    def _writing(self, workspace: int | None = None) -> Iterator[WorkspaceConnection]:
        if self._read_only:
            raise StoreError(
                f"{self._database.url.title} was opened with --read-only; nothing was changed"
            )
        with self._database.transaction(workspace, write=True) as connection:
            yield connection


def open_migrated(url: str, *, read_only: bool) -> Database:
    """Return the database of a URL, with the newest schema. Raise StoreError."""
    parts = parse_url(url)
    database = open_database(parts)
    try:
        if read_only:
            with database.schema_transaction(read_only=True) as connection:
                require_schema(parts.title, connection)
                is_on = require_row_security(parts.title, connection, parts.row_security)
        else:
            _, is_on = _migrate(database, parts.row_security)
        database.row_security = is_on
    except BaseException:
        database.close()
        raise
    return database


def migrate_schema(url: str, *, grant_to: str = "", only_check: bool = False) -> SchemaChange:
    """Bring the tables of a database up to date, and let a role use them. Raise StoreError."""
    database = open_database(parse_url(url))
    try:
        before = None
        if not only_check:
            before, _ = _migrate(database, None)
        with database.schema_transaction(read_only=only_check) as connection:
            if grant_to and not only_check:
                grant(connection, grant_to)
            after = read_state(connection)
        return SchemaChange((before or after).version, after.version, after.usable_by)
    finally:
        database.close()


def _migrate(database: Database, row_security: bool | None) -> tuple[SchemaState, bool]:
    """Bring the tables up to date. Return what they were before, and if row security is on.

    What waits for a lock gives up after two seconds and tries again, so that calls do not queue
    behind it. Raise StoreError.
    """
    title = database.url.title
    with database.connection() as connection:
        version = read_state(connection).version
    # In a new database they have no rows.
    if 0 < version < newest_schema() and (database.url.direct or not database.is_pooled):
        with database.maintenance({}) as connection:
            build_indexes(connection, version)
    deadline = monotonic() + 600.0
    while True:
        try:
            with database.schema_transaction(read_only=False) as connection:
                before = migrate(title, connection)
                return before, set_row_security(title, connection, row_security)
        except StoreBusy:
            if monotonic() > deadline:
                raise
            logger.warning("%s: the migration waits for a lock; trying again", title)
            sleep(1.0)


def open_catalogue(url: str, *, read_only: bool = False) -> PostgresCatalogue | None:
    """Open the catalogue of a database; None if the URL names one of its workspaces.

    Raise StoreError.
    """
    return None if parse_url(url).workspace else PostgresCatalogue(url, read_only=read_only)


def check_database(url: str) -> list[WorkspaceReport]:
    """Check the active workspaces of a database. Raise StoreError."""
    catalogue = PostgresCatalogue(url, read_only=True)
    try:
        return [_report(catalogue, item.name) for item in catalogue.find_all("active")]
    finally:
        catalogue.close()


def find_in_tables(url: str, texts: Collection[str], workspaces: Collection[str]) -> list[str]:
    """Return the tables that have one of the texts in a workspace. Raise StoreError."""
    places = []
    with closing(PostgresCatalogue(url, read_only=True)) as catalogue:
        for name in workspaces:
            places += [f"{name}: {table}" for table in catalogue.find_texts(name, texts)]
    return places


def _report(catalogue: PostgresCatalogue, name: str) -> WorkspaceReport:
    store = catalogue.open(name)
    try:
        problems = store.check()
        with store.reading() as read:
            counts = read.counts()
            latest_time = read.history.latest_time()
        return WorkspaceReport(name, tuple(problems), counts, counts.notes, latest_time)
    finally:
        store.close()


def open_workspace(url: str, *, read_only: bool = False) -> PostgresStore:
    """Open the workspace that a URL names, or else `default`. Create it if it is missing."""
    catalogue = PostgresCatalogue(url, read_only=read_only)
    try:
        name = parse_url(url).workspace or DEFAULT_WORKSPACE
        try:
            return catalogue.open(name)
        except WorkspaceNotFound:
            if read_only:
                raise
            with suppress(BadInput):  # another process was first
                catalogue.create(name)
            return catalogue.open(name)
    finally:
        catalogue.close()


DEFAULT_WORKSPACE = "default"


def _taken(rows: list[Row]) -> BadInput:
    state = " (archived)" if rows and rows[0][2] != "active" else ""
    name = rows[0][1] if rows else "of that name"
    return BadInput(f"there is a project {name} already{state}; choose another name")


def _now() -> int:
    return time_ns() // 1000
