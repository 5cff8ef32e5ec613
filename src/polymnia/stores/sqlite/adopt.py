"""Taking over the file of a memory server that keeps `session_memories` and `vault_memories` in SQLite."""

import logging
import math
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import time_ns

import apsw
from msgspec import DecodeError, json

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import fsync_directory
from polymnia.model import Change, Note, NoteScope, Rows
from polymnia.search.embedding import length
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, file_identity, map_errors, run
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)

_TABLES = {"session_memories", "vault_memories"}


def adopt_memories(path: str) -> bool:
    """Put a store of ours with the same memories in the file's place and keep the file beside it, ending in `.bak`.

    False, with nothing done, when the file is not of that kind. Raises StoreError.
    """
    path = str(Path(path).resolve())  # through a symbolic link, so that the link stays
    file = file_identity(path)
    with map_errors(path), map_os_errors(path), closing(apsw.Connection(path)) as connection:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if not {name for (name,) in run(connection, "table_names")} >= _TABLES:
            return False
        # One file from here on, and nobody else writes to it.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").fetchall()
        if file_identity(path) != file:
            return False  # another server of ours was first
        notes = [*_vault(connection), *_sessions(connection)]
        new = _store_beside(path, notes)
        kept = _keep(Path(path))
        new.replace(path)
        fsync_directory(Path(path).parent)
    logger.warning("%s held %d memories of another program: taken over, and kept as %s", path, len(notes), kept)
    return True


def _vault(connection: apsw.Connection) -> Iterator[Note]:
    for key, content, tags, embedding, created, updated in run(connection, "foreign_vault"):
        vector = embedding if _is_vector(embedding) else b""
        yield Note(key, content, _tags(tags), NoteScope(), vector, _moment(created), _moment(updated))


def _sessions(connection: apsw.Connection) -> Iterator[Note]:
    for session, key, content, tags, created in run(connection, "foreign_sessions"):
        if session:
            yield Note(key, content, _tags(tags), NoteScope(session), b"", _moment(created), _moment(created))


def _store_beside(path: str, notes: list[Note]) -> Path:
    new = Path(f"{path}.new")
    for ending in ("", "-wal", "-shm"):
        Path(f"{new}{ending}").unlink(missing_ok=True)  # of an attempt that did not end
    store = SqliteStore(str(new))
    try:
        for start in range(0, len(notes), store.best_batch):
            batch = tuple(notes[start : start + store.best_batch])
            with store.writing() as writer:
                writer.apply(Change("import", "polymnia", _now(), after=Rows(notes=batch)))
        store.compact()
    finally:
        store.close()
    return new


def _keep(path: Path) -> Path:
    """Another name for the file, which nothing else has."""
    names = (Path(f"{path}.bak{number or ''}") for number in count())
    kept = next(name for name in names if not name.exists() or name.samefile(path))
    if not kept.exists():
        kept.hardlink_to(path)
    return kept


def _is_vector(blob: object) -> bool:
    if not isinstance(blob, bytes) or not blob or len(blob) % 4:
        return False
    norm = length(blob)
    return math.isfinite(norm) and norm > 0


def _tags(text: object) -> tuple[str, ...]:
    try:
        return json.decode(str(text), type=tuple[str, ...])
    except DecodeError:
        return ()


def _moment(text: object) -> int:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return _now()
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000_000)


def _now() -> int:
    return time_ns() // 1000
