"""The rows of a store with all versions, as `polymnia migrate` copies them between stores."""

from collections.abc import Callable, Iterator
from typing import Any

# One row. Tags are a tuple or None, a vector is little-endian: float16, or a client's float32.
TableRow = tuple[Any, ...]
# Yields the rows of a table, in order.
ReadRows = Callable[[str], Iterator[TableRow]]

# The tables in the order in which they are copied, with their columns.
# Rows are in the order of their first columns.
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
        "aliases",
        "due",
        "status",
        "expires",
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
        "expires",
        "author",
        "since",
        "until",
    ),
    "relations": ("id", "source", "target", "type", "created_at", "since", "until"),
    "notes": ("id", "key", "text", "tags", "created_at", "updated_at", "since", "until"),
    "models": ("id", "identity", "url", "dimension", "cosine_zero", "cosine_unit"),
    "templates": ("id", "template"),
    "perspectives": ("id", "name", "template", "query"),
    "vectors": ("passage", "template", "model", "vector"),
}
