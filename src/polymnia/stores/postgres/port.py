"""One transaction of a PostgreSQL workspace, for the versioned store."""

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from struct import unpack
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from polymnia.model import Change, Counts
from polymnia.search.embedding import shorten, unpack_vector
from polymnia.search.terms import fold
from polymnia.stores.contract import TABLES, GraphReader
from polymnia.stores.paths import MAX_PATH_NAMES, PathStep
from polymnia.stores.postgres.connection import array_literal
from polymnia.stores.postgres.transaction import WorkspaceConnection, answer_together
from polymnia.stores.postgres.words import word_vector
from polymnia.stores.versioned.port import Identity, IndexedText, LastChange, Row
from polymnia.stores.versioned.rows import NewCard, NewFact, NewNote

if TYPE_CHECKING:
    from polymnia.stores.postgres.presence import ServerPresence
    from polymnia.stores.postgres.search import PostgresWords
    from polymnia.stores.postgres.vectors import PostgresVectors

# For the statements that also store folded texts: the columns of their rows, and those that
# substring search looks into.
_SEARCHED_COLUMNS = {
    "insert_cards": (NewCard._fields, ("name", "type")),
    "write_cards": (TABLES["cards"], ("name", "type")),
    "insert_observations": (NewFact._fields, ("text",)),
    "write_observations": (TABLES["observations"], ("text",)),
    "insert_notes": (NewNote._fields, ("key", "text")),
    "write_notes": (TABLES["notes"], ("key", "text")),
}
# What precedes the numbers of a vector in pgvector's binary format.
_HEADER_BYTES = 4


class PostgresPort:
    """The rows of a workspace as the connection's transaction sees them."""

    def __init__(
        self, connection: WorkspaceConnection, presence: "ServerPresence", store: str = ""
    ) -> None:
        """`store` tells the changes of this store from those that others make."""
        self.connection = connection
        # The key of this transaction's change: it shows whether a lost commit took place.
        self.key: UUID | None = None
        self.change: int | None = None
        self.rows_written = 0
        self._presence = presence
        self._store = store

    @property
    def words(self) -> "PostgresWords":
        from polymnia.stores.postgres.search import PostgresWords

        return PostgresWords(self)

    @property
    def vectors(self) -> "PostgresVectors":
        from polymnia.stores.postgres.vectors import PostgresVectors

        return PostgresVectors(self)

    @property
    def server(self) -> "PostgresServers":
        return PostgresServers(self.connection, self._presence)

    def run(self, query: str, *values: object) -> list[Row]:
        return self.connection.ask(query, *values)

    def run_together(self, *calls: tuple[Any, ...]) -> list[list[Row]]:
        return self.connection.ask_all(calls)

    def answer_together(self, questions: Sequence[Callable[[], Any]]) -> list[Any]:
        return answer_together(questions)

    def path_steps(self, read: GraphReader, source: str, target: str) -> list[PathStep]:
        """Return all steps from one statement: a long path would take thousands."""
        rows = self.run("path_steps", source, target, MAX_PATH_NAMES)
        return [PathStep(*row) for row in rows]

    def run_keyed(self, query: str, keys: Collection[Row]) -> list[Row]:
        return self.run(query, *columns(keys)) if keys else []

    def write(self, query: str, *values: object) -> None:
        self.connection.write(query, *values)

    def write_rows(self, query: str, rows: Collection[Row], *values: object) -> None:
        if not rows:
            return
        self.rows_written += len(rows)
        arrays = columns(rows)
        searched = _SEARCHED_COLUMNS.get(query)
        if searched is None:
            self.connection.write(query, *arrays, *values)
            return
        columns_of_rows, names = searched
        texts = zip(*[arrays[columns_of_rows.index(name)] for name in names], strict=True)
        folded = [fold_beyond_ascii("\n".join(parts)) for parts in texts]
        self.connection.write(query, *arrays, *values, folded)

    def write_table(self, table: str, query: str, rows: Sequence[Row]) -> None:
        if table == "vectors":
            dimensions = {row[0]: row[3] for row in self.run("read_models")}
            packed: list[Row] = []
            for passage, template, model, vector in rows:
                dimension = dimensions[model]
                if len(vector) == 2 * dimension:  # an embedder's, in half precision
                    text = _as_text(unpack(f"<{dimension}e", vector))
                    packed.append((passage, template, model, None, text))
                else:
                    packed.append((passage, template, model, vector, pack_half(vector)))
            rows = packed
        self.write_rows(query, rows)
        if table == "changes":
            self.write("add_copied_changes")

    def read_vector_row(self, row: Row) -> Row:
        *key, raw, vector = row
        return (*key, _half_precision(vector) if raw is None else raw)

    def find_identities(self, ids: Collection[str]) -> list[Identity]:
        rows = self.run("entities_by_uid", ids) if ids else []
        return [(uid, entity, name) for uid, entity, name in rows]

    def counts(self) -> Counts:
        return Counts(*self.run("count_living")[0])

    def stored_bytes(self) -> int:
        ((stored,),) = self.run("stored_bytes")
        return int(stored)

    def last_change(self) -> LastChange:
        return self.connection.last_change()

    def index(self, texts: Sequence[IndexedText]) -> None:
        if not texts:
            return
        vectors = [word_vector(text.name, text.labels, text.content) for text in texts]
        rows = [
            (text.id, words.length, words.vector)
            for text, words in zip(texts, vectors, strict=True)
        ]
        self.write_rows("insert_words", rows)
        # In order, so that writers never deadlock.
        terms = sorted(set(chain.from_iterable(words.lexemes for words in vectors)))
        if terms:
            self.write("insert_terms", terms)
        self.write("add_passages", len(texts), sum(words.length for words in vectors))

    def unindex_ended(self, change: int) -> None:
        self.write("unindex_ended", change)

    def after_erasing(self) -> None:
        self.write("delete_unused_terms")

    def record(self, change: Change, number: int, last_row: int) -> None:
        self.key, self.change = uuid4(), number
        made_by = (change.actor, self._store, change.operation)
        self.write("record_change", number, change.at, *made_by, last_row, self.key)
        if last_row - self.last_change().counted_row > 250:
            self.write("keep_counts")

    def sort(self, rows: Iterable[Row]) -> list[Row]:
        return sorted(rows, key=_first_two)

    def pack_uid(self, uid: str) -> str:
        return uid

    def unpack_uid(self, uid: str) -> str:
        return uid

    def pack_tags(self, tags: tuple[str, ...]) -> str | None:
        return array_literal(tags) if tags else None  # a literal, so that many fit one array

    def unpack_tags(self, tags: list[str] | None) -> tuple[str, ...]:
        return tuple(tags or ())


class PostgresServers:
    """The servers that run, as the connection's transaction sees them."""

    def __init__(self, connection: WorkspaceConnection, presence: "ServerPresence") -> None:
        self.name = presence.name
        self.acquire = presence.acquire
        self._connection = connection
        self._presence = presence

    def is_running(self, name: str) -> bool:
        return self._presence.is_running(self._connection, name)


def columns(rows: Collection[Row]) -> list[list[Any]]:
    """Return rows as columns. Each is one array for `unnest`."""
    return [list(column) for column in zip(*rows, strict=True)]


def fold_beyond_ascii(text: str) -> str | None:
    """Return the folded text; None if PostgreSQL's `lower` makes the same in the collation "C"."""
    if text.isascii():
        return None
    folded = fold(text)
    # The bytes' lower() changes ASCII letters only, as that collation does.
    return folded if folded != text.encode().lower().decode() else None


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


def _half_precision(vector: bytes) -> bytes:
    """Return a halfvec in pgvector's binary format as little-endian float16."""
    numbers = array("H", vector[_HEADER_BYTES:])
    numbers.byteswap()
    return numbers.tobytes()


def _as_text(numbers: Sequence[float]) -> str:
    return f"[{','.join(map(repr, numbers))}]"


def _first_two(row: Row) -> Row:
    """Return what rows are ordered by: an id, or an entity and an ordinal. Others may be None."""
    return row[:2]
