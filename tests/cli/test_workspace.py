"""`polymnia workspace`, `polymnia trash`, and the other commands on a data directory."""

import json
import subprocess
from io import StringIO
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine.graph import entities, facts
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft
from tests.processes import TIMEOUT_S, polymnia_command


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error."""
    status = main(arguments)
    said = capsys.readouterr()
    return status, said.out, said.err


def remember(workspace: str, *names: str) -> None:
    workspaces = open_workspaces("data/")
    memory = workspaces.memory(workspace)
    entities.create(
        memory,
        [EntityDraft(name, "thing", (f"{name} is known", "twice")) for name in names],
        by="test",
    )
    workspaces.close()


def forget(workspace: str, name: str) -> None:
    workspaces = open_workspaces("data/")
    entities.delete(workspaces.memory(workspace), [name], by="test")
    workspaces.close()


def test_a_workspace_is_created_listed_archived_restored_renamed_and_deleted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = ("--data-dir", "data")
    assert run(capsys, "workspace", "create", "alpha", *where, "--description", "the first")[
        :2
    ] == (
        0,
        "created alpha\n",
    )
    assert run(capsys, "workspace", "archive", "alpha", *where)[1] == "archived alpha\n"
    assert "alpha  archived" in run(capsys, "workspace", "list", *where)[1]
    assert run(capsys, "workspace", "list", *where, "--status", "active")[1] == ""
    assert run(capsys, "workspace", "restore", "alpha", *where)[1] == "restored alpha\n"
    assert (
        run(capsys, "workspace", "rename", "alpha", "beta", *where)[1] == "renamed alpha to beta\n"
    )
    (listed,) = json.loads(run(capsys, "workspace", "list", *where, "--json")[1])
    assert (listed["name"], listed["description"], listed["status"]) == (
        "beta",
        "the first",
        "active",
    )
    assert run(capsys, "workspace", "delete", "beta", *where, "--yes")[1] == "deleted beta\n"
    assert run(capsys, "workspace", "list", *where)[1] == ""


def test_deleting_needs_confirmation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    monkeypatch.setattr("sys.stdin", StringIO())
    status, _, said = run(capsys, "workspace", "delete", "alpha", "--store", "data/")
    assert (status, "cannot be undone: add --yes" in said) == (1, True)
    assert "alpha" in run(capsys, "workspace", "list", "--store", "data/")[1]


def test_reading_a_missing_directory_does_not_create_it(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    status, _, said = run(capsys, "workspace", "list", "--store", "typo/")
    assert (status, said) == (1, "polymnia: there are no workspaces in typo/\n")
    assert list(here.iterdir()) == []


def test_a_single_file_has_one_workspace(capsys: pytest.CaptureFixture[str]) -> None:
    open_workspaces("one.db").close()
    assert run(capsys, "workspace", "list", "--store", "one.db")[1].startswith("default  active")
    assert "data directory" in run(capsys, "workspace", "create", "x", "--store", "one.db")[2]


def test_commands_on_a_directory_need_a_workspace(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("alpha", "beta"):
        run(capsys, "workspace", "create", name, "--store", "data/")
    remember("alpha", "A")
    status, _, said = run(capsys, "export", "--store", "data")
    assert (status, said) == (
        1,
        "polymnia: data has no workspace for this directory: "
        "name one with --workspace (alpha, beta)\n",
    )


def test_a_workspace_is_exported_and_imported_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("alpha", "beta"):
        run(capsys, "workspace", "create", name, "--store", "data/")
    remember("alpha", "A")
    assert (
        run(capsys, "export", "--store", "data", "--workspace", "alpha", "-o", "out.jsonl")[0] == 0
    )
    assert (
        "1 new" in run(capsys, "import", "out.jsonl", "--store", "data", "--workspace", "beta")[1]
    )
    workspaces = open_workspaces("data/")
    assert [entity.name for entity in entities.read_all(workspaces.memory("beta")).entities] == [
        "A"
    ]
    workspaces.close()


def test_the_doctor_checks_every_workspace_and_the_files(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    for name in ("alpha", "beta"):
        run(capsys, "workspace", "create", name, "--store", "data/")
    remember("alpha", "A")
    status, said, _ = run(capsys, "doctor", "--store", "data/")
    assert (status, said.count("sound")) == (0, 2)
    (here / "data" / "projects" / "stray.db").write_bytes(b"")
    status, said, _ = run(capsys, "doctor", "--store", "data/")
    assert (status, "stray.db belongs to no workspace" in said) == (1, True)


def test_the_doctor_rebuilds_a_lost_registry(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    remember("alpha", "A")
    (here / "data" / "_meta.db").unlink()
    status, said, _ = run(capsys, "doctor", "--store", "data/")
    assert (status, "polymnia doctor --rebuild" in said) == (1, True)
    assert run(capsys, "doctor", "--rebuild", "--store", "data/")[1].startswith("active: alpha\n")
    assert run(capsys, "doctor", "--store", "data/")[0] == 0


def test_what_was_deleted_is_listed_and_restored(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    remember("alpha", "A", "B")
    forget("alpha", "A")
    where = ("--store", "data", "--workspace", "alpha")
    (listed,) = json.loads(run(capsys, "trash", "list", *where, "--json")[1])
    assert (listed["kind"], listed["what"]) == ("entity", "A (thing): 2 facts, 0 relations")
    assert listed["id"] in run(capsys, "trash", "list", *where)[1]
    assert (
        run(capsys, "trash", "restore", listed["id"], *where)[1]
        == "restored A, with 0 relations in alpha\n"
    )
    assert run(capsys, "trash", "list", *where)[1] == "the trash of alpha is empty\n"


def test_single_facts_and_relations_are_shown_by_their_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    remember("alpha", "A")
    workspaces = open_workspaces("data/")
    facts.remove(workspaces.memory("alpha"), [("A", ("twice",))], by="test")
    workspaces.close()
    said = run(capsys, "trash", "list", "--store", "data", "--workspace", "alpha")[1]
    assert "fact  A: twice" in said
    assert (
        run(capsys, "trash", "restore", said.split()[0], "--store", "data", "--workspace", "alpha")[
            0
        ]
        == 0
    )


def test_purging_needs_an_age_and_deletes_what_is_older(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    remember("alpha", "A")
    forget("alpha", "A")
    where = ("--store", "data", "--workspace", "alpha")
    assert "purge needs an age" in run(capsys, "trash", "purge", *where)[2]
    assert run(capsys, "trash", "purge", "--older-than", "1", *where)[1].startswith(
        "purged from alpha: 0 entities"
    )
    assert run(capsys, "trash", "purge", "--older-than", "0", *where)[1] == (
        "purged from alpha: 1 entity, 2 facts, 0 relations\n"
    )
    assert run(capsys, "trash", "restore", "A", *where)[0] == 1


def serve(here: Path, *arguments: str, messages: str) -> subprocess.CompletedProcess[str]:
    command = polymnia_command("serve", *arguments)
    environment = {"HOME": str(here), "PATH": ""}
    return subprocess.run(
        command,
        cwd=here,
        input=messages,
        capture_output=True,
        text=True,
        env=environment,
        timeout=TIMEOUT_S,
        check=False,
    )


def call(tool: str, **arguments: object) -> str:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}) + "\n"


def test_the_project_dialect_keeps_its_projects_in_data(here: Path) -> None:
    done = serve(here, "--dialect", "project", messages=call("create_project", name="alpha"))
    assert '"isError"' not in done.stdout
    assert (here / "data" / "_meta.db").is_file()
    again = serve(
        here,
        "--transport",
        "stdio",
        "--data-dir",
        "data",
        "--dialect",
        "project",
        messages=call("list_projects"),
    )
    assert "alpha" in again.stdout


def test_a_project_can_be_chosen_at_the_start(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    remember("alpha", "A")
    arguments = ("--dialect", "project", "--workspace", "alpha")
    assert "A is known" in serve(here, *arguments, messages=call("read_graph")).stdout


def test_any_dialect_runs_over_a_directory(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    remember("alpha", "A")
    where = ("--dialect", "reference", "--store", "data/")
    assert (
        "A is known"
        in serve(here, *where, "--workspace", "alpha", messages=call("read_graph")).stdout
    )
    assert "A is known" not in serve(here, *where, messages=call("read_graph")).stdout
    assert "default  active" in run(capsys, "workspace", "list", "--store", "data/")[1]


def test_a_workspace_that_is_missing_at_the_start_is_an_error(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "workspace", "create", "alpha", "--store", "data/")
    done = serve(here, "--dialect", "graph", "--store", "data/", "--workspace", "typo", messages="")
    assert (done.returncode, "polymnia workspace create typo" in done.stderr) == (1, True)
