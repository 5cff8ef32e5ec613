"""The rows of a store with all versions, as `polymnia migrate` copies them between stores."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Tables keep the words of their first edition. A card is one version of an entity's name, type,
# summary, tags and aliases; an observation is one version of a fact; a template is the text of a
# perspective. Rows of `entities` are the identities to which cards and observations belong.

# One row. Tags are a tuple or None, a vector is little-endian: float16, or a client's float32.
TableRow = tuple[Any, ...]
# The same row by the names of its columns. A column without a value is missing or None.
NamedRow = dict[str, Any]
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
        "successor",
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


def table_rows(table: str, rows: Iterable[NamedRow]) -> list[TableRow]:
    """Return rows with the columns in the order of the table."""
    columns = TABLES[table]
    return [tuple([row.get(column) for column in columns]) for row in rows]
