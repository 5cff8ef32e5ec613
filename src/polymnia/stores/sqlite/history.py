"""History in SQLite: what `version_history` reads, from the connection's transaction, and the feed of changes."""

from collections.abc import Callable, Collection, Iterable

import apsw

from polymnia.model import Change, Entity, Note, Observation
from polymnia.stores.sqlite.rows import (
    Row,
    as_json,
    run,
    sort_rows,
    unpack_entity,
    unpack_note,
    unpack_uid,
)

# Changes read at once, so that a large import elsewhere arrives in steps.
MAX_FEED_CHANGES = 100


class SqliteRows:
    """The versions in the file, as the connection's transaction sees them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, query: str, *values: object) -> list[Row]:
        return run(self._connection, query, *[_bind(each) for each in values])

    def unpack_entity(self, row: Row, observations: tuple[Observation, ...]) -> Entity:
        return unpack_entity(row, observations)

    def unpack_note(self, row: Row) -> Note:
        return unpack_note(row)

    def unpack_uid(self, uid: bytes | str) -> str:
        return unpack_uid(uid)

    def sort(self, rows: Iterable[Row]) -> list[Row]:
        return sort_rows(rows)


class SqliteChangeFeed:
    """The changes that other servers make to one file."""

    def __init__(
        self, server: str, since: int, read: Callable[[int, int], list[tuple[str, Change]]]
    ) -> None:
        self._server = server
        self._since = since
        self._read = read

    def read(self) -> list[Change]:
        found = self._read(self._since, MAX_FEED_CHANGES)
        if found:
            self._since = found[-1][1].id
        return [change for server, change in found if server != self._server]


def _bind(value: object) -> object:
    """Return a collection as one binding, which the query takes apart with `json_each`."""
    return (
        as_json(value)
        if isinstance(value, Collection) and not isinstance(value, str | bytes)
        else value
    )
