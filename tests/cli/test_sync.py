"""`polymnia sync` in a terminal: what it says about conflicts."""

from contextlib import closing
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine import notes
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Note
from polymnia.stores import open_store

ME = "test"
SENTENCES = [
    "conflict: a fact of Both was changed to 'memory' in the memory and changed to 'folder' in the folder; "
    "both stay",
    "conflict: a fact of Cut was deleted in the memory and changed to 'folder' in the folder; it stays",
    "conflict: Gone was deleted in the memory and changed in the folder; it stays",
    "conflict: the folder has an entity Taken and another entity has that name; the file stays as it is",
    "conflict: the note k is 'memory' in the memory and 'folder' in the folder; the memory's stays",
    "conflict: the type of Kind is 'memory' in the memory and 'folder' in the folder; the memory's stays",
]


def test_a_conflict_is_a_sentence_about_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sync", str(tmp_path / "vault"), "--store", str(tmp_path / "memory.db")]
    with closing(open_store(str(tmp_path / "memory.db"))) as store:
        memory = Memory(store)
        names = ("Both", "Cut", "Gone", "Taken", "Kind")
        entities.create(
            memory, [EntityDraft(name, "thing", ("one", "two")) for name in names], by=ME
        )
        notes.commit(memory, Note("k", "one"), by=ME)
        assert main(command) == 0
        _change_folder(tmp_path / "vault")
        _change_memory(memory)
    capsys.readouterr()
    assert main(command) == 0
    said = capsys.readouterr().out.splitlines()
    assert sorted([line for line in said if line.startswith("conflict: ")]) == sorted(SENTENCES)


def _change_folder(folder: Path) -> None:
    for name, old, new in (
        ("Both.md", "- one ^o1", "- folder ^o1"),
        ("Cut.md", "- one ^o1", "- folder ^o1"),
        ("Gone.md", "- one ^o1", "- folder ^o1"),
        ("Kind.md", "type: thing", "type: folder"),
    ):
        path = folder / name
        text = path.read_text("utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), "utf-8")
    (note,) = [path for path in folder.rglob("*.md") if "polymnia: note" in path.read_text("utf-8")]
    note.write_text(note.read_text("utf-8").replace("\none", "\nfolder"), "utf-8")
    (folder / "sub").mkdir()
    (folder / "sub" / "Taken.md").write_text("---\npolymnia: entity\n---\n- other\n", "utf-8")


def _change_memory(memory: Memory) -> None:
    revise(memory, "Both", Revision(replace=(Edit(1, "memory"),)), by=ME)
    revise(memory, "Kind", Revision(type="memory"), by=ME)
    facts.remove(memory, [("Cut", ("one",))], by=ME)
    entities.delete(memory, ["Gone"], by=ME)
    notes.commit(memory, Note("k", "memory"), by=ME)
