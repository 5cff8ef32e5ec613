"""Copy the rows of a versioned store as they are, to and from other stores."""

from collections.abc import Callable, Iterator, Sequence

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
    for row in _read_in_batches(port, table):
        if table == "vectors":
            yield port.read_vector_row(row)
        else:
            unpack = _unpack_tags(port)
            forms = {"uid": port.unpack_uid, "tags": unpack, "aliases": unpack}
            yield _convert(table, row, forms)


def write_rows(port: DatabasePort, table: str, rows: Sequence[TableRow]) -> None:
    """Add rows of another store, and index those that live."""

    def pack_texts(texts: Sequence[str] | None) -> object:
        return port.pack_tags(tuple(texts or ()))

    forms = {"uid": port.pack_uid, "tags": pack_texts, "aliases": pack_texts}
    port.write_table(table, f"write_{table}", [_convert(table, row, forms) for row in rows])
    if table not in _TEXTS:
        return
    living = [row for row in rows if row[-1] is None]
    texts = [_TEXTS[table](row) for row in living]
    texts.sort(key=lambda text: text.id)
    port.index(texts)
    if table == "notes":
        port.write_rows("insert_note_tags", [(text.id,) for text in texts if text.labels])


def _read_in_batches(port: DatabasePort, table: str) -> Iterator[Row]:
    columns = _KEY_COLUMNS.get(table)
    if columns is None:
        yield from port.run(f"read_{table}")
        return
    key: Row = (0,) * columns
    # Rows that are read at once.
    while rows := port.run(f"read_{table}", *key, 5_000):
        yield from rows
        key = rows[-1][:columns]


def _convert(table: str, row: Row, forms: dict[str, Callable[..., object]]) -> TableRow:
    """Return the row with the columns in another form that are stored in one of their own."""
    if table not in ("entities", "cards", "notes"):
        return row
    values = list(row)
    for position, column in enumerate(TABLES[table]):
        if column in forms:
            values[position] = forms[column](row[position])
    return tuple(values)


def _unpack_tags(port: DatabasePort) -> Callable[..., object]:
    return lambda tags: port.unpack_tags(tags) or None


def _card(row: TableRow) -> IndexedText:
    number, _, name, kind, summary, _, tags, *_ = row
    return card_text(number, name, kind, tags or (), summary)


def _fact(row: TableRow) -> IndexedText:
    number, _, _, text, *_ = row
    return fact_text(number, text)


def _note(row: TableRow) -> IndexedText:
    number, key, text, tags, *_ = row
    return note_text(number, key, text, tags or ())


_TEXTS = {"cards": _card, "observations": _fact, "notes": _note}
