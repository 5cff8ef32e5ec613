"""The schema of a database: migrations under a lock, versions that may use it, row security."""

import logging
import re
from contextlib import suppress
from pathlib import Path
from time import sleep

import psycopg
from msgspec import Struct
from psycopg import errors

from polymnia.errors import StoreError, StoreTooNew
from polymnia.stores.postgres.connection import QUERIES, PooledConnection
from polymnia.stores.sql import load_migrations

logger = logging.getLogger(__name__)

# The oldest version that the tests run on.
_MIN_SERVER_VERSION = 150_000


# How a migration names the oldest schema whose programs can go on while it is applied, and
# afterwards. Without this line none can: they stop with a sentence.
_INDEX = re.compile(r"^(CREATE (?:UNIQUE )?INDEX IF NOT EXISTS (\w+) .*;)$", re.MULTILINE)
_USABLE_BY = re.compile(r"^-- usable by: ([0-9]+)$", re.MULTILINE)


class SchemaState(Struct, frozen=True):
    """The schema of a database, and what a program must know to use it."""

    version: int  # the newest migration; 0: there are no tables
    usable_by: int  # a program that knows this schema, or a later one, can use the database

    def require_usable(self, title: str) -> None:
        """Raise StoreTooNew if this program cannot use the schema."""
        newest = newest_schema()
        if self.usable_by > newest:
            raise StoreTooNew(
                f"{title} has schema {self.version}, which needs a program that knows "
                f"{self.usable_by}; this version knows up to {newest}: upgrade polymnia"
            )


class SchemaChange(Struct, frozen=True):
    """What `migrate-schema` did, and what a program must know to use the database."""

    before: int
    after: int
    usable_by: int

    @property
    def known(self) -> int:
        """The schema that this program needs."""
        return newest_schema()


def newest_schema() -> int:
    """Return the schema that this program creates, and the least it can work with."""
    return load_migrations(Path(__file__).parent)[-1][0]


def read_state(connection: PooledConnection) -> SchemaState:
    """Return the state of the schema. Raise psycopg.Error."""
    ((exists,),) = connection.execute(QUERIES["has_schema"]).fetchall()
    if not exists:
        return SchemaState(0, 0)
    ((version, usable_by),) = connection.execute(QUERIES["schema_state"]).fetchall()
    return SchemaState(version, usable_by)


def migrate(title: str, connection: PooledConnection) -> SchemaState:
    """Bring the database to the newest schema in the open transaction; return what it was before.

    Do nothing if its schema is that or a later one. Raise StoreError, StoreTooNew.
    """
    _require_server(title, connection)
    state = read_state(connection)
    state.require_usable(title)
    if state.version >= newest_schema():
        return state
    try:
        connection.execute(QUERIES["migration_timeouts"])
        # The key of the lock that migrations hold: "PLYM".
        connection.execute(QUERIES["lock_migrations"], [0x504C594D])
        version = read_state(connection).version
        # The first migration was written for this version.
        if not version and connection.info.server_version < 180_000:
            connection.execute(QUERIES["imitate_18"])
        applied = []
        for number, statements in load_migrations(Path(__file__).parent):
            if number > version:
                connection.execute(statements.encode(), prepare=False)  # many statements
                connection.execute(QUERIES["record_migration"], [number])
                applied.append((number, statements))
        # After all of them, because one of them adds the column.
        for number, statements in applied:
            stated = _USABLE_BY.search(statements)
            usable_by = int(stated[1]) if stated else number
            connection.execute(QUERIES["record_usable_by"], [number, usable_by])
    except (errors.UndefinedFile, errors.FeatureNotSupported) as exc:
        raise StoreError(
            f"{title} is missing an extension: {exc.diag.message_primary}; install it on that host "
            "(pgvector is the package postgresql-NN-pgvector, the others are in postgresql-contrib)"
        ) from exc
    except errors.InsufficientPrivilege as exc:
        connection.rollback()
        raise _not_allowed(title, connection, state, exc) from exc
    return state


def build_indexes(connection: PooledConnection, version: int) -> None:
    """Build the indexes of the migrations after a version, while others read and write.

    Raise psycopg.Error.
    """
    statements = []
    for number, text in load_migrations(Path(__file__).parent):
        if number > version:
            statements += _INDEX.findall(text)
    # The key of the lock that builds hold: "PLYI". It ends with the connection.
    while not connection.execute(QUERIES["try_lock_indexes"], [0x504C5949]).fetchall()[0][0]:
        sleep(1.0)
    for done, (statement, name) in enumerate(statements):
        logger.info("building the index %s, %d of %d", name, done + 1, len(statements))
        ((is_broken,),) = connection.execute(QUERIES["has_broken_index"], [name]).fetchall()
        # The columns may come with a migration before it, or the role may own nothing. Then the
        # migration builds the index, or says what is missing.
        with suppress(errors.UndefinedColumn, errors.UndefinedTable, errors.InsufficientPrivilege):
            if is_broken:
                connection.execute(f"DROP INDEX polymnia.{name}".encode())
            concurrently = statement.replace("INDEX IF", "INDEX CONCURRENTLY IF", 1)
            connection.execute(concurrently.encode(), prepare=False)


def _not_allowed(
    title: str, connection: PooledConnection, state: SchemaState, exc: psycopg.Error
) -> StoreError:
    """Return an error that says who must do what in place of this role."""
    missing = connection.execute(QUERIES["missing_extensions"]).fetchall()
    if missing:
        statements = " ".join(f"CREATE EXTENSION {name};" for (name,) in missing)
        return StoreError(
            f"{title} lacks extensions, and this role may not create them; nothing was changed: "
            f"run `{statements}` there as a superuser, then try again"
        )
    return StoreError(
        f"{title} has schema {state.version} and needs {newest_schema()}, which this role may not "
        f"create ({exc.diag.message_primary}); nothing was changed: run `polymnia migrate-schema` "
        "with the URL of a role that owns the tables or may create them"
    )


def grant(connection: PooledConnection, role: str) -> None:
    """Let a role use the tables without changing them. Raise psycopg.Error."""
    connection.execute(QUERIES["set_grantee"], [role])
    connection.execute(QUERIES["grant_schema"])


def require_schema(title: str, connection: PooledConnection) -> None:
    """Raise StoreError for a database that would have to be migrated before it can be read."""
    _require_server(title, connection)
    state = read_state(connection)
    state.require_usable(title)
    if not state.version:
        raise StoreError(
            f"there is no memory in {title}; `polymnia migrate-schema` creates its tables"
        )
    if state.version < newest_schema():
        raise StoreError(
            f"{title} has schema {state.version} and needs {newest_schema()}; open it once without "
            "--read-only, or run `polymnia migrate-schema`"
        )


def set_row_security(title: str, connection: PooledConnection, wanted: bool | None) -> bool:
    """Turn row-level security on or off, if that is wanted; return True if it is on."""
    ((is_on, is_exempt),) = connection.execute(QUERIES["has_row_security"]).fetchall()
    if wanted is not None and wanted != is_on:
        connection.execute(QUERIES["enable_row_security" if wanted else "disable_row_security"])
        is_on = wanted
    if is_on and is_exempt:
        logger.warning(
            "%s: row-level security does not bind this role; serve with one that neither owns the "
            "tables nor has SUPERUSER or BYPASSRLS",
            title,
        )
    return bool(is_on)


def require_row_security(title: str, connection: PooledConnection, wanted: bool | None) -> bool:
    """Return True if row-level security is on. Raise StoreError if it is not as wanted."""
    ((is_on, _),) = connection.execute(QUERIES["has_row_security"]).fetchall()
    if wanted is not None and wanted != is_on:
        state = "on" if is_on else "off"
        raise StoreError(
            f"row-level security is {state} in {title}, and a command that only reads cannot "
            "switch it: leave row_security out of the URL, or open the store once to write, "
            "as the owner of the tables"
        )
    return bool(is_on)


def _require_server(title: str, connection: PooledConnection) -> None:
    version = connection.info.server_version
    if version < _MIN_SERVER_VERSION:
        needed = _MIN_SERVER_VERSION // 10_000
        raise StoreError(
            f"{title} is PostgreSQL {version // 10_000}: {needed} or later is needed; upgrade it"
        )
