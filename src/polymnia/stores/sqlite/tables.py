"""Copy the rows of a SQLite store as they are, to and from other stores."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import itemgetter

import apsw

from polymnia.stores.contract.tables import TABLES, TableRow
from polymnia.stores.sqlite.rows import pack_tags, pack_uid, run, run_many, unpack_tags, unpack_uid
from polymnia.stores.sqlite.write import TextRows, index
from polymnia.stores.version_tables import QUERIES, read_in_batches

Transaction = Callable[[], AbstractContextManager[apsw.Connection]]

# Columns that are stored in another form than they are copied in.
_UNPACK: dict[str, Callable[..., object]] = {
    "uid": unpack_uid,
    "tags": lambda tags: unpack_tags(tags) or None,
}
_PACK: dict[str, Callable[..., object]] = {
    "uid": pack_uid,
    "tags": lambda tags: pack_tags(tags or ()),
}


class SqliteTables:
    """All rows of the file, as the connection's transaction sees them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def count(self, table: str) -> int:
        return int(run(self._connection, QUERIES[table].count)[0][0])

    def read(self, table: str) -> Iterator[TableRow]:
        rows = read_in_batches(lambda query, *values: run(self._connection, query, *values), table)
        return (_convert(table, row, _UNPACK) for row in rows)


class SqliteTableWriter:
    """Adds rows of another store. Each call is one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def write(self, table: str, rows: Sequence[TableRow]) -> None:
        with self._transaction() as connection:
            if table == "changes":
                run_many(
                    connection,
                    "insert_actor",
                    list({(actor, server) for _, _, actor, server, *_ in rows}),
                )
            run_many(
                connection, QUERIES[table].write, [_convert(table, row, _PACK) for row in rows]
            )
            living = [row for row in rows if row[-1] is None]
            if table == "notes":
                tags = [(tag, row[0]) for row in living for tag in dict.fromkeys(row[3] or ())]
                run_many(connection, "insert_note_tag", tags)
            if table in _TEXTS:
                texts = TextRows()
                for row in sorted(living, key=itemgetter(0)):
                    _TEXTS[table](texts, *row)
                index(connection, texts)

    def finish(self) -> None:
        """Do nothing: this store has no counts besides its tables."""


def _convert(table: str, row: TableRow, forms: dict[str, Callable[..., object]]) -> TableRow:
    """Return the row with the forms of its columns."""
    if table not in ("entities", "cards", "notes"):
        return row
    return tuple(
        [
            forms[column](value) if column in forms else value
            for column, value in zip(TABLES[table], row, strict=True)
        ]
    )


def _add_card(
    texts: TextRows,
    number: int,
    _: int,
    name: str,
    kind: str,
    summary: str | None,
    at: int,
    tags: Sequence[str] | None,
    *rest: object,
) -> None:
    texts.add_card(number, name, kind, tags or (), summary)


def _add_observation(
    texts: TextRows, number: int, _: int, ordinal: int, text: str, *rest: object
) -> None:
    texts.add_observation(number, text)


def _add_note(
    texts: TextRows, number: int, key: str, text: str, tags: Sequence[str] | None, *rest: object
) -> None:
    texts.add_note(number, key, text, tags or ())


_TEXTS: dict[str, Callable[..., None]] = {
    "cards": _add_card,
    "observations": _add_observation,
    "notes": _add_note,
}
