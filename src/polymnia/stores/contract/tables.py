"""The rows of a store as they are, with all versions: what `polymnia migrate` copies from one store to another."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

# One row. Tags are a tuple or None, a vector is little-endian: float16, or a client's float32.
TableRow = tuple[Any, ...]

# The tables in the order in which they are copied, with their columns. Rows are in the order of their first columns.
TABLES: dict[str, tuple[str, ...]] = {
    "changes": ("id", "at", "actor", "server", "operation", "last_row"),
    "purges": ("change",),
    "marks": ("name", "change", "at"),
    "entities": ("id", "uid", "next_ordinal", "updated_at", "touched"),
    "updates": ("entity", "change", "at"),
    "cards": (
        "id",
        "entity",
        "name",
        "type",
        "summary",
        "summary_at",
        "tags",
        "created_at",
        "since",
        "until",
    ),
    "observations": (
        "id",
        "entity",
        "ordinal",
        "text",
        "created_at",
        "valid_at",
        "source",
        "since",
        "until",
    ),
    "relations": ("id", "source", "target", "type", "created_at", "since", "until"),
    "notes": ("id", "key", "text", "tags", "created_at", "updated_at", "since", "until"),
    "models": ("id", "identity", "url", "dimension"),
    "templates": ("id", "template"),
    "perspectives": ("id", "name", "template", "query"),
    "vectors": ("passage", "template", "model", "vector"),
}


class TableReader(Protocol):
    """Reads of all rows, living or not. Vectors are those of living passages, and all that clients supplied."""

    def count(self, table: str) -> int:
        """Return how many rows a table has."""

    def read(self, table: str) -> Iterator[TableRow]:
        """Yield the rows of a table, in order."""


class TableWriter(Protocol):
    """Writes of rows into a store that has no other rows."""

    def write(self, table: str, rows: Sequence[TableRow]) -> None:
        """Add rows that follow those the table has, and index what is living. Each call is one transaction."""

    def finish(self) -> None:
        """Update the counts of the store, after the last row."""
