"""Notes in the SQLite file.

History, indexes, files of another program, and locks of running servers.
"""

import errno
import struct
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from polymnia.app import open_servers
from polymnia.disk import lock
from polymnia.disk.lock import ServerLock
from polymnia.engine import notes
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.errors import StoreBusy, StoreError, StoreForeign
from polymnia.model import VAULT, ChangeQuery, Note, NoteQuery, NoteScope
from polymnia.search.embedding import pack_vector
from polymnia.settings import Settings
from polymnia.stores.sqlite import foreign as foreign_files
from polymnia.stores.sqlite.foreign import adopt_memories
from polymnia.stores.sqlite.store import SqliteStore

SESSION = NoteScope("one", "ann")
FOREIGN = """
CREATE TABLE session_memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]', created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    UNIQUE(session_id, key)
);
CREATE TABLE vault_memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]', embedding BLOB,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE VIRTUAL TABLE vault_fts USING fts5(key, content, tags, content=vault_memories, content_rowid=id);
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def memory(path: str) -> Iterator[Memory]:
    opened = SqliteStore(path)
    yield Memory(opened)
    opened.close()


@pytest.fixture
def foreign(path: str) -> apsw.Connection:
    """The file of another program, with a memory in each table."""
    other = apsw.Connection(path)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute(FOREIGN)
    vector = struct.pack("<3f", 1, 2, 3)
    times = ("2026-04-27T14:00:00Z", "2026-04-28T14:00:00Z")
    insert = "INSERT INTO vault_memories (key, content, tags, embedding, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
    other.execute(insert, ("lang", "prefers Python", '["preference", "coding"]', vector, *times))
    other.execute(insert, ("odd", "kept", "not json", b"abc", "some day", "some day"))
    other.execute(
        "INSERT INTO session_memories (session_id, key, content) VALUES ('s', 'k', 'volatile')"
    )
    return other


def rows(path: str, query: str) -> list[tuple[object, ...]]:
    opened = apsw.Connection(path)
    try:
        return opened.execute(query).fetchall()
    finally:
        opened.close()


def test_a_note_in_the_vault_is_in_the_history_before_and_after(memory: Memory) -> None:
    vector = pack_vector([1, 2, 3], 3, "vector")
    notes.commit(memory, Note("key", "first", ("t",), VAULT, vector), by="ann")
    notes.commit(memory, Note("key", "second"), by="ben")
    notes.prune(memory, [VAULT], by="ann", key="key")
    with memory.reading() as read:
        changes = read.history.changes(ChangeQuery(limit=None))[::-1]
    told = [(change.operation, change.actor) for change in changes]
    assert told == [("commit_memory", "ann"), ("commit_memory", "ben"), ("prune_memory", "ann")]
    sides = [(change.before.notes, change.after.notes) for change in changes]
    assert [[note.content for note in side] for pair in sides for side in pair] == [
        [],
        ["first"],
        ["first"],
        ["second"],
        ["second"],
        [],
    ]


def test_a_prune_that_finds_nothing_is_not_logged(memory: Memory, path: str) -> None:
    assert notes.prune(memory, [VAULT], by="ann", key="nobody") == 0
    assert rows(path, "SELECT count(*) FROM changes") == [(0,)]


def test_a_deleted_note_leaves_the_indexes_and_a_sessions_note_the_tables(
    memory: Memory, path: str
) -> None:
    vector = pack_vector([1, 2, 3], 3, "vector")
    for scope in (VAULT, SESSION):
        notes.commit(memory, Note("key", "word", ("t",), scope, vector), by="ann")
        notes.prune(memory, [scope], by="ann", key="key")
    assert rows(path, "SELECT count(*) FROM notes WHERE until IS NULL") == [(0,)]
    for table in ("session_notes", "note_tags"):
        assert rows(path, f"SELECT count(*) FROM {table}") == [(0,)], table
    for index, word in (("words", "word"), ("trigrams", '"wor"')):
        assert rows(path, f"SELECT count(*) FROM {index} WHERE {index} MATCH '{word}'") == [(0,)], (
            index
        )


def test_the_words_of_a_session_are_in_no_index_of_the_file(memory: Memory, path: str) -> None:
    notes.commit(memory, Note("key", "hidden", (), SESSION), by="ann")
    notes.commit(memory, Note("key", "hidden too", (), SESSION), by="ann")
    for index, word in (("words", "hidden"), ("trigrams", '"hid"')):
        assert rows(path, f"SELECT count(*) FROM {index} WHERE {index} MATCH '{word}'") == [(0,)], (
            index
        )


FIRST, NEARLY, OTHER = (struct.pack("<2f", *numbers) for numbers in ((1, 0), (1, 0.5), (0, 1)))


def found(memory: Memory) -> list[str]:
    query = NoteQuery(text="nothing", vector=FIRST, limit=1)
    return [hit.note.content for hit in notes.search(memory, query, [VAULT]).hits]


def test_a_purged_note_gives_its_place_to_no_other(memory: Memory) -> None:
    notes.commit(memory, Note("keep", "kept", embedding=NEARLY), by="ann")
    notes.commit(memory, Note("old", "purged", embedding=FIRST), by="ann")
    assert found(memory) == ["purged"]
    notes.prune(memory, [VAULT], key="old", by="ann")
    trash.purge(memory, days=0)
    notes.commit(memory, Note("mine", "a secret of the session", scope=SESSION), by="ann")
    assert found(memory) == ["kept"]


def test_an_older_snapshot_does_not_see_a_session_in_the_place_of_a_note(memory: Memory) -> None:
    notes.commit(memory, Note("keep", "kept", embedding=OTHER), by="ann")
    notes.commit(memory, Note("mine", "a secret of the session", scope=SESSION), by="ann")
    with memory.reading() as reader:
        older = reader.notes
        assert len(older.notes(VAULT)) == 1
        notes.prune(memory, [SESSION], by="ann")
        notes.commit(memory, Note("public", "takes its row", embedding=FIRST), by="ann")
        assert found(memory) == ["takes its row"]
        assert [
            hit.note.content
            for hit in older.search(NoteQuery(text="nothing", vector=FIRST, limit=5))
        ] == []


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("DELETE FROM words WHERE rowid = 1", "1 passages are missing from the words index"),
        (
            "INSERT INTO words (rowid, content) VALUES (9, 'stray')",
            "1 rows of the words index belong to no passage",
        ),
    ],
)
def test_a_note_that_searches_would_miss_is_found_by_a_check(
    memory: Memory, path: str, damage: str, found: str
) -> None:
    notes.commit(memory, Note("key", "word"), by="ann")
    assert memory.store.check() == []
    rows(path, damage)
    assert memory.store.check() == [f"{path}: {found}"]


def test_a_server_lives_as_long_as_it_holds_its_file(path: str) -> None:
    one, other = ServerLock(path), ServerLock(path)
    name = one.acquire()
    assert one.acquire() == name
    assert other.is_running(name)
    one.close()
    assert not other.is_running(name)
    assert not other.is_running("never heard of")


def test_what_a_dead_server_left_is_removed(path: str, tmp_path: Path) -> None:
    (tmp_path / "memory.db-server-dead").touch()
    assert not ServerLock(path).is_running("dead")
    assert list(tmp_path.iterdir()) == []


def test_a_new_server_removes_the_files_of_dead_ones_and_of_nobody_else(
    path: str, tmp_path: Path
) -> None:
    living = ServerLock(path)
    for name in ("memory.db-server-dead", "memory.db-server-begun~", "other.db-server-dead"):
        (tmp_path / name).touch()
    kept = {
        f"memory.db-server-{living.acquire()}",
        "memory.db-server-begun~",
        "other.db-server-dead",
    }
    assert {item.name for item in tmp_path.iterdir()} == kept
    kept.add(f"memory.db-server-{ServerLock(path).acquire()}")
    assert {item.name for item in tmp_path.iterdir()} == kept


def test_without_a_file_there_is_no_other_server() -> None:
    server = ServerLock(None)
    assert server.is_running(server.acquire())
    assert not server.is_running("other")


def test_a_directory_that_cannot_be_written_to_is_a_clear_error(
    memory: Memory, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(lock, "_create_locked", refuse)
    with pytest.raises(StoreError, match="cannot lock a file"):
        notes.commit(memory, Note("key", "word", (), SESSION), by="ann")
    assert notes.page(memory, SESSION) == []


def test_the_memories_of_another_program_are_taken_over(
    foreign: apsw.Connection, path: str
) -> None:
    foreign.close()
    assert adopt_memories(path)
    memory = Memory(SqliteStore(path))
    lang, odd = (notes.read(memory, VAULT, key) for key in ("lang", "odd"))
    assert lang is not None and odd is not None
    assert (lang.content, lang.tags) == ("prefers Python", ("preference", "coding"))
    assert lang.embedding == struct.pack("<3f", 1, 2, 3)
    assert (lang.created_at, lang.updated_at) == (1777298400_000000, 1777384800_000000)
    assert (odd.content, odd.tags, odd.embedding) == ("kept", (), b"")
    assert [note.content for note in notes.page(memory, NoteScope("s"))] == ["volatile"]
    memory.store.close()


def test_a_file_that_can_be_converted_says_how(foreign: apsw.Connection, path: str) -> None:
    foreign.close()
    with pytest.raises(StoreForeign, match="start once with `--dialect vault` and without --read"):
        SqliteStore(path, read_only=True)


def test_the_other_programs_file_is_kept_whole(
    foreign: apsw.Connection, path: str, tmp_path: Path
) -> None:
    foreign.close()
    adopt_memories(path)
    assert rows(f"{path}.bak", "SELECT key, content FROM vault_memories") == [
        ("lang", "prefers Python"),
        ("odd", "kept"),
    ]
    assert rows(f"{path}.bak", "SELECT content FROM session_memories") == [("volatile",)]
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "memory.db",
        "memory.db.bak",
    ]


def test_what_a_note_cannot_have_is_counted(
    foreign: apsw.Connection, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    foreign.execute(
        "INSERT INTO session_memories (session_id, key, content, tags) VALUES ('s', 'bad', 'text', 'work')"
    )
    foreign.close()
    adopt_memories(path)
    for count, field in ((2, "tags"), (2, "times"), (1, "embedding")):
        assert f"{count} values of {field} could not be converted: they are only" in caplog.text


def test_a_memory_of_no_session_is_not_lost(
    foreign: apsw.Connection, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    insert = "INSERT INTO session_memories (session_id, key, content) VALUES ('', ?, ?)"
    foreign.execute(insert, ("alone", "kept"))
    foreign.execute(insert, ("lang", "another"))
    foreign.close()
    adopt_memories(path)
    memory = Memory(SqliteStore(path))
    assert {note.key for note in notes.page(memory, VAULT)} == {"lang", "odd", "alone"}
    memory.store.close()
    assert "1 values of content could not be converted" in caplog.text
    assert len(rows(f"{path}.bak", "SELECT content FROM session_memories")) == 3


def test_a_backup_that_is_there_is_not_overwritten(foreign: apsw.Connection, path: str) -> None:
    foreign.close()
    Path(f"{path}.bak").write_text("precious")
    adopt_memories(path)
    assert Path(f"{path}.bak").read_text() == "precious"
    assert len(rows(f"{path}.bak1", "SELECT key FROM vault_memories")) == 2


def test_a_file_of_ours_and_a_file_of_anybody_else_are_left_alone(path: str) -> None:
    SqliteStore(path).close()
    before = Path(path).read_bytes()
    assert not adopt_memories(path)
    assert Path(path).read_bytes() == before
    stranger = f"{path}.other"
    opened = apsw.Connection(stranger)
    opened.execute("CREATE TABLE vault_memories (id INTEGER)")
    opened.close()
    assert not adopt_memories(stranger)


def test_a_file_that_the_other_program_still_writes_to_is_left_alone(
    foreign: apsw.Connection, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_files, "BUSY_TIMEOUT_MS", 10)
    foreign.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        adopt_memories(path)
    foreign.execute("COMMIT")
    assert foreign.execute("SELECT count(*) FROM vault_memories").fetchall() == [(2,)]
    assert not (tmp_path / "memory.db.bak").exists()
    foreign.close()


def test_an_attempt_that_was_cut_short_is_begun_again(
    foreign: apsw.Connection, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.close()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full_disk)
        with pytest.raises(StoreError, match="no space left"):
            adopt_memories(path)
    assert len(rows(path, "SELECT key FROM vault_memories")) == 2
    assert adopt_memories(path)
    assert len(rows(path, "SELECT key FROM notes UNION ALL SELECT key FROM session_notes")) == 3
    assert len(rows(f"{path}.bak", "SELECT key FROM vault_memories")) == 2
    assert not Path(f"{path}.bak1").exists()


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_program_that_still_has_the_file_open_is_refused_and_loses_nothing_unawares(
    path: str,
) -> None:
    other = apsw.Connection(path)
    other.execute(FOREIGN)
    adopt_memories(path)
    with pytest.raises(apsw.ReadOnlyError):
        other.execute("INSERT INTO vault_memories (key, content) VALUES ('late', 'text')")
    other.close()


def test_a_link_to_the_file_stays_a_link(
    foreign: apsw.Connection, path: str, tmp_path: Path
) -> None:
    foreign.close()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    assert adopt_memories(str(link))
    assert link.is_symlink()
    assert len(rows(path, "SELECT key FROM notes UNION ALL SELECT key FROM session_notes")) == 3


def test_a_vault_server_takes_over_what_it_finds(foreign: apsw.Connection, path: str) -> None:
    foreign.close()
    with open_servers(Settings(dialect="vault", store=path)) as servers:
        memory = servers["vault"].workspaces.memory("default")
        assert [note.key for note in notes.page(memory, VAULT)] == ["lang", "odd"]
        assert notes.page(memory, NoteScope("s")) == []  # a session ends with its server


def test_the_check_finds_a_sound_store_sound(memory: Memory) -> None:
    for number in range(20):
        notes.commit(memory, Note(f"k{number}", "word", ("t",)), by="ann")
    assert memory.store.check() == []


def test_a_server_is_known_to_run_through_a_symbolic_link_too(path: str, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    first, second = SqliteStore(path), SqliteStore(str(link))
    notes.commit(Memory(first), Note("key", "mine", scope=SESSION), by="ann", member="conversation")
    notes.sweep_sessions(Memory(second), by="server")
    assert [note.content for note in notes.page(Memory(first), SESSION)] == ["mine"]
    for item in (first, second):
        item.close()
