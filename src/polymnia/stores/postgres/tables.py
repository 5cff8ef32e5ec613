"""Copy the rows of a workspace as they are, to and from other stores."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from struct import unpack

from polymnia.stores.contract.tables import TABLES, TableRow
from polymnia.stores.postgres.database import WorkspaceConnection
from polymnia.stores.postgres.rows import columns, pack_half, pack_tags, run
from polymnia.stores.postgres.words import WordVector, word_vector
from polymnia.stores.version_tables import QUERIES, read_in_batches

Transaction = Callable[[], AbstractContextManager[WorkspaceConnection]]

_HEADER_BYTES = 4


class PostgresTables:
    """All rows of a workspace, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection) -> None:
        self._connection = connection

    def count(self, table: str) -> int:
        return int(run(self._connection, QUERIES[table].count)[0][0])

    def read(self, table: str) -> Iterator[TableRow]:
        rows = read_in_batches(lambda query, *values: run(self._connection, query, *values), table)
        if table == "vectors":
            return ((*key, _half(vector) if raw is None else raw) for *key, raw, vector in rows)
        return (_with_tags(table, row, lambda tags: tuple(tags) if tags else None) for row in rows)


class PostgresTableWriter:
    """Adds rows of another store, each call in a transaction of its own."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def write(self, table: str, rows: Sequence[TableRow]) -> None:
        with self._transaction() as connection:
            packed = _pack_vectors(connection, rows) if table == "vectors" else _pack(table, rows)
            connection.write(QUERIES[table].write, *columns(packed))
            living = [row for row in rows if row[-1] is None]
            if table in _WORDS and living:
                _index(connection, [(row[0], _WORDS[table](*row)) for row in living])
            if table == "notes" and (tagged := [row[0] for row in living if row[3]]):
                connection.write("insert_note_tags", tagged)

    def finish(self) -> None:
        with self._transaction() as connection:
            connection.write("finish_copy")


def _index(connection: WorkspaceConnection, passages: Sequence[tuple[int, WordVector]]) -> None:
    connection.write(
        "insert_words",
        *columns([(number, words.length, words.vector) for number, words in passages]),
    )
    connection.write(
        "insert_terms", sorted(set(chain.from_iterable(words.lexemes for _, words in passages)))
    )


def _pack(table: str, rows: Sequence[TableRow]) -> list[TableRow]:
    return [_with_tags(table, row, lambda tags: pack_tags(tuple(tags or ()))) for row in rows]


def _pack_vectors(connection: WorkspaceConnection, rows: Sequence[TableRow]) -> list[TableRow]:
    dimensions = {number: dimension for number, _, _, dimension in run(connection, "read_models")}
    packed: list[TableRow] = []
    for passage, template, model, vector in rows:
        dimension = dimensions[model]
        if len(vector) == 2 * dimension:
            text = f"[{','.join(map(repr, unpack(f'<{dimension}e', vector)))}]"
            packed.append((passage, template, model, None, text))
        else:
            packed.append((passage, template, model, vector, pack_half(vector)))
    return packed


def _half(vector: bytes) -> bytes:
    """Return a halfvec in pgvector's binary format as little-endian float16."""
    numbers = array("H", vector[_HEADER_BYTES:])
    numbers.byteswap()
    return numbers.tobytes()


def _with_tags(table: str, row: TableRow, convert: Callable[..., object]) -> TableRow:
    if "tags" not in TABLES[table]:
        return row
    at = TABLES[table].index("tags")
    return (*row[:at], convert(row[at]), *row[at + 1 :])


def _card_words(
    number: int,
    _: int,
    name: str,
    kind: str,
    summary: str | None,
    at: int,
    tags: Sequence[str] | None,
    *rest: object,
) -> WordVector:
    return word_vector(name, (kind, *(tags or ())), summary)


def _observation_words(number: int, _: int, ordinal: int, text: str, *rest: object) -> WordVector:
    return word_vector(None, (), text)


def _note_words(
    number: int, key: str, text: str, tags: Sequence[str] | None, *rest: object
) -> WordVector:
    return word_vector(key, tags or (), text)


_WORDS: dict[str, Callable[..., WordVector]] = {
    "cards": _card_words,
    "observations": _observation_words,
    "notes": _note_words,
}
