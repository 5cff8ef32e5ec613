"""Salvage a damaged SQLite store: copy every row that can be read to a new store.

A row is read by its id alone, so damaged indexes do not matter. Rows keep their ids and their
places in the history. What is lost between them is made up: an entity for facts without one, and a
change for rows that name one. The notes of sessions and the vectors of embedders are not salvaged.
"""

import shutil
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import apsw
from msgspec import DecodeError, Struct, json

from polymnia.errors import BadInput, StoreDamaged, StoreError, StoreForeign
from polymnia.model import MAX_ORDINAL, Counts
from polymnia.stores.contract.tables import TABLES, NamedRow, table_rows
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite.connection import (
    APPLICATION_ID,
    DRIVER_ERRORS,
    QUERIES,
    SEALED_ID,
    Row,
    map_errors,
    run,
)
from polymnia.stores.sqlite.store import SqliteStore
from polymnia.stores.versioned.write import CLIENT_MODEL, client_model

# Failed attempts to read a range of rows. A damaged page near the root of a large table needs many.
MAX_FAILURES = 100_000
# The last id to look for when the file does not say what its last id is.
_LAST_ID = 1 << 24
_PAGE_BYTES = 4096
# The queries that read each table by id, and those that tell the last id of a table.
_READ = {
    "changes": "salvage_changes",
    "entities": "salvage_entities",
    "cards": "salvage_cards",
    "observations": "salvage_observations",
    "relations": "salvage_relations",
    "notes": "salvage_notes",
}
_LAST = (
    "last_changed_row",
    "last_changes",
    "last_entities",
    "last_cards",
    "last_observations",
    "last_relations",
    "last_notes",
    "last_vectors",
)
_TEXTS = {"actor", "server", "operation", "uid", "name", "type", "summary", "status", "text"}
_TEXTS |= {"source", "target", "author", "key"}
_LISTS = {"tags", "aliases"}
_NULLABLE = {"summary", "summary_at", "due", "status", "expires", "valid_at", "author"}
_NULLABLE |= {"successor", "until"}
# The template of a passage's own text.
_TEXT_TEMPLATE = 1

# The rows of a table by id.
Table = dict[int, NamedRow]


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
            tables, lost = _read_tables(connection)
            vectors = _read_client_vectors(connection)
        if not any(tables.values()):
            raise StoreDamaged(f"{path} holds no row that can be read; restore a backup")
        _repair(tables)
        part = Path(directory) / "new.db"
        with closing(SqliteStore(str(part))) as store:
            for table, named_rows in tables.items():
                rows = [row for _, row in sorted(named_rows.items())]
                store.write_rows(table, table_rows(table, rows))
            # Vectors of notes are as long as their clients made them.
            models: dict[int, int] = {}
            vector_rows: list[Row] = []
            for passage in sorted(vectors.keys() & tables["notes"].keys()):
                model = models.setdefault(len(vectors[passage]) // 4, len(models) + 1)
                vector_rows.append((passage, _TEXT_TEMPLATE, model, vectors[passage]))
            model_rows: list[Row] = []
            for size, model in models.items():
                model_rows.append((model, client_model(size), CLIENT_MODEL, size, None, None))
            store.write_rows("models", model_rows)
            store.write_rows("vectors", vector_rows)
            with store.reading() as read:
                counts = read.counts()
        part.replace(target)
    return SalvageReport(counts, counts.notes, tuple(lost))


def readable_rows(
    connection: apsw.Connection, query: str, last: int
) -> tuple[list[Row], list[tuple[int, int]]]:
    """Return the rows that can be read, and the ranges of ids that cannot.

    The query yields the rows of a range in order of their ids, which come first.
    A range that fails is divided.
    """
    rows: list[Row] = []
    lost: list[tuple[int, int]] = []
    ranges = [(1, last)]
    failures = 0
    while ranges:
        low, high = ranges.pop()
        try:
            for row in connection.execute(QUERIES[query], (low, high)):
                rows.append(row)
                low = row[0] + 1
        except DRIVER_ERRORS:
            failures += 1
            if low < high and failures <= MAX_FAILURES:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
            elif lost and lost[-1][1] == low - 1:
                lost[-1] = (lost[-1][0], high)
            else:
                lost.append((low, high))
    return rows, lost


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
            columns = {name for (name,) in run(connection, "card_columns")}
            if columns:  # the file may be of an earlier schema
                for _, migration in load_migrations(Path(__file__).parent)[1:]:
                    for line in migration.splitlines():
                        if line.startswith("ALTER"):
                            with suppress(apsw.SQLError):  # it has the column
                                connection.execute(line)
        except DRIVER_ERRORS:
            connection.close()
            continue
        # A table in a damaged list may have a name and no columns.
        if columns and tables >= {"cards", "observations"}:
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


def _read_tables(connection: apsw.Connection) -> tuple[dict[str, Table], list[str]]:
    """Return the readable rows of each table, and sentences about those that are lost."""
    tables: dict[str, Table] = {}
    lost: list[str] = []
    last = _last_id(connection)
    for table, name in _READ.items():
        tables[table] = {}
        rows, gaps = readable_rows(connection, name, last)
        lost += [f"{table}: the rows from {low} to {high} cannot be read" for low, high in gaps]
        without_owner = 0
        for values in rows:
            row: NamedRow = {}
            for column, value in zip(TABLES[table], values, strict=True):
                row[column] = _sound_value(table, column, value)
            if row.get("entity") == 0:
                without_owner += 1
            else:
                tables[table][row["id"]] = row
        if without_owner:
            lost.append(f"{table}: {without_owner} rows belong to nothing")
    with suppress(*DRIVER_ERRORS):
        tables["purges"] = {
            change: {"change": change} for (change,) in run(connection, "read_purges")
        }
    return tables, lost


def _sound_value(table: str, column: str, value: object) -> object:
    """Return the value if the column may have it, and an empty one otherwise."""
    if column in _LISTS:
        with suppress(DecodeError):
            return json.decode(_text(value), type=tuple[str, ...])
        return None
    is_nullable = column in _NULLABLE or (table, column) == ("observations", "source")
    if value is None and is_nullable:
        return None
    if column in _TEXTS:
        return _text(value)
    if isinstance(value, int):
        return value
    return None if is_nullable else 0


def _text(value: object) -> str:
    """Return text, with a replacement character for what is not UTF-8."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value or "")


def _last_id(connection: apsw.Connection) -> int:
    """Return the highest id that any table has, as far as the file can say."""
    ids = [0]
    for query in _LAST:
        with suppress(*DRIVER_ERRORS):
            ids += [number for (number,) in run(connection, query) if isinstance(number, int)]
    return max(ids) or _LAST_ID


def _read_client_vectors(connection: apsw.Connection) -> dict[int, bytes]:
    """Return the readable vectors that clients supplied, by passage."""
    models: set[int] = set()
    with suppress(*DRIVER_ERRORS):
        models = {model for (model,) in run(connection, "client_models")}
    if not models:
        return {}
    rows, _ = readable_rows(connection, "salvage_vectors", _last_id(connection))
    vectors = {}
    for _, passage, model, vector in rows:
        # Damage may leave another type, or a part of a float32.
        if model in models and isinstance(vector, bytes) and vector and len(vector) % 4 == 0:
            vectors[passage] = vector
    return vectors


def _repair(tables: dict[str, Table]) -> None:
    """Make the rows of different tables agree, and keep as many as possible."""
    changes, entities, cards = tables["changes"], tables["entities"], tables["cards"]
    facts, relations, notes = tables["observations"], tables["relations"], tables["notes"]
    versions = (cards, facts, relations, notes)
    last_row = max([0, *(number for table in versions for number in table)])
    last_change = max(changes, default=1)
    for table in versions:
        for row in table.values():
            row["since"] = min(max(row["since"], 1), last_change)
            if row["until"] is not None:
                row["until"] = min(max(row["until"], 1), last_change)

    # An entity has one card that lives or ended last. It lives if the entity has living facts.
    latest: Table = {}

    def age(row: NamedRow) -> tuple[bool, int, int]:
        """Return what sorts the living version of a row last, after the one that ended last."""
        return row["until"] is None, row["until"] or 0, row["id"]

    for card in sorted(cards.values(), key=age):
        former = latest.get(card["entity"])
        if former is not None and former["until"] is None:
            former["until"] = last_change
        latest[card["entity"]] = card
    for fact in facts.values():
        number = fact["entity"]
        if number not in latest:
            last_row += 1
            card = {"id": last_row, "entity": number, "name": f"salvaged-{number}"}
            card |= {"type": "unknown", "created_at": fact["created_at"], "since": last_change}
            latest[number] = cards[last_row] = card
        if fact["until"] is None:
            latest[number]["until"] = None

    # Living rows have keys of their own: names, ordinals, the ends of relations, keys of notes.
    names: set[str] = set()
    for number, card in sorted(latest.items()):
        if card.get("until") is None:
            if card["name"] in names:
                card["name"] = f"{card['name']} (salvaged {number})"
            names.add(card["name"])
    ordinals: defaultdict[int, set[int]] = defaultdict(set)
    for fact in sorted(facts.values(), key=lambda fact: not 0 < fact["ordinal"] < MAX_ORDINAL):
        taken = ordinals[fact["entity"]]
        is_taken = fact["until"] is None and fact["ordinal"] in taken
        if is_taken or not 0 < fact["ordinal"] < MAX_ORDINAL:
            fact["ordinal"] = max(taken, default=0) + 1
        taken.add(fact["ordinal"])
    for table, key in ((relations, ("source", "target", "type")), (notes, ("key",))):
        living: dict[Row, NamedRow] = {}
        for _, row in sorted(table.items()):
            if row["until"] is None:
                former = living.get(tuple(map(row.get, key)))
                if former is not None:
                    former["until"] = last_change
                living[tuple(map(row.get, key))] = row

    # A card has an identity, and a row has the changes that it names.
    uids = {""}
    for number, card in latest.items():
        lost = {"id": number, "uid": "", "next_ordinal": 1, "updated_at": card["created_at"]}
        entity = entities.setdefault(number, lost | {"touched": last_change})
        if entity["uid"] in uids:
            entity["uid"] = str(uuid4())
        uids.add(entity["uid"])
        next_ordinal = max(ordinals[number], default=0) + 1
        entity["next_ordinal"] = max(entity["next_ordinal"], next_ordinal)
    for number in entities.keys() - latest.keys():
        del entities[number]
    named = {last_change}
    for table in versions:
        for row in table.values():
            named |= {row["since"], row.get("until") or last_change}
    at = row_before = 0
    for number in sorted(named | changes.keys()):
        lost = {"id": number, "at": at, "actor": "polymnia", "server": "", "operation": "import"}
        change = changes.setdefault(number, lost | {"last_row": row_before})
        change["last_row"] = min(max(change["last_row"], row_before), last_row)
        at, row_before = change["at"], change["last_row"]
    changes[last_change]["last_row"] = last_row
