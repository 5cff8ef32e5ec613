"""Run named queries, and convert between rows of PostgreSQL and the values of the model."""

from array import array
from collections.abc import Collection, Iterable, Sequence
from struct import unpack

from polymnia.model import Entity, Note, Observation
from polymnia.search.embedding import shorten, unpack_vector
from polymnia.stores.postgres.connection import Row, array_literal
from polymnia.stores.postgres.database import WorkspaceConnection
from polymnia.stores.version_history import unpack_observation

# What precedes the numbers of a vector in pgvector's binary format.
_HEADER_BYTES = 4


def run(connection: WorkspaceConnection, query: str, *values: object) -> list[Row]:
    """Return the rows of a named query. The workspace's id precedes the values."""
    connection.send(query, *values)
    return connection.fetch()[-1]


def assemble(entities: list[Row], observations: Iterable[Row]) -> list[Entity]:
    """Return the entities of these rows; the observations' rows start with the entity and are in order."""
    of: dict[int, list[Observation]] = {row[0]: [] for row in entities}
    for entity, *rest in observations:
        of.setdefault(entity, []).append(unpack_observation(*rest))
    return [unpack_entity(row, tuple(of[row[0]])) for row in entities]


def unpack_entity(row: Row, observations: tuple[Observation, ...]) -> Entity:
    """Return the entity of a row. Its first ten columns are those that all queries for entities select."""
    _, name, kind, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at = row[:10]
    about = (summary, summary_at or 0, tuple(tags or ()))
    return Entity(name, kind, observations, uid, next_ordinal, *about, created_at, updated_at)


def unpack_note(row: Row) -> Note:
    """Return the vault note of a row: id, key, text, tags, created_at, updated_at, embedding."""
    _, key, text, tags, created_at, updated_at, embedding = row
    times = {"created_at": created_at, "updated_at": updated_at}
    return Note(key, text, tuple(tags or ()), embedding=embedding or b"", **times)


def pack_tags(tags: tuple[str, ...]) -> str | None:
    """Return tags as the literal of an array, so that many fit one array; None if there are none."""
    return array_literal(tags) if tags else None


def pack_text(vector: bytes) -> str:
    """Return a float32 vector in pgvector's text format."""
    return _as_text(unpack_vector(vector))


def pack_half(vector: bytes) -> str:
    """Return a float32 vector, shortened to float16 and length one, in pgvector's text format."""
    half = shorten(vector)
    return _as_text(unpack(f"<{len(half) // 2}e", half))


def unpack_binary(vector: bytes) -> bytes:
    """Return a vector in pgvector's binary format as little-endian float32."""
    numbers = array("f", vector[_HEADER_BYTES:])
    numbers.byteswap()
    return numbers.tobytes()


def columns(rows: Collection[Row]) -> list[list[object]]:
    """Return rows as columns, each of which is one array for `unnest`."""
    return [list(column) for column in zip(*rows, strict=True)]


def _as_text(numbers: Sequence[float]) -> str:
    return f"[{','.join(map(repr, numbers))}]"
