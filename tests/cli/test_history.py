"""`polymnia history` and `polymnia undo`."""

import json
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition
from polymnia.stores import open_store


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    path = str(tmp_path / "memory.db")
    memory = Memory(open_store(path))
    entities.create(memory, [EntityDraft("Ann", "person", ("tea",))], by="first client")
    facts.add(memory, [FactAddition("Ann", ("milk",))], by="second client", skip_repeats=False)
    revise(memory, "Ann", Revision(replace=(Edit(1, "coffee"),)), by="first client")
    memory.store.close()
    return ["--store", path]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_history_lists_changes_newest_first(
    capsys: pytest.CaptureFixture[str], where: list[str]
) -> None:
    status, said = run(capsys, "history", *where)
    lines = said.splitlines()
    assert status == 0
    assert [line.split()[1] for line in lines if line.startswith("change")] == ["3", "2", "1"]
    assert lines[0].endswith("first client  revise")
    assert "  ~ fact Ann #1: tea => coffee" in lines
    assert "  + entity Ann: person" in lines


def test_history_is_filtered_and_read_in_pages(
    capsys: pytest.CaptureFixture[str], where: list[str]
) -> None:
    found = json.loads(
        run(capsys, "history", "Ann", "--actor", "FIRST", "--limit", "1", "--json", *where)[1]
    )
    assert ([change["id"] for change in found["changes"]], found["next"]) == ([3], 3)
    found = json.loads(
        run(capsys, "history", "--operation", "add_observations", "--json", *where)[1]
    )
    assert found["changes"][0]["differences"][0]["after"] == "milk"
    assert run(capsys, "history", "Zoe", *where) == (1, f"no changes found in {where[1]}\n")
    assert run(capsys, "history", "--since", "soon", *where)[1].startswith(
        "polymnia: --since: 'soon' is not a time"
    )


def test_a_change_is_undone(capsys: pytest.CaptureFixture[str], where: list[str]) -> None:
    status, said = run(capsys, "undo", "3", "--dry-run", *where)
    assert (status, said) == (
        0,
        f"would remove 1 fact and restore 1 fact in {where[1]}\n",
    )
    status, said = run(capsys, "undo", "3", *where)
    assert (status, said) == (
        0,
        "undone as change 4: removed 1 fact, restored 1 fact\n"
        f"to take it back: polymnia undo 4 --store {where[1]}\n",
    )
    assert run(capsys, "undo", "3", *where) == (
        0,
        f"nothing to undo in {where[1]}: everything is as it was before\n",
    )


def test_conflicts_prevent_an_undo_unless_they_are_skipped(
    capsys: pytest.CaptureFixture[str], where: list[str]
) -> None:
    status, said = run(capsys, "undo", "1", *where)
    assert status == 1
    assert "conflict: fact 1 of Ann: it was changed since (change 1)" in said
    assert said.endswith(f"nothing was undone in {where[1]}; --skip-conflicts undoes the rest\n")
    found = json.loads(
        run(
            capsys,
            "undo",
            "--since",
            "1d",
            "--actor",
            "first",
            "--json",
            "--skip-conflicts",
            *where,
        )[1]
    )
    assert found["undone"] == [1, 3]
    assert [conflict["what"] for conflict in found["conflicts"]] == ["the entity Ann"]
    assert found["removed"] == {"entities": 0, "facts": 1, "relations": 0, "notes": 0}


def test_what_to_undo_must_be_said(capsys: pytest.CaptureFixture[str], where: list[str]) -> None:
    assert run(capsys, "undo", *where) == (
        1,
        "polymnia: say what to undo: ids of changes, or --since TIME\n",
    )
    assert (
        run(capsys, "undo", "1", "--actor", "x", *where)[1]
        == "polymnia: --actor needs --since TIME\n"
    )
