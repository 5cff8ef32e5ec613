"""Run named queries on a SQLite connection."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import apsw
from msgspec import json

from polymnia.stores.sql import load_queries

QUERIES = load_queries(Path(__file__).parent)
Row = tuple[Any, ...]


def run(connection: apsw.Connection, query: str, *bindings: Any) -> list[Row]:
    """Return the rows of a named query."""
    return connection.execute(QUERIES[query], bindings).fetchall()


def run_many(connection: apsw.Connection, query: str, bindings: Collection[Row]) -> None:
    """Run a named query once for each set of bindings."""
    if bindings:
        connection.executemany(QUERIES[query], bindings)


def as_json(values: Iterable[object]) -> str:
    """Encode many values as one binding, which the query takes apart with `json_each`."""
    return json.encode(list(values)).decode()
