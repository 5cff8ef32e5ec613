"""Exporting and importing vault notes, with real processes and files."""

import json
from base64 import b64decode
from pathlib import Path
from struct import unpack

import pytest

from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.engine.notes import vault_notes
from polymnia.model import Note, NoteQuery, NoteScope
from polymnia.search.embedding import pack_vector
from polymnia.stores.sqlite.store import SqliteStore
from tests.cli.commands import LINES, fill, run


@pytest.fixture
def source(tmp_path: Path) -> list[Note]:
    """A store `source.db` with a graph, two vault notes and a session note; returns the vault
    notes.
    """
    path = str(tmp_path / "source.db")
    fill(path)
    store = SqliteStore(path)
    memory = Memory(store)
    embedding = pack_vector([0.1, -2.5, 3e-30], 3, "embedding")
    notes.commit(memory, Note("plan", "ship\nit", ("work", "äö"), embedding=embedding), by="test")
    notes.commit(memory, Note("tea/ü", "green"), by="test")
    notes.commit(memory, Note("plan", "ship it", ("work", "äö"), embedding=embedding), by="test")
    notes.commit(memory, Note("secret", "mine", scope=NoteScope("one")), by="test")
    store.close()
    return held(tmp_path / "source.db")


def held(path: Path) -> list[Note]:
    store = SqliteStore(str(path))
    found = vault_notes(Memory(store))
    store.close()
    return found


def test_a_document_holds_notes_with_times_tags_and_embeddings(
    source: list[Note], tmp_path: Path
) -> None:
    said = run(
        "export", "--format", "json", "-o", "all.json", "--store", "source.db", directory=tmp_path
    )
    assert said.stderr == "all.json: 1 entity, 1 relation, 2 notes of source.db\n"
    said = run("import", "all.json", "--store", "new.db", directory=tmp_path)
    assert "1 relation (1 new) and 2 notes (2 new, 0 updated) into new.db" in said.stdout
    assert held(tmp_path / "new.db") == source
    assert [note.created_at < note.updated_at for note in source] == [True, False]


def test_a_document_has_the_documented_format(source: list[Note], tmp_path: Path) -> None:
    said = run("export", "--format", "json", "--store", "source.db", directory=tmp_path)
    plan, tea = json.loads(said.stdout)["notes"]
    assert list(plan) == ["key", "content", "tags", "embedding", "createdAt", "updatedAt"]
    assert plan["tags"] == ["work", "äö"]
    assert unpack("<3f", b64decode(plan["embedding"])) == pytest.approx((0.1, -2.5, 3e-30))
    assert plan["updatedAt"].endswith("Z")
    assert list(tea) == ["key", "content", "createdAt", "updatedAt"]


def test_an_imported_note_is_found_by_its_words_and_by_its_embedding(
    source: list[Note], tmp_path: Path
) -> None:
    run("import", "source.db", "--store", "new.db", directory=tmp_path)
    store = SqliteStore(str(tmp_path / "new.db"))
    with store.reading() as reader:
        assert reader.notes is not None
        words = reader.notes.search(NoteQuery(text="green"))
        meaning = reader.notes.search(NoteQuery(text="zzz", vector=source[0].embedding))
    store.close()
    assert [hit.note.key for hit in words] == ["tea/ü"]
    assert [hit.note.key for hit in meaning] == ["plan"]


def test_exporting_json_lines_reports_the_skipped_notes(source: list[Note], tmp_path: Path) -> None:
    said = run("export", "--store", "source.db", directory=tmp_path)
    assert said.stdout == LINES + "\n"
    assert said.stderr == "skipped 2 vault notes: JSON lines cannot hold notes; use --format json\n"
    said = run("export", "-o", "all.jsonl", "--store", "source.db", directory=tmp_path)
    assert "skipped 2 vault notes" in said.stderr


@pytest.mark.parametrize("target", ["new.jsonl", "new.mcpmem"])
def test_importing_into_a_store_without_notes_reports_the_skipped_ones(
    source: list[Note], target: str, tmp_path: Path
) -> None:
    said = run("import", "source.db", "--store", target, directory=tmp_path)
    assert said.returncode == 0
    assert f": {target} cannot hold notes; use a SQLite store" in said.stdout
    assert "skipped the note " in said.stdout
    assert run("export", "--store", target, directory=tmp_path).stdout == LINES + "\n"


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        ({"key": "", "content": "x"}, "notes[0].key: must not be empty"),
        ({"key": "k"}, "notes[0]: Object missing required field `content`"),
        (
            {"key": "k", "content": "x", "embedding": "AAAA"},
            "notes[0].embedding: expected 32-bit floats, got 3 bytes",
        ),
        (
            {"key": "k", "content": "x", "embedding": "AADAfw=="},
            "notes[0].embedding: every number must be finite",
        ),
        (
            {"key": "k", "content": "x", "createdAt": "soon"},
            "notes[0].createdAt: 'soon' is not an ISO 8601 date",
        ),
    ],
)
def test_nothing_of_an_invalid_document_is_imported(
    note: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    document = {
        "format": "polymnia",
        "version": 1,
        "entities": [],
        "relations": [],
        "notes": [note],
    }
    (tmp_path / "bad.json").write_text(json.dumps(document), "utf-8")
    said = run("import", "bad.json", "--store", "new.db", directory=tmp_path)
    assert said.returncode == 1
    assert said.stderr.startswith("polymnia: bad.json: ")
    assert sentence in said.stderr
    assert not (tmp_path / "new.db").exists()
