"""Read the tables of a SQLite file that another program made, and change nothing.

The file is not trusted.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, map_errors
from polymnia.stores.sqlite.readers import file_state
from polymnia.stores.sqlite.rows import run

_MAGIC = b"SQLite format 3\x00"


def is_sqlite(path: str) -> bool:
    """Return True if the file begins as SQLite files do."""
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def table_columns(path: str) -> dict[str, tuple[str, ...]]:
    """Return the ordinary tables with the names of their columns.

    Raise StoreError if the file is damaged.
    """
    columns: dict[str, list[str]] = {}
    with _connect(path) as connection:
        for table, column in run(connection, "foreign_columns"):
            columns.setdefault(str(table), []).append(str(column))
    return {table: tuple(names) for table, names in columns.items()}


def table_rows(path: str, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an ordinary table, each with the names of its columns. Raise StoreError."""
    quoted = '"' + table.replace('"', '""') + '"'
    with _connect(path) as connection:
        cursor = connection.execute("SELECT * FROM " + quoted)
        names: tuple[str, ...] = ()
        for row in cursor:
            if not names:  # the cursor knows its columns once it has a row
                names = tuple(name for name, *_ in cursor.description)
            yield dict(zip(names, row, strict=True))


@contextmanager
def _connect(path: str) -> Iterator[apsw.Connection]:
    """Open the file read-only.

    Nothing that its schema contains is run: no trigger, no view, no function.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        map_errors(path),
        closing(apsw.Connection(file_state(path).uri(path), flags=flags)) as connection,
    ):
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        yield connection
