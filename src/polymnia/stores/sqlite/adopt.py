"""Take over the SQLite file of a memory server with `session_memories` and `vault_memories`."""

import logging
import math
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import time_ns

import apsw
from msgspec import DecodeError, Struct, json

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import fsync_directory, replace_file
from polymnia.model import VAULT, Change, Note, NoteScope, Rows
from polymnia.search.embedding import length
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, file_identity, map_errors
from polymnia.stores.sqlite.rows import Row, run
from polymnia.stores.sqlite.schema import NOTE_TABLES
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)


class RejectedValue(Struct, frozen=True, omit_defaults=True):
    """A value of the other program that a note cannot have."""

    key: str
    field: str
    value: object
    session: str = ""


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
        conversion = _Conversion()
        notes = conversion.notes(
            run(connection, "foreign_vault"), run(connection, "foreign_sessions")
        )
        new = _write_beside(path, notes)
        kept = keep_backup(Path(path))
        conversion.write_rejected(path)
        new.replace(path)
        fsync_directory(Path(path).parent)
    logger.warning(
        "%s held %d memories of another program: converted, and kept as %s", path, len(notes), kept
    )
    conversion.report(path)
    return True


class _Conversion:
    """Makes notes of rows, and collects what a note cannot have."""

    def __init__(self) -> None:
        self._rejected: list[RejectedValue] = []
        self._now = time_ns() // 1000

    def notes(self, vault: Iterable[Row], sessions: Iterable[Row]) -> tuple[Note, ...]:
        """Return the notes of both tables.

        A memory of no session is a vault note unless its key is taken there.
        """
        vault_notes = {row[0]: self._vault_note(row) for row in vault}
        session_notes: list[Note] = []
        for session, *row in sessions:
            key, content, tags, created = row
            name = str(key)
            at = self._time(name, "created_at", created, session)
            note = Note(
                name, str(content), self._tags(name, tags, session), NoteScope(session), b"", at, at
            )
            if session:
                session_notes.append(note)
            elif note.key in vault_notes:
                self._reject(note.key, "content", note.content)
            else:
                vault_notes[note.key] = note
        return (*vault_notes.values(), *session_notes)

    def report(self, path: str) -> None:
        """Log how many values were rejected."""
        fields = [item.field for item in self._rejected]
        for field in sorted(set(fields)):
            logger.warning(
                "%d values of %s could not be converted: see %s",
                fields.count(field),
                field,
                _aside(path),
            )

    def write_rejected(self, path: str) -> None:
        """Keep the rejected values beside the store, a JSON object a line."""
        if self._rejected:
            replace_file(Path(_aside(path)), [json.encode(item) + b"\n" for item in self._rejected])

    def _vault_note(self, row: Row) -> Note:
        key, content, tags, embedding, created, updated = row
        times = (self._time(key, "created_at", created), self._time(key, "updated_at", updated))
        return Note(
            key, content, self._tags(key, tags), VAULT, self._vector(key, embedding), *times
        )

    def _vector(self, key: str, blob: object) -> bytes:
        if blob is None or _is_vector(blob):
            return bytes(blob) if isinstance(blob, bytes) else b""
        self._reject(key, "embedding", blob)
        return b""

    def _tags(self, key: str, text: object, session: str = "") -> tuple[str, ...]:
        try:
            return json.decode(str(text), type=tuple[str, ...])
        except DecodeError:
            self._reject(key, "tags", text, session)
            return ()

    def _time(self, key: str, field: str, text: object, session: str = "") -> int:
        try:
            time = datetime.fromisoformat(str(text))
        except ValueError:
            self._reject(key, field, text, session)
            return self._now
        return int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1_000_000)

    def _reject(self, key: str, field: str, value: object, session: str = "") -> None:
        self._rejected.append(RejectedValue(key, field, value, session))


def _write_beside(path: str, notes: tuple[Note, ...]) -> Path:
    new = Path(f"{path}.new")
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{new}{ending}").unlink(missing_ok=True)  # left by an interrupted attempt
    with closing(SqliteStore(str(new))) as store, store.writing() as writer:
        change = Change("import", "polymnia", writer.clock(), after=Rows(notes=notes))
        writer.apply(change)
    return new


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


def _aside(path: str) -> str:
    return f"{path}.rejected"


def _is_vector(blob: object) -> bool:
    if not isinstance(blob, bytes) or not blob or len(blob) % 4:
        return False
    norm = length(blob)
    return math.isfinite(norm) and norm > 0
