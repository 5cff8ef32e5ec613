"""`polymnia import` in a real process: detection, dry runs, reports, refusals and undo."""

import json
from pathlib import Path

import pytest

from polymnia.cli import common, show
from polymnia.cli.main import main
from polymnia.stores.sqlite.store import SqliteStore
from tests.cli.commands import run
from tests.importers.samples import SAMPLES


def test_an_import_reports_what_it_did_and_how_to_take_it_back(tmp_path: Path) -> None:
    said = run("import", str(SAMPLES / "mem0.json"), "--store", "new.db", directory=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "imported 2 entities (2 new) and 1 relation (1 new) into new.db" in said.stdout
    assert "left out the field metadata.category of memories[0]\n" in said.stdout
    assert said.stdout.endswith("to take it back: polymnia undo 1 --store new.db\n")
    run("undo", "1", "--store", "new.db", directory=tmp_path)
    stats = json.loads(
        run("export", "--format", "json", "--store", "new.db", directory=tmp_path).stdout
    )
    assert (stats["entities"], stats["relations"]) == ([], [])


def test_a_program_gets_the_report_as_json(tmp_path: Path) -> None:
    lines = ["{}", '{"type":"entity","name":"A","entityType":"x","observations":["one"]}', "bad"]
    (tmp_path / "memory.jsonl").write_text("\n".join(lines), "utf-8")
    said = run("import", "memory.jsonl", "--store", "new.db", "--json", directory=tmp_path)
    assert json.loads(said.stdout) == {
        "file": "memory.jsonl",
        "from": "memory-json",
        "store": "new.db",
        "workspace": "default",
        "dry_run": False,
        "entities": {"read": 1, "new": 1, "merged": 0},
        "facts": {"new": 1},
        "relations": {"read": 0, "new": 0},
        "notes": {"read": 0, "new": 0, "updated": 0},
        "skipped": [
            {"reason": "neither an entity nor a relation", "count": 1, "places": ["line 1"]},
            {"reason": "not valid JSON", "count": 1, "places": ["line 3"]},
        ],
        "left_fields": [],
        "secrets": [],
        "conflicts": {"count": 0, "first": []},
        "new_ids": 0,
        "changes": [1],
        "undo": "polymnia undo 1 --store new.db",
    }


@pytest.mark.parametrize("store", ["new.db", "new.jsonl", "new.mcpmem", "data/"])
def test_a_dry_run_creates_nothing(store: str, tmp_path: Path) -> None:
    said = run(
        "import", str(SAMPLES / "claude.json"), "--store", store, "--dry-run", directory=tmp_path
    )
    assert (said.returncode, "would import 1 entity (1 new)" in said.stdout) == (0, True)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_compares_with_what_the_store_has(tmp_path: Path) -> None:
    run("import", str(SAMPLES / "claude.json"), "--store", "new.db", directory=tmp_path)
    said = run(
        "import", str(SAMPLES / "claude.json"), "--store", "new.db", "--dry-run", directory=tmp_path
    )
    assert "would import 1 entity (0 new)" in said.stdout
    assert "to take it back" not in said.stdout


def test_an_import_says_what_it_did_not_replace(tmp_path: Path) -> None:
    for kind in ("person", "robot"):
        line: dict[str, object] = {
            "type": "entity",
            "name": "Elena",
            "entityType": kind,
            "observations": [],
        }
        (tmp_path / "memory.jsonl").write_text(json.dumps(line), "utf-8")
        said = run("import", "memory.jsonl", "--store", "new.db", directory=tmp_path)
    assert "kept what the store says differently: the type of Elena\n" in said.stdout


@pytest.mark.parametrize("content", ["", "hello\n", '{"some": "json"}', "not json\n{}\n"])
def test_an_unknown_format_is_refused_and_leaves_nothing_behind(
    content: str, tmp_path: Path
) -> None:
    (tmp_path / "input.json").write_text(content, "utf-8")
    said = run("import", "input.json", "--store", "new.db", directory=tmp_path)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith(
        ("polymnia: input.json: unknown format; ", "polymnia: input.json is empty\n")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["input.json"]


def test_input_without_anything_to_take_is_refused(tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text("[1]", "utf-8")
    said = run("import", "input.json", "--from", "mem0", "--store", "new.db", directory=tmp_path)
    assert (said.returncode, said.stderr) == (
        1,
        "polymnia: input.json: nothing to import; memories[0]: not a JSON object\n",
    )
    assert not (tmp_path / "new.db").exists()


def test_the_kind_can_be_named(tmp_path: Path) -> None:
    said = run(
        "import",
        str(SAMPLES / "mem0.json"),
        "--from",
        "soon",
        "--store",
        "new.db",
        directory=tmp_path,
    )
    assert (said.returncode, "'soon'" in said.stderr) == (2, True)
    said = run(
        "import",
        str(SAMPLES / "mem0.json"),
        "--from",
        "mem0",
        "--store",
        "new.db",
        directory=tmp_path,
    )
    assert said.returncode == 0


def test_what_was_said_in_a_chat_is_found(tmp_path: Path) -> None:
    run("import", str(SAMPLES / "chatgpt.json"), "--store", "new.db", directory=tmp_path)
    said = run(
        "search",
        "best month for Lisbon",
        "--store",
        "new.db",
        "--embedder",
        "none",
        directory=tmp_path,
    )
    assert "Trip to Lisbon" in said.stdout


def test_one_workspace_of_a_directory_is_imported(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "line.jsonl").write_text(
            f'{{"type":"entity","name":"{name}","entityType":"x","observations":[]}}', "utf-8"
        )
        run("workspace", "create", name, "--store", "data/", directory=tmp_path)
        run("import", "line.jsonl", "--store", "data/", "--workspace", name, directory=tmp_path)
    refused = run("import", "data/", "--store", "new.db", directory=tmp_path)
    assert (refused.returncode, "--from-workspace" in refused.stderr) == (1, True)
    assert not (tmp_path / "new.db").exists()
    said = run(
        "import", "data/", "--from-workspace", "two", "--store", "new.db", directory=tmp_path
    )
    assert "imported 1 entity (1 new)" in said.stdout
    assert '"name":"two"' in run("export", "--store", "new.db", directory=tmp_path).stdout


def test_a_file_is_not_imported_into_itself(tmp_path: Path) -> None:
    document = b'{"entities": [], "relations": []}'
    (tmp_path / "memory.json").write_bytes(document)
    done = run("import", "memory.json", "--store", "./memory.json", directory=tmp_path)
    sentence = "memory.json is the store itself: name another file, or another store with --store"
    assert (done.returncode, done.stderr) == (1, f"polymnia: {sentence}\n")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("memory.json", document)
    ]


def _interrupt(*_: object) -> int:
    """Do what Python does on Ctrl-C, also where a shell ignores the signal for programs in the
    background.
    """
    raise KeyboardInterrupt


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An import of 30 entities in three batches."""
    monkeypatch.setattr(SqliteStore, "best_batch", 10)
    line = '{"type":"entity","name":"E%d","entityType":"x","observations":[]}'
    (tmp_path / "memory.jsonl").write_text(
        "\n".join([line % number for number in range(30)]), "utf-8"
    )
    return ["import", str(tmp_path / "memory.jsonl"), "--store", str(tmp_path / "new.db")]


def test_an_interrupted_import_says_what_is_kept_and_how_to_continue(
    importing: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(common.Progress, "__call__", _interrupt)
        assert main(importing) == 130
    sentence = "what was imported so far stays in the store; run the same command again to continue"
    assert capsys.readouterr() == ("", f"polymnia: interrupted: {sentence}\n")
    assert main(importing) == 0
    assert "imported 30 entities (20 new)" in capsys.readouterr().out


def test_an_interrupted_dry_run_says_that_nothing_was_changed(
    importing: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(common.Progress, "__call__", _interrupt)
    assert main([*importing, "--dry-run"]) == 130
    assert capsys.readouterr().err == "polymnia: interrupted: nothing was changed\n"


def test_any_interrupted_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(show, "run_stats", _interrupt)
    assert main(["stats"]) == 130
    assert capsys.readouterr().err == "polymnia: interrupted\n"


def test_the_progress_of_a_folder_has_a_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        page = f"---\ntitle: Page {number}\n---\nA fact.\n"
        (tmp_path / f"page{number}.md").write_text(page, "utf-8")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    store = str(tmp_path / "new.db")
    main(["import", str(tmp_path), "--from", "obsidian", "--store", store])
    assert "] 3 of 3 parts" in capsys.readouterr().err
