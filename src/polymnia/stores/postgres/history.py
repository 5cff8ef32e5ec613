"""History in PostgreSQL: what `version_history` reads, from the connection's transaction."""

from collections.abc import Collection, Iterable

from polymnia.model import Entity, Note, Observation
from polymnia.stores.postgres.connection import Row
from polymnia.stores.postgres.database import WorkspaceConnection
from polymnia.stores.postgres.rows import columns, run, unpack_entity, unpack_note

# These write: their rows come with the commit.
_WRITES = frozenset(
    {
        "delete_vectors_of",
        "forget_updates",
        "join_session",
        "leave_sessions",
        "purge_updates",
        "record_purge",
        "remove_server",
        "set_mark",
        "settle_updates",
    }
)
# These take pairs, as one array for each half.
_PAIRS = frozenset({"authors_of"})


class PostgresRows:
    """The versions of a workspace, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection) -> None:
        self._connection = connection

    def run(self, query: str, *values: object) -> list[Row]:
        if query in _WRITES:
            self._connection.write(query, *values)
            return []
        if query in _PAIRS:
            (pairs,) = values
            assert isinstance(pairs, Collection)
            return run(self._connection, query, *columns(pairs)) if pairs else []
        return run(self._connection, query, *values)

    def unpack_entity(self, row: Row, observations: tuple[Observation, ...]) -> Entity:
        return unpack_entity(row, observations)

    def unpack_note(self, row: Row) -> Note:
        return unpack_note(row)

    def unpack_uid(self, uid: str) -> str:
        return uid

    def sort(self, rows: Iterable[Row]) -> list[Row]:
        return sorted(rows, key=_first_two)


def _first_two(row: Row) -> Row:
    """Return what rows are ordered by: an id, or an entity and an ordinal. Other columns may be None."""
    return row[:2]
