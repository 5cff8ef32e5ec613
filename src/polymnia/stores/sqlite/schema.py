"""The schema of a store's file: migrations, and refusing files that are not ours."""

from pathlib import Path

import apsw

from polymnia.errors import StoreError, StoreForeign, StoreOutdated, StoreSealed, StoreTooNew
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite.connection import APPLICATION_ID, SEALED_ID, run

PACKAGE = Path(__file__).parent
# The tables of the vault server whose files `adopt_memories` converts.
NOTE_TABLES = {"session_memories", "vault_memories"}


def migrate(
    path: str,
    connection: apsw.Connection,
    *,
    package: Path = PACKAGE,
    application_id: int = APPLICATION_ID,
) -> None:
    """Bring the file to the newest schema of a package in one transaction.

    Raise StoreTooNew, StoreForeign.
    """
    migrations = load_migrations(package)
    newest = migrations[-1][0]
    if _version(connection) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        _refuse_newer(path, version, newest)
        if application_id == APPLICATION_ID:
            refuse_foreign(path, connection)
        for number, statements in migrations:
            if number > version:
                connection.execute(statements)
                run(connection, "record_migration", number)
        connection.pragma("user_version", newest)
        connection.pragma("application_id", application_id)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise


def require_schema(path: str, connection: apsw.Connection) -> None:
    """Raise StoreOutdated for a file that must be migrated before it can be read, or StoreError."""
    newest = load_migrations(PACKAGE)[-1][0]
    version = _version(connection)
    _refuse_newer(path, version, newest)
    if not run(connection, "count_tables")[0][0]:
        raise StoreError(f"{path} is empty: it holds no memory")
    if version < newest:
        raise StoreOutdated(
            f"{path} has schema {version} and needs {newest}; open it once without --read-only, "
            "for example with `polymnia serve`"
        )


def refuse_foreign(path: str, connection: apsw.Connection, *, allow_archived: bool = False) -> None:
    """Raise StoreForeign for another program's file and StoreSealed for an archived workspace."""
    # In this order: another process may be creating the store.
    # Its tables and its id appear together.
    tables, mark = run(connection, "count_tables")[0][0], connection.pragma("application_id")
    if mark == SEALED_ID and allow_archived:
        return
    if mark == SEALED_ID:
        raise StoreSealed(
            f"{path} is an archived workspace; `polymnia workspace restore` makes it usable again"
        )
    if tables and mark != APPLICATION_ID:
        if {name for (name,) in run(connection, "table_names")} >= NOTE_TABLES:
            raise StoreForeign(
                f"{path} holds the notes of another vault server; start once with "
                "`--dialect vault` and without --read-only to convert it"
            )
        raise StoreForeign(
            f"{path} is a SQLite file of another program; give polymnia a file of its own"
        )


def refuse_newer(path: str, connection: apsw.Connection) -> None:
    """Raise StoreTooNew for a file that a later version has written."""
    _refuse_newer(path, _version(connection), load_migrations(PACKAGE)[-1][0])


def _refuse_newer(path: str, version: int, newest: int) -> None:
    if version > newest:
        raise StoreTooNew(
            f"{path} has schema {version}, this version knows up to {newest}; upgrade polymnia"
        )


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))
