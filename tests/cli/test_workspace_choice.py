"""The workspaces that commands read and write, in a project and outside, and how they say so."""

import json
import re
import shlex
from contextlib import closing, suppress
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import RecallResult
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft
from polymnia.settings import Settings
from polymnia.workspace_choice import open_workspaces_to_read


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a new user, who is in it, with a project `shop` below."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("POLYMNIA_STORE", raising=False)
    monkeypatch.setenv("POLYMNIA_EMBEDDER", "none")
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error."""
    status = main(arguments)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize(
    "command",
    ["search tea", "stats", "list", "history", "trash list", "export", "index"],
)
def test_a_new_user_has_an_empty_personal_memory(
    command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, err = run(capsys, *command.split())
    assert "personal" in out + err
    assert "there are no workspaces" not in err
    assert not (home / "data").exists() or command == "index"


def test_a_store_that_is_named_and_missing_is_a_mistake(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "search", "tea", "--store", "typo/")[::2] == (
        1,
        "polymnia: there are no workspaces in typo/\n",
    )


def test_personal_exists_although_only_a_project_was_written(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home / "shop")
    assert "in shop\n" in run(capsys, "remember", "Build", "needs make")[1]
    monkeypatch.chdir(home)
    status, out, _ = run(capsys, "search", "make")
    assert (status, out.splitlines()[0]) == (1, "nothing found in personal")
    assert "other workspaces, for --workspace: shop" in out
    assert run(capsys, "remember", "Bike", "is red", "--workspace", "personal")[0] == 0
    assert "Bike" in run(capsys, "list")[1]


def test_a_project_and_personal_are_read_together_and_labelled(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "Ada", "likes tea")
    monkeypatch.chdir(home / "shop")
    run(capsys, "remember", "Counter", "sells tea")
    _, out, _ = run(capsys, "search", "tea")
    assert "searched shop and personal" in out
    assert sorted(re.findall(r"in (shop|personal);", out)) == ["personal", "shop"]
    hits = json.loads(run(capsys, "search", "tea", "--json")[1])["hits"]
    assert {(hit["entity"], hit["workspace"]) for hit in hits} == {
        ("Ada", "personal"),
        ("Counter", "shop"),
    }
    assert run(capsys, "show", "Ada")[1].startswith("Ada [thing] in personal\n")
    assert {line.split()[-1] for line in run(capsys, "list")[1].splitlines()[:2]} == {
        "personal",
        "shop",
    }
    labels = re.findall(r"^change (\S+)", run(capsys, "history")[1], re.MULTILINE)
    assert labels == ["shop:1", "personal:1"]


def test_a_note_about_one_of_two_workspaces_names_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "polymnia.cli.search.recall",
        lambda memory, *_, **__: RecallResult(hits=[], note="" if _is_new(memory) else "by words"),
    )
    for name in ("Ada", "Bob"):
        run(capsys, "remember", name, "likes tea", "--workspace", "personal")
    monkeypatch.chdir(home / "shop")
    run(capsys, "remember", "Counter", "sells tea")
    assert "note: personal: by words\n" in run(capsys, "search", "tea")[1]
    run(capsys, "remember", "Shelf", "holds tea")
    assert "note: by words\n" in run(capsys, "search", "tea")[1]


def _is_new(memory: Memory) -> bool:
    return len(entities.read_all(memory).entities) < 2


def test_the_hint_of_an_import_does_the_same_wherever_it_is_pasted(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "Bike", "is red")
    line = '{"type":"entity","name":"Build","entityType":"x","observations":[]}'
    (home / "memory.jsonl").write_text(line, "utf-8")
    monkeypatch.chdir(home / "shop")
    _, out, _ = run(capsys, "import", str(home / "memory.jsonl"))
    assert " into shop\n" in out
    hint = out.splitlines()[-1].partition("polymnia ")[2]
    monkeypatch.chdir(home)
    assert "removed 1 entity" in run(capsys, *shlex.split(hint))[1]
    assert "Bike" in run(capsys, "list")[1]
    assert run(capsys, "list", "--workspace", "shop")[0] == 1


def test_a_change_needs_its_workspace_if_there_are_several(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "remember", "Bike", "is red")
    assert run(capsys, "undo", "1", "--dry-run")[0] == 0
    monkeypatch.chdir(home / "shop")
    run(capsys, "remember", "Build", "needs make")
    assert run(capsys, "undo", "1")[::2] == (
        1,
        "polymnia: change 1: name its workspace too, e.g. shop:1 or personal:1\n",
    )
    assert "several workspaces" in run(capsys, "undo", "shop:1", "personal:1")[2]
    assert run(capsys, "undo", "1", "--workspace", "shop", "--dry-run")[0] == 0
    assert "undone as change personal:2" in run(capsys, "undo", "personal:1")[1]
    assert "is not the id of a change" in run(capsys, "undo", "first")[2]


def test_the_pages_of_a_history_name_their_workspace(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        run(capsys, "remember", "Bike", f"fact {number}")
    _, out, _ = run(capsys, "history", "--limit", "2")
    assert out.splitlines()[-1] == "older: polymnia history --before personal:2"
    assert run(capsys, "history", "--before", "personal:2")[1].startswith("change personal:1 ")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
def test_leaving_the_places_closes_their_files(tmp_path: Path) -> None:
    settings = Settings(store=f"{tmp_path}/", workspace="shop")
    with closing(open_workspaces(settings.store)) as workspaces:
        workspaces.create("shop")
        entities.create(workspaces.memory("shop"), [EntityDraft("A", "thing")], by="test")
    with open_workspaces_to_read(settings) as places:
        entities.read_all(places[0].memory)
        assert _open_files(tmp_path) != []
    assert places[0].name == "shop"  # the memory is still referred to
    assert _open_files(tmp_path) == []


def _open_files(directory: Path) -> list[str]:
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            names.append(str(descriptor.readlink()))
    return [name for name in names if name.startswith(str(directory))]
