"""Read the tables of a store whose rows are versions, a part at a time."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from polymnia.stores.contract.tables import TableRow

# Rows that are read at once.
BATCH = 5_000


class TableQueries(Struct, frozen=True):
    """The queries of one table, and how many columns its key has. Small tables have no key and are read whole."""

    count: str
    read: str
    write: str
    key: int = 1


QUERIES = {
    "changes": TableQueries("count_changes", "read_changes", "write_changes"),
    "purges": TableQueries("count_purges", "read_purges", "write_purges", 0),
    "marks": TableQueries("count_marks", "read_marks", "write_marks", 0),
    "entities": TableQueries("count_entities", "read_entities", "write_entities"),
    "updates": TableQueries("count_updates", "read_updates", "write_updates", 2),
    "cards": TableQueries("count_cards", "read_cards", "write_cards"),
    "observations": TableQueries("count_observations", "read_observations", "write_observations"),
    "relations": TableQueries("count_relations", "read_relations", "write_relations"),
    "notes": TableQueries("count_notes_kept", "read_notes", "write_notes"),
    "models": TableQueries("count_models", "read_models", "write_models", 0),
    "templates": TableQueries("count_templates", "read_templates", "write_templates", 0),
    "perspectives": TableQueries(
        "count_perspectives", "read_perspectives", "write_perspectives", 0
    ),
    "vectors": TableQueries("count_vectors_kept", "read_vectors", "write_vectors", 3),
}


def read_in_batches(run: Callable[..., list[TableRow]], table: str) -> Iterator[TableRow]:
    """Yield the rows of a table. `run` returns the rows of a named query."""
    queries = QUERIES[table]
    if not queries.key:
        yield from run(queries.read)
        return
    last: TableRow = (0,) * queries.key
    while rows := run(queries.read, *last, BATCH):
        yield from rows
        last = rows[-1][: queries.key]
