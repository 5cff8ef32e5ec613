"""Salvage a damaged SQLite store: read every row that can be read, and write it to a new store.

A row is read by its id alone, so damaged indexes do not matter. What lives and what is in the trash
is salvaged; older versions and the notes of sessions are not.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import apsw
from msgspec import DecodeError, Struct, json

from polymnia.errors import BadInput, StoreDamaged, StoreError, StoreForeign
from polymnia.model import (
    MAX_ORDINAL,
    VAULT,
    Counts,
    Entity,
    Fact,
    FactSet,
    Note,
    Relation,
    Rows,
)
from polymnia.stores.sqlite.connection import APPLICATION_ID, DRIVER_ERRORS, SEALED_ID, map_errors
from polymnia.stores.sqlite.fill import DeletedEntity, StoreContents, fill
from polymnia.stores.sqlite.port import SqlitePort
from polymnia.stores.sqlite.rows import QUERIES, Row, run
from polymnia.stores.sqlite.store import SqliteStore

# Failed attempts to read a range of rows. A damaged page near the root of a large table needs many.
MAX_FAILURES = 100_000
# The last id to look for when the file does not say what its last id is.
_LAST_ID = 1 << 24
_PAGE_BYTES = 4096
# The queries that read each table by id, and those that tell the last id of a table.
_READ = {
    "entities": "salvage_entities",
    "cards": "salvage_cards",
    "observations": "salvage_observations",
    "relations": "salvage_relations",
    "notes": "salvage_notes",
    "models": "salvage_models",
    "vectors": "salvage_vectors",
}
_LAST = (
    "last_changes",
    "last_entities",
    "last_cards",
    "last_observations",
    "last_relations",
    "last_notes",
    "last_vectors",
)
# The same in files of schema 1, which lack columns.
_READ_SCHEMA_1 = {"cards": "salvage_cards_1", "observations": "salvage_observations_1"}
# The columns that say what a row belongs to.
_OWNER_COLUMNS = {"cards": (1,), "observations": (1, 2)}
_LIVES = 1 << 62
# Aliases, due time, status and expiry of an entity whose card is lost.
_NO_PLAN = (None, None, None, None)


class SalvageReport(Struct, frozen=True):
    """What the new store holds, and a sentence for each row that could not be read."""

    counts: Counts
    notes: int
    lost: tuple[str, ...]


def salvage_sqlite(path: Path, target: Path) -> SalvageReport:
    """Write what can be read of a damaged store to a new one, and leave the damaged one as it is.

    Raise BadInput if the target exists, StoreDamaged if nothing can be read, StoreForeign for
    another program's file.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    if target.exists():
        raise BadInput(f"{target} exists: name a file that does not")
    with (
        TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as directory,
        map_errors(str(path)),
    ):
        copied = Path(directory) / "damaged.db"
        for ending in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{ending}", f"{copied}{ending}")
        with closing(_open(path, copied)) as connection:
            tables = _Tables(connection)
        if not any(tables.rows.values()):
            raise StoreDamaged(f"{path} holds no row that can be read; restore a backup")
        contents = _Salvage(tables).contents()
        part = Path(directory) / "new.db"
        with closing(SqliteStore(str(part))) as store:
            fill(store, contents)
            with store.reading() as read:
                counts = read.counts()
        part.replace(target)
    return SalvageReport(counts, len(contents.living.notes), tuple(tables.lost))


def readable_rows(
    read: Callable[[int, int], Iterable[Row]], last: int
) -> tuple[list[Row], list[tuple[int, int]]]:
    """Return the rows that can be read, and the ranges of ids that cannot.

    `read` yields the rows of a range in order of their ids, which come first.
    A range that fails is divided.
    """
    rows: list[Row] = []
    lost: list[tuple[int, int]] = []
    ranges = [(1, last)]
    failures = 0
    while ranges:
        low, high = ranges.pop()
        try:
            for row in read(low, high):
                rows.append(row)
                low = row[0] + 1
        except DRIVER_ERRORS:
            failures += 1
            if low >= high or failures > MAX_FAILURES:
                lost.append((low, high))
                continue
            middle = (low + high) // 2
            ranges += [(middle + 1, high), (low, middle)]
    return rows, _join_ranges(lost)


def _join_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _open(path: Path, copied: Path) -> apsw.Connection:
    """Open the copy.

    If its list of tables is damaged, it gets that of a new store: all stores have the same tables.
    """
    for repair in (None, _replace_schema):
        if repair is not None:
            repair(copied)
        connection = apsw.Connection(str(copied))
        try:
            connection.execute(
                "PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON"
            ).fetchall()
            tables = {name for (name,) in run(connection, "table_names")}
            mark = connection.pragma("application_id")
            has_columns = bool(run(connection, "card_columns"))
        except DRIVER_ERRORS:
            connection.close()
            continue
        # A table in a damaged list may have a name and no columns.
        if has_columns and tables >= {"cards", "observations"}:
            return connection
        connection.close()
        if tables and mark not in (APPLICATION_ID, SEALED_ID):
            raise StoreForeign(
                f"{path} is a SQLite file of another program; polymnia cannot salvage it"
            )
    raise StoreDamaged(f"{path} holds nothing that can be read; restore a backup")


def _replace_schema(copied: Path) -> None:
    """Overwrite the pages that list the tables with those of a new store."""
    empty = copied.with_name("empty.db")
    SqliteStore(str(empty)).close()
    with closing(apsw.Connection(str(empty))) as connection:
        pages = [page for (page,) in run(connection, "schema_pages")]
    content = bytearray(empty.read_bytes())
    content[32:40] = bytes(8)  # no free pages: those listed may be damaged
    content[92:96] = bytes(4)  # SQLite takes the number of pages from the length of the file
    Path(f"{copied}-wal").unlink(missing_ok=True)
    with copied.open("r+b") as file:
        for page in pages:
            start = (page - 1) * _PAGE_BYTES
            file.seek(start)
            file.write(content[start : start + _PAGE_BYTES])


class _Tables:
    """The readable rows of each table, and what is lost."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        columns = {name for (name,) in run(connection, "card_columns")}
        self._is_old = "status" not in columns
        self._last = self._last_id()
        self.lost: list[str] = []
        self.rows = {
            table: self._read(table) for table in _READ if table not in ("models", "vectors")
        }
        # Vectors that clients supplied are saved; a server computes the others again.
        client_models = {row[0] for row in self._read("models") if row[1] == b"client"}
        self.embeddings: dict[int, bytes] = {}
        if client_models:
            for _, passage, model, vector in self._read("vectors"):
                if model in client_models:
                    self.embeddings[passage] = vector

    def _read(self, table: str) -> list[Row]:
        name = _READ[table]
        if self._is_old:
            name = _READ_SCHEMA_1.get(table, name)
        query = QUERIES[name]
        rows, lost = readable_rows(
            lambda low, high: self._connection.execute(query, (low, high)), self._last
        )
        for low, high in lost:
            self.lost.append(f"{table}: the rows from {low} to {high} cannot be read")
        owner_columns = _OWNER_COLUMNS.get(table, ())
        sound = []
        for row in rows:
            if all(isinstance(row[column], int) for column in owner_columns):
                sound.append(row)
        if len(sound) < len(rows):
            self.lost.append(f"{table}: {len(rows) - len(sound)} rows belong to nothing")
        return sound

    def _last_id(self) -> int:
        """Return the highest id that any table has, as far as the file can say."""
        ids = []
        for query in _LAST:
            with suppress(*DRIVER_ERRORS):
                for (number,) in run(self._connection, query):
                    if isinstance(number, int):
                        ids.append(number)
        if not ids:
            return _LAST_ID
        return max(1, *ids)


class _Salvage:
    """Entities, relations and notes from rows, some of which may be missing."""

    def __init__(self, tables: _Tables) -> None:
        self._embeddings = tables.embeddings
        self._rows = tables.rows
        self._identities = {row[0]: row for row in tables.rows["entities"]}
        self._cards: dict[int, Row] = {}
        for row in sorted(tables.rows["cards"], key=lambda row: (_end_of(row[-1]), row[0])):
            self._cards[row[1]] = row  # the living one, or the last
        self._facts: defaultdict[int, dict[int, Row]] = defaultdict(dict)
        ordered = sorted(tables.rows["observations"], key=lambda row: (_end_of(row[-1]), row[0]))
        for row in sorted(ordered, key=lambda row: not _is_ordinal(row[2])):
            same = self._facts[row[1]]
            ordinal = row[2]
            if not _is_ordinal(ordinal):
                # A damaged ordinal is replaced by one that no other fact has.
                ordinal = max(same, default=0) + 1
            same[ordinal] = (*row[:2], ordinal, *row[3:])
        self._names: set[str] = set()
        self._ids: set[str] = set()

    def contents(self) -> StoreContents:
        """Return what to write to a new store."""
        living: list[Entity] = []
        deleted: list[DeletedEntity] = []
        single: list[FactSet] = []
        relations, ended = _latest(self._rows["relations"], lambda row: row[1:4])
        ended_with = _by_end(ended)
        for number in sorted({*self._cards, *self._facts}):
            card = self._cards.get(number)
            until = None
            if card is not None and not any(
                row[-1] is None for row in self._facts[number].values()
            ):
                until = card[-1]
            entity, earlier = self._entity(number, card, until)
            if until is not None:
                gone = [_relation(row) for row in ended_with[entity.name, until]]
                deleted.append(DeletedEntity(entity, tuple(gone), earlier))
                continue
            living.append(entity)
            if earlier:
                single.append(FactSet(entity.name, earlier))
        with_entity = {relation.key for item in deleted for relation in item.relations}
        deleted_relations = [_relation(row) for row in ended]
        lone = [relation for relation in deleted_relations if relation.key not in with_entity]
        notes, pruned = _latest(self._rows["notes"], lambda row: row[1])
        return StoreContents(
            living=Rows(
                tuple(living),
                relations=tuple(map(_relation, relations)),
                notes=tuple(map(self._note, notes)),
            ),
            entities=tuple(deleted),
            facts=tuple(single),
            relations=tuple(lone),
            notes=tuple(map(self._note, pruned)),
        )

    def _entity(
        self, number: int, card: Row | None, until: int | None
    ) -> tuple[Entity, tuple[Fact, ...]]:
        """Return the entity, and the facts that were deleted before it."""
        rows = self._facts[number]
        with_it = [_fact(row) for row in rows.values() if row[-1] == until]
        earlier = [_fact(row) for row in rows.values() if row[-1] != until]
        times = [fact.created_at for fact in (*with_it, *earlier)]
        if card is None:
            card = _card_in_place_of_lost(number, min(times, default=0))
        _, _, stored_name, kind, summary, summary_at, tags, created_at, *plan, _ = card
        aliases, due, status, expires = plan
        name = _text(stored_name)
        if until is None:
            name = self._unique_name(name, number)
        lost_identity = (number, 0, b"", 1, max(times, default=0))
        identity = self._identities.get(number, lost_identity)
        _, is_uuid, stored_uid, next_ordinal, updated_at = identity
        if is_uuid and len(stored_uid) == 16:
            uid = SqlitePort.unpack_uid(stored_uid)
        else:
            uid = _text(stored_uid)
        last_ordinal = max(rows, default=0)
        entity = Entity(
            name=name,
            type=_text(kind),
            facts=tuple(with_it),
            id=self._unique_id(uid),
            next_ordinal=max(_number(next_ordinal), last_ordinal + 1),
            summary=None if summary is None else _text(summary),
            summary_at=_number(summary_at),
            tags=_tags(tags),
            created_at=_number(created_at),
            updated_at=_number(updated_at),
            aliases=_tags(aliases),
            due=_number(due),
            status=_text(status),
            expires=_number(expires),
        )
        return entity, tuple(earlier)

    def _unique_name(self, name: str, number: int) -> str:
        """Return the name. A second living entity with it, whose end was lost, gets another one."""
        if name in self._names:
            name = f"{name} (salvaged {number})"
        self._names.add(name)
        return name

    def _unique_id(self, uid: str) -> str:
        if not uid or uid in self._ids:
            uid = str(uuid4())
        self._ids.add(uid)
        return uid

    def _note(self, row: Row) -> Note:
        number, key, text, tags, created_at, updated_at, _ = row
        embedding = self._embeddings.get(number)
        if not isinstance(embedding, bytes) or len(embedding) % 4:
            embedding = b""  # a damaged vector: it is bytes of whole float32 numbers
        times = (_number(created_at), _number(updated_at))
        return Note(_text(key), _text(text), _tags(tags), VAULT, embedding, *times)


def _card_in_place_of_lost(entity: int, created_at: int) -> Row:
    """Return a card for an entity that lost its own."""
    name, kind = f"salvaged-{entity}", "unknown"
    summary = summary_at = tags = None
    return (0, entity, name, kind, summary, summary_at, tags, created_at, *_NO_PLAN, None)


def _is_ordinal(value: object) -> bool:
    return isinstance(value, int) and 0 < value < MAX_ORDINAL


def _latest(rows: list[Row], key: Callable[[Row], Any]) -> tuple[list[Row], list[Row]]:
    """Return the living rows and, for keys without one, the rows that ended last.

    `until` is the last column.
    """
    last: dict[Any, Row] = {}
    for row in sorted(rows, key=lambda row: (_end_of(row[-1]), row[0])):
        last[key(row)] = row
    in_order = sorted(last.values(), key=lambda row: int(row[0]))
    living = [row for row in in_order if row[-1] is None]
    ended = [row for row in in_order if row[-1] is not None]
    return living, ended


def _by_end(relations: list[Row]) -> defaultdict[tuple[str, int], list[Row]]:
    """Return the rows of relations by a name at their ends and the change that ended them."""
    ended: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in relations:
        for name in {_text(row[1]), _text(row[2])}:
            ended[name, row[-1]].append(row)
    return ended


def _end_of(until: object) -> int:
    return _LIVES if until is None else _number(until)


def _relation(row: Row) -> Relation:
    return Relation(_text(row[1]), _text(row[2]), _text(row[3]), _number(row[4]))


def _fact(row: Row) -> Fact:
    _, _, ordinal, text, created_at, valid_at, source, expires, author, _ = row
    times = (_number(created_at), _number(valid_at))
    return Fact(ordinal, _text(text), *times, _text(source), _number(expires), _text(author))


def _text(value: object) -> str:
    """Return text, with a replacement character for what is not UTF-8."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value or "")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _tags(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    try:
        return json.decode(_text(value), type=tuple[str, ...])
    except DecodeError:
        return ()
