"""The schema of a database: migrations under a lock, and row-level security."""

import logging
from pathlib import Path

from psycopg import errors

from polymnia.errors import StoreError, StoreTooNew
from polymnia.stores.postgres.connection import QUERIES, Connection
from polymnia.stores.sql import load_migrations

logger = logging.getLogger(__name__)

# Earlier versions lack `casefold`, by which substring search ignores case.
_MIN_SERVER_VERSION = 180_000
# The key of the lock that migrations hold: "PLYM".
_MIGRATION_LOCK = 0x504C594D


def migrate(title: str, connection: Connection) -> None:
    """Bring the database to the newest schema in one transaction. Raise StoreError, StoreTooNew."""
    _require_server(title, connection)
    migrations = load_migrations(Path(__file__).parent)
    newest = migrations[-1][0]
    if _version(title, connection, newest) == newest:
        return
    connection.execute(QUERIES["begin"])
    try:
        connection.execute(QUERIES["without_timeouts"])
        connection.execute(QUERIES["lock_migrations"], [_MIGRATION_LOCK])
        version = _version(title, connection, newest)
        for number, statements in migrations:
            if number > version:
                connection.execute(statements.encode())
                connection.execute(QUERIES["record_migration"], [number])
        connection.commit()
    except errors.UndefinedFile as exc:
        connection.rollback()
        raise StoreError(
            f"{title} lacks an extension: {exc.diag.message_primary}; install it there"
        ) from exc
    except BaseException:
        connection.rollback()
        raise


def require_schema(title: str, connection: Connection) -> None:
    """Raise StoreError for a database that would have to be migrated before it can be read."""
    _require_server(title, connection)
    newest = load_migrations(Path(__file__).parent)[-1][0]
    version = _version(title, connection, newest)
    if not version:
        raise StoreError(f"there is no memory in {title}; start without --read-only to begin one")
    if version < newest:
        raise StoreError(
            f"{title} has schema {version} and needs {newest}; open it once without --read-only"
        )


def set_row_security(title: str, connection: Connection, wanted: bool | None) -> bool:
    """Turn row-level security on or off, if that is wanted; return True if it is on."""
    ((is_on, is_exempt),) = connection.execute(QUERIES["has_row_security"]).fetchall()
    if wanted is not None and wanted != is_on:
        connection.execute(QUERIES["begin"])
        connection.execute(QUERIES["enable_row_security" if wanted else "disable_row_security"])
        connection.commit()
        is_on = wanted
    if is_on and is_exempt:
        logger.warning(
            "%s: row-level security does not bind this role; use one without SUPERUSER and BYPASSRLS",
            title,
        )
    return bool(is_on)


def _version(title: str, connection: Connection, newest: int) -> int:
    ((exists,),) = connection.execute(QUERIES["has_schema"]).fetchall()
    if not exists:
        return 0
    ((version,),) = connection.execute(QUERIES["last_migration"]).fetchall()
    if version > newest:
        raise StoreTooNew(
            f"{title} has schema {version}, this version knows up to {newest}; upgrade polymnia"
        )
    return int(version)


def _require_server(title: str, connection: Connection) -> None:
    version = connection.info.server_version
    if version < _MIN_SERVER_VERSION:
        raise StoreError(
            f"{title} is PostgreSQL {version // 10_000}: {_MIN_SERVER_VERSION // 10_000} or later is needed; upgrade it"
        )
