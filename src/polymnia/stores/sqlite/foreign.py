"""Read the SQLite files of other programs, and take over those of a vault server.

Such a file is not trusted. One with `session_memories` and `vault_memories` becomes our store.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import time_ns
from typing import Any

import apsw
from msgspec import DecodeError, json

from polymnia.disk.files import file_identity, fsync_directory, map_os_errors, replace_file
from polymnia.model import VAULT, Change, Note, NoteScope, Rows
from polymnia.search.embedding import length
from polymnia.stores.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    Row,
    file_state,
    map_errors,
    run,
)
from polymnia.stores.sqlite.schema import NOTE_TABLES
from polymnia.stores.sqlite.store import SqliteStore

_MAGIC = b"SQLite format 3\x00"


def is_sqlite(path: str) -> bool:
    """Return True if the file begins as SQLite files do."""
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def table_columns(path: str) -> dict[str, tuple[str, ...]]:
    """Return the ordinary tables with the names of their columns.

    Raise StoreError if the file is damaged.
    """
    columns: dict[str, list[str]] = {}
    with _connect(path) as connection:
        for table, column in run(connection, "foreign_columns"):
            columns.setdefault(str(table), []).append(str(column))
    return {table: tuple(names) for table, names in columns.items()}


def table_rows(path: str, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an ordinary table, each with the names of its columns. Raise StoreError."""
    quoted = '"' + table.replace('"', '""') + '"'
    with _connect(path) as connection:
        cursor = connection.execute("SELECT * FROM " + quoted)
        names: tuple[str, ...] = ()
        for row in cursor:
            if not names:  # the cursor knows its columns once it has a row
                names = tuple(name for name, *_ in cursor.description)
            yield dict(zip(names, row, strict=True))


@contextmanager
def _connect(path: str) -> Iterator[apsw.Connection]:
    """Open the file read-only.

    Nothing that its schema contains is run: no trigger, no view, no function.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        map_errors(path),
        closing(apsw.Connection(file_state(path).uri(path), flags=flags)) as connection,
    ):
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        yield connection


logger = logging.getLogger(__name__)


def adopt_memories(path: str) -> bool:
    """Replace the file by a store of ours with the same memories, and keep it as a `.bak` file.

    Return False, with nothing done, if the file is not of that kind. Raise StoreError.
    """
    path = str(Path(path).resolve())  # a symbolic link stays a link
    file = file_identity(path)
    with map_errors(path), map_os_errors(path), closing(apsw.Connection(path)) as connection:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if not {name for (name,) in run(connection, "table_names")} >= NOTE_TABLES:
            return False
        # From here on it is one file without a log, and no other process writes to it.
        connection.execute(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE"
        ).fetchall()
        if file_identity(path) != file:
            return False  # another server converted it first
        lost: Counter[str] = Counter()  # values that a note cannot have, by field
        notes = _notes(run(connection, "foreign_vault"), run(connection, "foreign_sessions"), lost)
        new = Path(f"{path}.new")
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{new}{ending}").unlink(missing_ok=True)  # left by an interrupted attempt
        with closing(SqliteStore(str(new))) as store, store.writing() as writer:
            change = Change("import", "polymnia", writer.clock(), after=Rows(notes=notes))
            writer.apply(change)
        kept = keep_backup(Path(path))
        new.replace(path)
        fsync_directory(Path(path).parent)
    logger.warning(
        "%s held %d memories of another program: converted, and kept as %s", path, len(notes), kept
    )
    for field, number in sorted(lost.items()):
        logger.warning(
            "%d values of %s could not be converted: they are only in %s", number, field, kept
        )
    return True


def _notes(vault: Iterable[Row], sessions: Iterable[Row], lost: Counter[str]) -> tuple[Note, ...]:
    """Return the notes of both tables, and count what they cannot have.

    A memory of no session is a vault note unless its key is taken there.
    """
    vault_notes: dict[str, Note] = {}
    for key, content, tags, embedding, created_at, updated_at in vault:
        vector = b""
        if isinstance(embedding, bytes) and embedding and len(embedding) % 4 == 0:
            norm = length(embedding)
            vector = embedding if math.isfinite(norm) and norm > 0 else b""
        if embedding is not None and not vector:
            lost["embedding"] += 1
        times = (_time(created_at, lost), _time(updated_at, lost))
        vault_notes[key] = Note(key, content, _tags(tags, lost), VAULT, vector, *times)
    session_notes: list[Note] = []
    for session, key, content, tags, created_at in sessions:
        at = _time(created_at, lost)
        scope = NoteScope(session)
        note = Note(str(key), str(content), _tags(tags, lost), scope, b"", at, at)
        if session:
            session_notes.append(note)
        elif note.key in vault_notes:
            lost["content"] += 1
        else:
            vault_notes[note.key] = note
    return (*vault_notes.values(), *session_notes)


def _tags(text: object, lost: Counter[str]) -> tuple[str, ...]:
    try:
        return json.decode(str(text), type=tuple[str, ...])
    except DecodeError:
        lost["tags"] += 1
        return ()


def _time(text: object, lost: Counter[str]) -> int:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        lost["times"] += 1
        return time_ns() // 1000
    return int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1_000_000)


def keep_backup(path: Path) -> Path:
    """Give the file another name, ending in `.bak`, which nothing else has. Raise OSError."""
    names = (Path(f"{path}.bak{number or ''}") for number in count())
    kept = next(name for name in names if not name.exists() or name.samefile(path))
    if not kept.exists():
        try:
            kept.hardlink_to(path)
        except OSError:  # not every file system has hard links
            replace_file(kept, [path.read_bytes()])
    return kept
