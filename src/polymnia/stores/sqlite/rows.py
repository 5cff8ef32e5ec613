"""Run named queries, and convert values to and from the form in which SQLite stores them."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import apsw
from msgspec import DecodeError, json

from polymnia.stores.sql import load_queries

QUERIES = load_queries(Path(__file__).parent)
Row = tuple[Any, ...]


def run(connection: apsw.Connection, query: str, *bindings: Any) -> list[Row]:
    """Return the rows of a named query."""
    return connection.execute(QUERIES[query], bindings).fetchall()


def run_many(connection: apsw.Connection, query: str, bindings: Collection[Row]) -> None:
    """Run a named query once for each set of bindings."""
    if bindings:
        connection.executemany(QUERIES[query], bindings)


def as_json(values: Iterable[object]) -> str:
    """Encode many values as one binding, which the query takes apart with `json_each`."""
    return json.encode(list(values)).decode()


def sort_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in order. Raise CorruptError if a column has values of several types."""
    try:
        return sorted(rows)
    except TypeError as exc:
        raise apsw.CorruptError(f"a value has the wrong type: {exc}") from exc


def pack_uid(uid: str) -> bytes | str:
    """Return a UUID as its 16 bytes, and any other id as it is."""
    if len(uid) == 36 and uid[8] == uid[13] == uid[18] == uid[23] == "-":
        digits = uid.replace("-", "")
        try:
            packed = bytes.fromhex(digits)
        except ValueError:
            return uid
        return packed if packed.hex() == digits else uid  # capitals would not come back
    return uid


def find_identities(
    connection: apsw.Connection, ids: Collection[str]
) -> list[tuple[str, int, str | None]]:
    """Return the entities with these ids, living or not: id, number and, if they live, name."""
    packed = {pack_uid(row_id): row_id for row_id in ids}
    if not packed:
        return []
    texts = [uid for uid in packed if isinstance(uid, str)]
    uuids = [uid.hex() for uid in packed if isinstance(uid, bytes)]
    rows = run(connection, "entities_by_uid", as_json(texts), as_json(uuids))
    return [(packed[uid], entity, name) for uid, entity, name in rows]


def unpack_uid(uid: bytes | str) -> str:
    """Return the id that `pack_uid` packed."""
    if isinstance(uid, str):
        return uid
    text = uid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def pack_tags(tags: tuple[str, ...]) -> str | None:
    """Return tags as a JSON array; None if there are none."""
    return as_json(tags) if tags else None


def unpack_tags(packed: str | None) -> tuple[str, ...]:
    """Return the tags of a JSON array. Raise CorruptError for anything else."""
    if packed is None:
        return ()
    try:
        return json.decode(packed, type=tuple[str, ...])
    except DecodeError as exc:
        raise apsw.CorruptError(f"tags are not a JSON array: {exc}") from exc
