"""How rows are numbered and queries are run: what reading, searching and writing share."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import apsw
from msgspec import json

from polymnia.stores.sql import load_queries

QUERIES = load_queries(Path(__file__).parent)

# An observation's row id is its entity's row id and its ordinal side by side; ordinal 0 is the entity itself.
ORDINAL_BITS = 24
ORDINALS = (1 << ORDINAL_BITS) - 1

Row = tuple[Any, ...]


def run(connection: apsw.Connection, query: str, *bindings: Any) -> list[Row]:
    """The rows that one of the named queries gives."""
    return connection.execute(QUERIES[query], bindings).fetchall()


def run_many(connection: apsw.Connection, query: str, bindings: Collection[Row]) -> None:
    """Run one of the named queries once for each set of bindings."""
    if bindings:  # most writes are of one kind, and asking for nothing takes time too
        connection.executemany(QUERIES[query], bindings)


def as_json(values: Iterable[object]) -> str:
    """Many values in one binding; the query takes them apart with `json_each`."""
    return json.encode(list(values)).decode()
