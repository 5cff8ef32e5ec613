"""`sync`: a folder and a memory that both change become alike, and nothing is lost."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polymnia.engine import notes
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash, undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NotSupported
from polymnia.markdown.sync import SyncReport, export_folder, state_of, sync_folder
from polymnia.model import EntityDraft, FactAddition, Note, Relation
from polymnia.stores import open_store
from tests.behaviour.steps import STEPS, Step, take
from tests.cli.commands import fill, run
from tests.conftest import STORES
from tests.processes import TIMEOUT_S

ME = "test"


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with closing(open_store(STORES[request.param](tmp_path))) as store:
        memory = Memory(store)
        drafts = [
            EntityDraft("A", "t", ("one", "two"), "sum", ("x",)),
            EntityDraft("B", "t", ("three",)),
        ]
        entities.create(memory, drafts, by=ME)
        relations.create(memory, [Relation("A", "B", "knows")], by=ME)
        yield memory


@pytest.fixture
def folder(memory: Memory, tmp_path: Path) -> Path:
    sync(memory, tmp_path / "vault")
    return tmp_path / "vault"


def sync(memory: Memory, folder: Path, *, dry_run: bool = False) -> SyncReport:
    return sync_folder(memory, folder, by="sync", dry_run=dry_run)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def texts(memory: Memory, name: str) -> tuple[str, ...]:
    (entity,) = entities.open_named(memory, [name]).entities
    return entity.texts


def names(memory: Memory) -> set[str]:
    return {entity.name for entity in entities.read_all(memory).entities}


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.md")}


def is_settled(memory: Memory, folder: Path) -> bool:
    """Return True if another synchronization changes nothing."""
    before = files(folder)
    again = sync(memory, folder)
    return (again.change, again.conflicts, again.skipped, files(folder)) == (0, [], [], before)


def test_both_sides_get_the_edits_of_the_other(memory: Memory, folder: Path) -> None:
    edit(folder / "A.md", "- one ^o1", "- one in the folder ^o1")
    revise(memory, "A", Revision(replace=(Edit(2, "two in the memory"),), add_tags=("y",)), by=ME)
    entities.create(memory, [EntityDraft("C", "t")], by=ME)
    (folder / "D.md").write_text("---\npolymnia: entity\n---\n- hello\n", "utf-8")
    report = sync(memory, folder)
    assert report.conflicts == []
    assert texts(memory, "A") == ("one in the folder", "two in the memory")
    assert "- two in the memory ^o2" in (folder / "A.md").read_text("utf-8")
    assert names(memory) == {"A", "B", "C", "D"}
    assert (folder / "C.md").exists()
    assert (report.memory.created, report.memory.changed, report.files.created) == (1, 1, 1)
    assert is_settled(memory, folder)


def test_an_fact_that_both_changed_stays_in_both_versions(memory: Memory, folder: Path) -> None:
    edit(folder / "A.md", "- one ^o1", "- folder ^o1")
    revise(memory, "A", Revision(replace=(Edit(1, "memory"),)), by=ME)
    report = sync(memory, folder)
    assert [(conflict.what, conflict.memory, conflict.copy) for conflict in report.conflicts] == [
        ("fact", "memory", "folder")
    ]
    assert texts(memory, "A") == ("memory", "two", "folder")
    assert is_settled(memory, folder)


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_an_fact_that_one_deleted_and_the_other_changed_stays(
    memory: Memory, folder: Path, where: str
) -> None:
    if where == "folder":
        edit(folder / "A.md", "- one ^o1\n", "")
        revise(memory, "A", Revision(replace=(Edit(1, "changed"),)), by=ME)
    else:
        edit(folder / "A.md", "- one ^o1", "- changed ^o1")
        facts.remove(memory, [("A", ("one",))], by=ME)
    report = sync(memory, folder)
    assert [conflict.what for conflict in report.conflicts] == ["fact"]
    assert set(texts(memory, "A")) == {"changed", "two"}
    assert is_settled(memory, folder)


@pytest.mark.parametrize(
    ("what", "old", "new"), [("type", "type: t", "type: u"), ("summary", "sum", "folder's")]
)
def test_the_folders_version_of_what_both_changed_is_kept_in_a_file(
    memory: Memory, folder: Path, what: str, old: str, new: str
) -> None:
    revision = Revision(type="v") if what == "type" else Revision(summary="memory's")
    edit(folder / "A.md", f"{old}\n", f"{new}\n")
    edited = (folder / "A.md").read_bytes()
    revise(memory, "A", revision, by=ME)
    report = sync(memory, folder)
    assert [conflict.what for conflict in report.conflicts] == [what]
    (kept,) = report.conflict_files
    assert (folder / kept).read_bytes() == edited
    (entity,) = entities.open_named(memory, ["A"]).entities
    assert (entity.type, entity.summary) == (("v", "sum") if what == "type" else ("t", "memory's"))
    assert is_settled(memory, folder)


def test_tags_of_both_sides_are_joined(memory: Memory, folder: Path) -> None:
    edit(folder / "A.md", "  - x\n", "  - folder\n")
    revise(memory, "A", Revision(add_tags=("memory",)), by=ME)
    assert sync(memory, folder).conflicts == []
    (entity,) = entities.open_named(memory, ["A"]).entities
    assert entity.tags == ("memory", "folder")


def test_a_rename_in_the_memory_moves_the_file_and_the_links(memory: Memory, folder: Path) -> None:
    (folder / "people").mkdir()
    (folder / "B.md").rename(folder / "people" / "B.md")
    sync(memory, folder)
    revise(memory, "B", Revision(name="B/2"), by=ME)
    report = sync(memory, folder)
    assert sorted(files(folder)) == ["A.md", "people/B-2.md"]
    assert "- knows [[B-2|B/2]]" in (folder / "A.md").read_text("utf-8")
    assert report.change == 0
    assert is_settled(memory, folder)


def test_renames_on_both_sides_are_a_conflict(memory: Memory, folder: Path) -> None:
    (folder / "B.md").rename(folder / "Folder.md")
    revise(memory, "B", Revision(name="Memory"), by=ME)
    report = sync(memory, folder)
    assert [(conflict.what, conflict.memory, conflict.copy) for conflict in report.conflicts] == [
        ("name", "Memory", "Folder")
    ]
    assert names(memory) == {"A", "Memory"}
    assert [relation.key for relation in entities.read_all(memory).relations] == [
        ("A", "Memory", "knows")
    ]
    assert is_settled(memory, folder)


def test_a_rename_to_a_name_that_is_taken_is_refused(memory: Memory, folder: Path) -> None:
    edit(folder / "B.md", "type: t", "name: A\ntype: t")
    report = sync(memory, folder)
    assert [(conflict.what, conflict.name) for conflict in report.conflicts] == [("name", "B")]
    assert names(memory) == {"A", "B"}
    assert len(report.conflict_files) == 1
    assert is_settled(memory, folder)


def test_a_file_whose_name_is_taken_stays_and_is_not_copied_again(
    memory: Memory, folder: Path
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "A.md").write_text(
        "---\npolymnia: entity\n---\n\n## Observations\n\n- other\n", "utf-8"
    )
    before = {path for path in folder.rglob("*") if path.is_file()}
    for _ in range(2):
        report = sync(memory, folder)
        assert ([conflict.what for conflict in report.conflicts], report.conflict_files) == (
            ["name"],
            [],
        )
        assert report.skipped == ["sub/A.md: there is another entity of this name"]
    assert {path for path in folder.rglob("*") if path.is_file()} == before


def test_a_file_of_a_person_needs_no_heading(memory: Memory, folder: Path) -> None:
    text = "---\npolymnia: entity\n---\nWho he is.\n\n- a fact\n- another\n"
    (folder / "Bob.md").write_text(text, "utf-8")
    sync(memory, folder)
    assert texts(memory, "Bob") == ("a fact", "another")
    with memory.reading() as read:
        assert read.entities(["Bob"])[0].summary == "Who he is."


@pytest.mark.parametrize("heading", ["## Facts\n", ""])
def test_facts_under_another_heading_stay_facts(memory: Memory, folder: Path, heading: str) -> None:
    edit(folder / "A.md", "## Observations\n", heading)
    sync(memory, folder)
    (entity,) = entities.open_named(memory, ["A"]).entities
    assert [(fact.ordinal, fact.text) for fact in entity.facts] == [
        (1, "one"),
        (2, "two"),
    ]
    assert entity.summary == f"sum\n\n{heading}".strip()
    assert is_settled(memory, folder)


def test_a_deleted_file_goes_to_the_trash(memory: Memory, folder: Path) -> None:
    (folder / "A.md").unlink()
    report = sync(memory, folder)
    assert names(memory) == {"B"}
    assert report.memory.deleted == 1
    if memory.store.capabilities.trash:
        assert [entity.name for entity in trash.restore(memory, "A", by=ME).entities] == ["A"]
    else:
        undo.undo(memory, [report.change], by=ME)
    sync(memory, folder)
    assert (folder / "A.md").exists()


def test_a_deleted_entity_takes_its_file_along(memory: Memory, folder: Path) -> None:
    entities.delete(memory, ["B"], by=ME)
    report = sync(memory, folder)
    assert sorted(files(folder)) == ["A.md"]
    assert "[[B]]" not in (folder / "A.md").read_text("utf-8")
    assert (report.change, report.files.deleted) == (0, 1)


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_what_one_deleted_and_the_other_changed_stays(
    memory: Memory, folder: Path, where: str
) -> None:
    if where == "folder":
        (folder / "A.md").unlink()
        facts.add(memory, [FactAddition("A", ("new",))], by=ME, skip_repeats=True)
    else:
        entities.delete(memory, ["A"], by=ME)
        edit(folder / "A.md", "- two ^o2", "- two ^o2\n- new")
    report = sync(memory, folder)
    assert [conflict.what for conflict in report.conflicts] == ["deleted entity"]
    assert texts(memory, "A") == ("one", "two", "new")
    assert "- new ^o3" in (folder / "A.md").read_text("utf-8")
    assert is_settled(memory, folder)


def test_a_copied_file_is_a_new_entity(memory: Memory, folder: Path) -> None:
    shutil.copy(folder / "A.md", folder / "A copy.md")
    sync(memory, folder)
    assert names(memory) == {"A", "B", "A copy"}
    assert texts(memory, "A copy") == ("one", "two")
    assert is_settled(memory, folder)


def test_a_copied_line_is_a_new_fact(memory: Memory, folder: Path) -> None:
    edit(folder / "A.md", "- two ^o2", "- two ^o2\n- two ^o2")
    sync(memory, folder)
    assert texts(memory, "A") == ("one", "two", "two")
    assert is_settled(memory, folder)


@pytest.mark.parametrize("memory", ["sqlite", "postgres"], indirect=True)
def test_notes_are_kept_alike(memory: Memory, folder: Path) -> None:
    notes.commit(memory, Note("plan", "ship it"), by=ME)
    sync(memory, folder)
    edit(folder / "notes" / "plan.md", "ship it", "folder")
    notes.commit(memory, Note("plan", "memory"), by=ME)
    (folder / "notes" / "new.md").write_text("---\npolymnia: note\n---\nhello\n", "utf-8")
    report = sync(memory, folder)
    assert [(conflict.what, conflict.memory, conflict.copy) for conflict in report.conflicts] == [
        ("note", "memory", "folder")
    ]
    assert len(report.conflict_files) == 1
    assert {item.key: item.content for item in with_state(memory)} == {
        "plan": "memory",
        "new": "hello",
    }
    (folder / "notes" / "plan.md").unlink()
    sync(memory, folder)
    assert [item.key for item in with_state(memory)] == ["new"]


def with_state(memory: Memory) -> list[Note]:
    with memory.reading() as read:
        return list(state_of(memory, read).notes.values())


def test_other_files_are_left_alone(memory: Memory, folder: Path) -> None:
    others = {"C.md": b"# My own\n", "sub/x.md": b"---\ntitle: x\n---\n", "image.png": b"\x89PNG"}
    (folder / "sub").mkdir()
    for name, data in others.items():
        (folder / name).write_bytes(data)
    entities.create(memory, [EntityDraft("C", "t"), EntityDraft("x", "t")], by=ME)
    report = sync(memory, folder)
    assert report.others == 2
    assert {name: (folder / name).read_bytes() for name in others} == others
    assert len([name for name in files(folder) if name.startswith(("C ~", "x ~"))]) == 2


def test_a_line_at_the_end_of_any_file_is_an_fact(memory: Memory, folder: Path) -> None:
    entities.create(memory, [EntityDraft("Empty", "t")], by=ME)
    sync(memory, folder)
    for name in ("A", "B", "Empty"):
        with (folder / f"{name}.md").open("a", encoding="utf-8") as file:
            file.write("- added\n")
    sync(memory, folder)
    assert [texts(memory, name)[-1] for name in ("A", "B", "Empty")] == ["added"] * 3
    assert is_settled(memory, folder)


def test_properties_that_people_add_stay_in_their_files(memory: Memory, folder: Path) -> None:
    added = 'aliases:\n  - The first\n- "second"\nrating: 5\nmetadata:\n  a: b\n'
    edit(folder / "A.md", "type: t\n", f"type: u\n{added}")
    sync(memory, folder)
    revise(memory, "A", Revision(name="Z"), by=ME)
    sync(memory, folder)
    text = (folder / "Z.md").read_text("utf-8")
    assert ("type: u\n" in text, f"\n{added}---\n" in text) == (True, True)
    assert is_settled(memory, folder)


@pytest.mark.parametrize(
    ("written", "target"),
    [("B|somebody", "B"), ("b", "B"), ("Nobody|no one", "Nobody"), ("No-body|No/body", "No/body")],
)
def test_links_mean_what_they_mean_in_obsidian(
    memory: Memory, folder: Path, written: str, target: str
) -> None:
    edit(folder / "A.md", "- knows [[B]]", f"- likes [[{written}]]")
    sync(memory, folder)
    assert [relation.key for relation in entities.read_all(memory).relations] == [
        ("A", target, "likes")
    ]
    assert is_settled(memory, folder)


def test_a_dry_run_changes_nothing(memory: Memory, folder: Path) -> None:
    edit(folder / "A.md", "- one ^o1", "- edited ^o1")
    entities.create(memory, [EntityDraft("C", "t")], by=ME)
    before = files(folder)
    report = sync(memory, folder, dry_run=True)
    assert (report.change, report.memory.changed, report.files.created) == (0, 1, 1)
    assert (files(folder), texts(memory, "A")) == (before, ("one", "two"))


def test_a_dry_run_tells_what_the_synchronization_then_does(memory: Memory, folder: Path) -> None:
    edit(folder / "A.md", "- one ^o1", "- edited ^o1")
    expected = sync(memory, folder, dry_run=True)
    report = sync(memory, folder)
    assert (expected.memory, expected.files) == (report.memory, report.files)
    assert (report.memory.changed, report.files.changed) == (1, 1)


def test_a_synchronization_is_one_change_that_can_be_undone(memory: Memory, folder: Path) -> None:
    (folder / "B.md").unlink()
    edit(folder / "A.md", "- one ^o1", "- edited ^o1")
    report = sync(memory, folder)
    undo.undo(memory, [report.change], by=ME)
    assert (texts(memory, "A"), names(memory)) == (("one", "two"), {"A", "B"})
    sync(memory, folder)
    assert "- one ^o1" in (folder / "A.md").read_text("utf-8")


def test_a_folder_that_git_moved_back_takes_the_memory_along(memory: Memory, folder: Path) -> None:
    """The state of the synchronization is not in the repository, so an older commit is an edit like
    any other.
    """
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    assert ".polymnia" not in git(folder, "ls-files")
    revise(memory, "A", Revision(replace=(Edit(1, "newer"),)), by=ME)
    entities.create(memory, [EntityDraft("C", "t")], by=ME)
    sync(memory, folder)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "two")
    git(folder, "checkout", "-q", "HEAD~1")
    report = sync(memory, folder)
    assert (report.conflicts, texts(memory, "A"), names(memory)) == ([], ("one", "two"), {"A", "B"})
    undo.undo(memory, [report.change], by=ME)
    assert (texts(memory, "A"), names(memory)) == (("newer", "two"), {"A", "B", "C"})


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
    ).stdout


def test_a_folder_meets_a_memory_that_it_does_not_know(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    """Without a common state nothing is deleted: both sides get what the other has."""
    with closing(open_store(":memory:")) as store:
        other = Memory(store)
        entities.create(
            other, [EntityDraft("A", "other type", ("one", "own")), EntityDraft("Z", "t")], by=ME
        )
        report = sync(other, folder)
        assert [
            (conflict.what, conflict.memory, conflict.copy) for conflict in report.conflicts
        ] == [("type", "other type", "t")]
        assert names(other) == {"A", "B", "Z"}
        assert set(texts(other, "A")) == {"one", "own", "two"}
        assert set(files(folder)) == {"A.md", "B.md", "Z.md"}


def test_a_memory_that_was_set_back_does_not_delete_files(tmp_path: Path) -> None:
    path, folder = tmp_path / "memory.db", tmp_path / "vault"
    with closing(open_store(str(path))) as store:
        entities.create(Memory(store), [EntityDraft("A", "t")], by=ME)
    shutil.copy(path, tmp_path / "backup.db")
    with closing(open_store(str(path))) as store:
        entities.create(Memory(store), [EntityDraft("B", "t", ("kept",))], by=ME)
        sync(Memory(store), folder)
    for item in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        item.unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", path)
    with closing(open_store(str(path))) as store:
        sync(Memory(store), folder)
        assert names(Memory(store)) == {"A", "B"}
        assert set(files(folder)) == {"A.md", "B.md"}


@pytest.mark.parametrize("memory", ["sqlite", "postgres"], indirect=True)
def test_links_out_of_the_folder_are_neither_read_nor_written(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "X.md").write_text("---\npolymnia: entity\n---\n", "utf-8")
    (folder / "notes").symlink_to(tmp_path / "outside")
    (folder / "Y.md").symlink_to(tmp_path / "outside" / "X.md")
    sync(memory, folder)
    assert names(memory) == {"A", "B"}
    notes.commit(memory, Note("plan", "ship it"), by=ME)
    with pytest.raises(BadInput, match="link to another place"):
        sync(memory, folder)
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["X.md"]


@pytest.mark.parametrize("memory", ["sqlite"], indirect=True)
def test_no_folder_is_created_behind_a_link(memory: Memory, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "deep").mkdir()
    (folder / "A.md").rename(folder / "deep" / "A.md")
    sync(memory, folder)
    (folder / "deep" / "A.md").unlink()
    (folder / "deep").rmdir()
    (folder / "deep").symlink_to(tmp_path / "outside" / "new", target_is_directory=True)
    sync(memory, folder)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("memory", ["sqlite"], indirect=True)
@pytest.mark.parametrize("linked", [".polymnia", ".polymnia/base.jsonl"])
def test_the_state_is_not_written_through_a_link(
    memory: Memory, folder: Path, tmp_path: Path, linked: str
) -> None:
    target = tmp_path / "outside"
    (folder / linked).rename(target)
    (folder / linked).symlink_to(target)
    state = target / "base.jsonl" if target.is_dir() else target
    before = state.read_bytes()
    entities.delete(memory, ["B"], by=ME)
    with pytest.raises(BadInput, match="is a link to another place"):
        sync(memory, folder)
    assert state.read_bytes() == before
    assert (folder / "B.md").exists()


@pytest.mark.parametrize("memory", ["sqlite"], indirect=True)
@pytest.mark.skipif(os.name == "nt", reason="folders have no modes here")
def test_new_folders_are_private(memory: Memory, folder: Path, tmp_path: Path) -> None:
    notes.commit(memory, Note("plan", "ship it"), by=ME)
    sync(memory, folder)
    export_folder(memory, tmp_path / "export")
    for place in (folder, folder / "notes", folder / ".polymnia", tmp_path / "export"):
        assert place.stat().st_mode & 0o777 == 0o700, place


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            b"<<<<<<< HEAD\n- one here ^o1\n=======\n- one there ^o1\n>>>>>>> other",
            r"A\.md has a conflict",
        ),
        (
            b"<<<<<<< HEAD\r\n- 1 ^o1\r\n=======\r\n- 2 ^o1\r\n>>>>>>> other",
            r"A\.md has a conflict",
        ),
        ("- Zoë ^o1".encode("latin-1"), r"A\.md is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_understood_whole_stops_the_synchronization(
    memory: Memory, folder: Path, damage: bytes, sentence: str
) -> None:
    (folder / "A.md").write_bytes((folder / "A.md").read_bytes().replace(b"- one ^o1", damage))
    before = files(folder)
    with pytest.raises(BadInput, match=sentence):
        sync(memory, folder)
    assert (texts(memory, "A"), files(folder)) == (("one", "two"), before)


@pytest.mark.parametrize("memory", ["sqlite", "postgres"], indirect=True)
def test_a_text_about_conflicts_of_git_is_no_conflict(memory: Memory, folder: Path) -> None:
    text = "<<<<<<< a\nb\n=======\nc\n>>>>>>> d"
    notes.commit(memory, Note("plan", text), by=ME)
    revise(memory, "A", Revision(replace=(Edit(1, text),), summary=text), by=ME)
    sync(memory, folder)
    assert is_settled(memory, folder)
    assert text in texts(memory, "A")


def test_a_file_is_not_a_folder(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "file.md").write_text("---\npolymnia: entity\n---\n", "utf-8")
    with pytest.raises(BadInput, match="is not a folder"):
        sync(memory, tmp_path / "file.md")


def test_a_file_that_is_saved_meanwhile_is_left_for_the_next_time(
    memory: Memory, folder: Path
) -> None:
    revise(memory, "A", Revision(replace=(Edit(1, "memory"),)), by=ME)
    revise(memory, "B", Revision(replace=(Edit(1, "changed"),)), by=ME)

    def save(done: int) -> None:
        if done == 1:
            edit(folder / "B.md", "- three ^o1", "- three ^o1\n- saved meanwhile")

    report = sync_folder(memory, folder, by="sync", progress=save)
    assert report.skipped == ["B.md: changed meanwhile, left for the next time"]
    assert "saved meanwhile" in (folder / "B.md").read_text("utf-8")
    assert sync(memory, folder).conflicts == []
    assert texts(memory, "B") == ("changed", "saved meanwhile")
    assert is_settled(memory, folder)


def test_a_store_without_history_cannot_be_kept_alike(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    with (
        closing(open_store(str(tmp_path / "m.jsonl"))) as store,
        pytest.raises(NotSupported, match="keeps no history"),
    ):
        sync(Memory(store), folder)


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_a_synchronization_that_was_killed_goes_on(memory: Memory, folder: Path, stop: int) -> None:
    edit(folder / "A.md", "- one ^o1", "- folder ^o1\n- added")
    (folder / "N.md").write_text("---\npolymnia: entity\ntype: t\n---\n- hello\n", "utf-8")
    revise(memory, "A", Revision(replace=(Edit(1, "memory"),)), by=ME)
    revise(memory, "B", Revision(name="B2"), by=ME)

    def interrupt(done: int) -> None:
        if done > stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sync_folder(
            memory, folder, by="sync", progress=interrupt
        ) if stop < 3 else kill_before_state(memory, folder)
    sync(memory, folder)
    assert names(memory) == {"A", "B2", "N"}
    assert sorted(texts(memory, "A")) == ["added", "folder", "memory", "two"]
    assert sorted(files(folder)) == ["A.md", "B2.md", "N.md"]
    assert is_settled(memory, folder)


def kill_before_state(memory: Memory, folder: Path) -> None:
    """Do everything but remember it."""
    state = (folder / ".polymnia" / "base.jsonl").read_bytes()
    sync(memory, folder)
    (folder / ".polymnia" / "base.jsonl").write_bytes(state)
    raise KeyboardInterrupt


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_any_change_of_the_memory_reaches_the_folder(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Step]]
) -> None:
    folder = tmp_path_factory.mktemp("sync") / "vault"
    with closing(open_store(":memory:")) as store, closing(open_store(":memory:")) as other:
        memory, copy = Memory(store), Memory(other)
        for steps in rounds:
            for step in steps:
                take(memory, step)
            report = sync(memory, folder)
            assert (report.change, report.conflicts) == (0, [])
        sync(copy, folder)
        with memory.reading() as mine, copy.reading() as theirs:
            assert state_of(copy, theirs) == state_of(memory, mine)


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    fill(str(tmp_path / "m.db"))
    assert run("sync", "vault", "--store", "none.db", directory=tmp_path).returncode == 1
    said = run("sync", "vault", "--store", "m.db", directory=tmp_path)
    assert said.stdout == "m.db: unchanged\nvault: 1 file created\n"
    edit(tmp_path / "vault" / "Zoë.md", "type: person", "type: poet")
    trial = run("sync", "vault", "--store", "m.db", "--dry-run", "--json", directory=tmp_path)
    assert json.loads(trial.stdout)["report"]["memory"] == {
        "created": 0,
        "changed": 1,
        "deleted": 0,
    }
    said = run("sync", "vault", "--store", "m.db", directory=tmp_path)
    assert "m.db: 1 changed" in said.stdout
    assert "to take it back: polymnia undo 3 --store m.db" in said.stdout
    assert run("undo", "3", "--store", "m.db", directory=tmp_path).returncode == 0
    refused = run(
        "export", "--format", "markdown", "-o", "vault", "--store", "m.db", directory=tmp_path
    )
    assert (refused.returncode, "not an empty folder" in refused.stderr) == (1, True)
    said = run("export", "--format", "markdown", "-o", "new", "--store", "m.db", directory=tmp_path)
    assert said.stderr == "new: 1 entity, 1 relation of m.db\n"
    edit(tmp_path / "new" / "Zoë.md", "type: person", "type: poet")
    said = run("sync", "new", "--store", "m.db", directory=tmp_path)
    assert "m.db: 1 changed" in said.stdout
    said = run("import", "new", "--store", "fresh.db", directory=tmp_path)
    assert "imported 1 entity (1 new) and 1 relation (1 new)" in said.stdout
