"""Recognizes a pooler in transaction mode between this process and the database."""

import psycopg

from polymnia.errors import StoreError
from polymnia.stores.postgres.connection import QUERIES, Row
from polymnia.stores.postgres.url import PostgresUrl


def require_sessions(url: PostgresUrl, connection: psycopg.Connection[Row]) -> None:
    """Raise StoreError if the statements of a connection do not all reach the same backend.

    Settings, prepared statements, locks and notifications belong to a backend. A pooler in
    transaction mode gives every transaction another one.
    """
    backend = _backend(connection)
    if connection.info.backend_pid == backend:
        return  # no pooler: the server named the backend at the login
    with psycopg.connect(url.conninfo) as other:
        # The second connection stays in a transaction and keeps its backend,
        # perhaps that of the first.
        is_shared = _backend(other) == backend or _backend(connection) != backend
    if is_shared:
        raise StoreError(
            f"{url.title} is a pooler in transaction mode: statements are prepared and settings "
            "belong to connections; set pool_mode = session, or name the database itself"
        )


def _backend(connection: psycopg.Connection[Row]) -> int:
    ((number,),) = connection.execute(QUERIES["backend"]).fetchall()
    return int(number)
