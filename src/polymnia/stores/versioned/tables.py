"""Copy the rows of a versioned store as they are, to and from other stores."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from polymnia.stores.contract.tables import TABLES, TableRow
from polymnia.stores.versioned.port import DatabasePort, IndexedText, Row
from polymnia.stores.versioned.write import card_text, fact_text, note_text

# How many columns the keys of tables have. Small tables have no key here and are read whole.
_KEY_COLUMNS = {
    "changes": 1,
    "entities": 1,
    "updates": 2,
    "cards": 1,
    "observations": 1,
    "relations": 1,
    "notes": 1,
    "vectors": 3,
}


def read_rows(port: DatabasePort, table: str) -> Iterator[TableRow]:
    """Yield the rows of a table, in order."""

    def unpack_tags(tags: Any) -> object:
        return port.unpack_tags(tags) or None

    forms = {"uid": port.unpack_uid, "tags": unpack_tags, "aliases": unpack_tags}
    columns = _KEY_COLUMNS.get(table)
    if columns is None:
        yield from port.run(f"read_{table}")
        return
    key: Row = (0,) * columns
    while rows := port.run(f"read_{table}", *key, 5_000):
        for row in rows:
            yield port.read_vector_row(row) if table == "vectors" else _convert(table, row, forms)
        key = rows[-1][:columns]


def write_rows(port: DatabasePort, table: str, rows: Sequence[TableRow]) -> None:
    """Add rows of another store, and index those that live."""

    def pack_tags(tags: Sequence[str] | None) -> object:
        return port.pack_tags(tuple(tags or ()))

    forms = {"uid": port.pack_uid, "tags": pack_tags, "aliases": pack_tags}
    port.write_table(table, f"write_{table}", [_convert(table, row, forms) for row in rows])
    texts: list[IndexedText] = []
    for row in rows:
        if row[-1] is not None:
            continue  # it has ended, or its table has no texts
        if table == "cards":
            number, _, name, kind, summary, _, tags, *_ = row
            texts.append(card_text(number, name, kind, tags or (), summary))
        elif table == "observations":
            number, _, _, text, *_ = row
            texts.append(fact_text(number, text))
        elif table == "notes":
            number, key, text, tags, *_ = row
            texts.append(note_text(number, key, text, tags or ()))
    port.index(sorted(texts, key=lambda text: text.id))
    if table == "notes":
        port.write_rows("insert_note_tags", [(text.id,) for text in texts if text.labels])


def _convert(table: str, row: Row, forms: dict[str, Callable[..., object]]) -> TableRow:
    """Return the row with the columns in another form that are stored in one of their own."""
    if table not in ("entities", "cards", "notes"):
        return row
    values = list(row)
    for position, column in enumerate(TABLES[table]):
        if column in forms:
            values[position] = forms[column](row[position])
    return tuple(values)
