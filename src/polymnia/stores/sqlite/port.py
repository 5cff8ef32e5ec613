"""One transaction of a SQLite file, for the versioned store."""

from collections.abc import Callable, Collection, Iterable, KeysView, Sequence
from typing import TYPE_CHECKING, Any

import apsw
from msgspec import DecodeError, json

from polymnia.disk.lock import ServerLock
from polymnia.model import Change, Counts
from polymnia.search.terms import fold, parts_of
from polymnia.stores.sqlite.connection import as_json, run, run_many
from polymnia.stores.versioned.port import Identity, IndexedText, LastChange, Row

if TYPE_CHECKING:
    from polymnia.stores.contract import GraphReader
    from polymnia.stores.paths import PathStep
    from polymnia.stores.sqlite.search import SqliteWords
    from polymnia.stores.sqlite.vectors import SqliteVectors, VectorIndexes

_COLLECTIONS = (list, tuple, set, frozenset, dict, KeysView)
# Padding, so that the last characters of a text start a trigram too.
_TRIGRAM_PADDING = "\n\n"


class SqlitePort:
    """The rows as the connection's transaction sees them."""

    def __init__(
        self, connection: apsw.Connection, server: ServerLock, indexes: "VectorIndexes"
    ) -> None:
        self.connection = connection
        self.server = server
        self._indexes = indexes

    @property
    def words(self) -> "SqliteWords":
        from polymnia.stores.sqlite.search import SqliteWords

        return SqliteWords(self)

    @property
    def vectors(self) -> "SqliteVectors":
        from polymnia.stores.sqlite.vectors import SqliteVectors

        return SqliteVectors(self, self._indexes)

    def run(self, query: str, *values: object) -> list[Row]:
        return run(self.connection, query, *map(_bind, values))

    def run_together(self, *calls: tuple[Any, ...]) -> list[list[Row]]:
        return [self.run(*call) for call in calls]

    def answer_together(self, questions: Sequence[Callable[[], Any]]) -> list[Any]:
        return [question() for question in questions]

    def path_steps(self, read: "GraphReader", source: str, target: str) -> "Iterable[PathStep]":
        from polymnia.stores.paths import walk_path

        return walk_path(read, source, target)

    def run_keyed(self, query: str, keys: Collection[Row]) -> list[Row]:
        return run(self.connection, query, as_json(keys))

    def write(self, query: str, *values: object) -> None:
        self.run(query, *values)

    def write_rows(self, query: str, rows: Collection[Row], *values: object) -> None:
        run_many(self.connection, query, [(*row, *values) for row in rows] if values else rows)

    def write_table(self, table: str, query: str, rows: Sequence[Row]) -> None:
        if table == "changes":
            actors = {(actor, server) for _, _, actor, server, *_ in rows}
            run_many(self.connection, "insert_actor", list(actors))
        run_many(self.connection, query, rows)

    def read_vector_row(self, row: Row) -> Row:
        return row

    def find_identities(self, ids: Collection[str]) -> list[Identity]:
        packed = {self.pack_uid(uid): uid for uid in ids}
        if not packed:
            return []
        texts = [uid for uid in packed if isinstance(uid, str)]
        uuids = [uid.hex() for uid in packed if isinstance(uid, bytes)]
        rows = run(self.connection, "entities_by_uid", as_json(texts), as_json(uuids))
        return [(packed[uid], entity, name) for uid, entity, name in rows]

    def counts(self) -> Counts:
        rows = run(self.connection, "totals") or run(self.connection, "count_living")
        return Counts(*rows[0])

    def stored_bytes(self) -> int:
        ((stored,),) = run(self.connection, "stored_bytes")
        return int(stored)

    def last_change(self) -> LastChange:
        rows = run(self.connection, "last_change")
        return LastChange(*rows[0]) if rows else LastChange()

    def index(self, texts: Sequence[IndexedText]) -> None:
        # By ascending id: the indexes write a segment for every step back.
        characters = [(text.id, fold(text.characters) + _TRIGRAM_PADDING) for text in texts]
        run_many(self.connection, "insert_trigrams", characters)
        run_many(self.connection, "insert_words", [word_row(text) for text in texts])

    def unindex_ended(self, change: int) -> None:
        ended = run(self.connection, "ended_by", change)
        run_many(self.connection, "delete_trigrams", ended)
        run_many(self.connection, "delete_words", ended)

    def after_erasing(self) -> None:
        self.write("request_rewrite")  # unused space of the file has copies

    def record(self, change: Change, number: int, last_row: int) -> None:
        actor = (change.actor, self.server.name)
        rows = run(self.connection, "actor_id", *actor)
        if not rows:
            run(self.connection, "insert_actor", *actor)
            rows = run(self.connection, "actor_id", *actor)
        about = (number, change.at, rows[0][0], change.operation, last_row)
        run(self.connection, "insert_change", *about)
        before = run(self.connection, "last_row_of", number - 1)
        last_row_before = before[0][0] if before else 0
        if not run(self.connection, "update_totals", number, last_row_before, last_row):
            # The first change, or one after rows were copied or salvaged.
            run(self.connection, "set_totals", number, *run(self.connection, "count_living")[0])

    def sort(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows in order. Raise CorruptError if a column has values of several types."""
        try:
            return sorted(rows)
        except TypeError as exc:
            raise apsw.CorruptError(f"a value has the wrong type: {exc}") from exc

    def pack_uid(self, uid: str) -> bytes | str:
        """Return a UUID as its 16 bytes, and any other id as it is."""
        if len(uid) == 36 and uid[8] == uid[13] == uid[18] == uid[23] == "-":
            digits = uid.replace("-", "")
            try:
                packed = bytes.fromhex(digits)
            except ValueError:
                return uid
            return packed if packed.hex() == digits else uid  # capitals would not come back
        return uid

    @staticmethod
    def unpack_uid(uid: bytes | str) -> str:
        if isinstance(uid, str):
            return uid
        text = uid.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def pack_tags(self, tags: tuple[str, ...]) -> str | None:
        return as_json(tags) if tags else None

    def unpack_tags(self, tags: str | None) -> tuple[str, ...]:
        if tags is None:
            return ()
        try:
            return json.decode(tags, type=tuple[str, ...])
        except DecodeError as exc:
            raise apsw.CorruptError(f"tags are not a JSON array: {exc}") from exc


def word_row(text: IndexedText) -> Row:
    """Return a passage as a row of the words index."""
    labels = " ".join(text.labels)
    whole = " ".join(filter(None, (text.name, labels, text.content)))
    return (text.id, text.name, labels or None, text.content, parts_of(whole) or None)


def _bind(value: object) -> object:
    """Return a collection as one binding, which the query takes apart with `json_each`."""
    if value is None or isinstance(value, str | int | bytes):  # most values
        return value
    return as_json(value) if isinstance(value, _COLLECTIONS) else value
