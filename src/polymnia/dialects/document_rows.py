"""The history in a JSON document: the rows of a store's tables as arrays, each table with its columns and checksums."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, Any

from msgspec import DecodeError, Meta, msgpack
from msgspec.json import Decoder, encode

from polymnia.errors import BadInput
from polymnia.stores.contract import TABLES, TableReader, TableRow

Number = Annotated[int, Meta(ge=-(2**62), le=2**62)]
Tags = tuple[str, ...] | None
# What the values of a row are, for each table.
_ROWS: dict[str, Any] = {
    "changes": tuple[Number, Number, str, str, str, Number],
    "purges": tuple[Number],
    "marks": tuple[str, Number, Number],
    "entities": tuple[Number, str, Number, Number, Number],
    "updates": tuple[Number, Number, Number],
    "cards": tuple[
        Number, Number, str, str, str | None, Number | None, Tags, Number, Number, Number | None
    ],
    "observations": tuple[
        Number, Number, Number, str, Number, Number | None, str | None, Number, Number | None
    ],
    "relations": tuple[Number, str, str, str, Number, Number, Number | None],
    "notes": tuple[Number, str, str, Tags, Number, Number, Number, Number | None],
    "models": tuple[Number, str, str, Number],
    "templates": tuple[Number, str],
    "perspectives": tuple[Number, str, Number, str],
    "vectors": tuple[Number, Number, Number, bytes],
}
_DECODERS = {table: Decoder(shape) for table, shape in _ROWS.items()}
# The `url` of the models whose vectors clients supplied.
_CLIENT = "client"
_NUL = b"\\u0000"


def row_lines(tables: TableReader, seal: str) -> Iterator[bytes]:
    """Yield the member `history` of a document whose other elements have this checksum."""
    whole = sha256()
    yield b',\n"history":{"tables":{'
    for number, (table, columns) in enumerate(TABLES.items()):
        yield b'%s\n"%s":{"columns":%s,"rows":[' % (
            b"," if number else b"",
            table.encode(),
            encode(columns),
        )
        separator = b"\n"
        for row in kept_rows(tables, table):
            whole.update(msgpack.encode(row))
            yield separator + encode(row)
            separator = b",\n"
        yield b"\n]}"
    yield b'\n},"document":"%s","rows":"%s"}' % (seal.encode(), whole.hexdigest().encode())


def kept_rows(tables: TableReader, table: str) -> Iterator[TableRow]:
    """Yield the rows of a table that a document holds: all, except the vectors that an embedder can make again."""
    if table != "vectors":
        return tables.read(table)
    clients = {model for model, _, url, _ in tables.read("models") if url == _CLIENT}
    return (row for row in tables.read(table) if row[2] in clients)


def parse_row(table: str, data: bytes, place: str) -> TableRow:
    """Return a row of a table. Raise BadInput."""
    try:
        row: TableRow = _DECODERS[table].decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"{place}: {exc}") from exc
    if _NUL in data and any(
        "\x00" in "".join(each) for each in row if isinstance(each, str | tuple)
    ):
        raise BadInput(
            f"{place}: a text contains a NUL character (U+0000), which cannot be stored; remove it"
        )
    return row
