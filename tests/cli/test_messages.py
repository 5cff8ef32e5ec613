"""What commands say when something is likely to surprise: short, once, and with the way out."""

from pathlib import Path

import pytest

from polymnia.cli.common import Progress
from polymnia.cli.main import main
from tests.cli.commands import fill
from tests.transports.running import Running


def test_a_token_for_a_workspace_that_does_not_exist_is_created_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"{tmp_path}/data/"
    assert main(["workspace", "create", "shop", "--store", store]) == 0
    words = ["token", "create", "me", "--workspace", "sales"]
    assert main([*words, "--store", store]) == 0
    err = capsys.readouterr().err
    assert f"there is no workspace 'sales' in {store} yet; there are personal-me, shop\n" in err
    file = str(tmp_path / "memory.db")
    assert main([*words, "--store", file]) == 1
    assert f"{file} holds one workspace: leave out --workspace" in capsys.readouterr().err


def test_a_backup_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "nope"]) == 1
    assert capsys.readouterr().err == "polymnia: there is no file nope\n"


def test_the_doctor_does_not_advise_to_run_the_doctor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "memory.db"
    fill(str(store))
    store.write_bytes(b"\xff" * 4096 + store.read_bytes()[4096:])
    assert main(["doctor", "--store", str(store)]) == 1
    out = capsys.readouterr().out
    assert "cannot be read: " in out
    assert f"`polymnia doctor --store {store}`" not in out


@pytest.mark.parametrize(
    ("content", "problem"), [("", "is empty"), ("{", "unknown format"), ("[]", "unknown format")]
)
def test_an_unknown_format_is_refused_in_one_short_line(
    content: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.json").write_text(content, "utf-8")
    words = ["import", str(tmp_path / "in.json"), "--store", str(tmp_path / "new.db")]
    assert main(words) == 1
    err = capsys.readouterr().err
    assert problem in err
    assert len(err.replace(str(tmp_path), "")) < 160


def test_markdown_files_of_any_program_are_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Ada.md").write_text("Ada likes tea.\n", "utf-8")
    assert main(["import", str(tmp_path / "Ada.md"), "--store", str(tmp_path / "new.db")]) == 0
    assert "imported 1 entity (1 new)" in capsys.readouterr().out


def test_an_export_does_not_overwrite_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, output = str(tmp_path / "new.db"), tmp_path / "memory.json"
    main(["remember", "Ada", "likes tea", "--store", store])
    output.write_text("precious", "utf-8")
    words = ["export", "--store", store, "-o", str(output)]
    assert main(words) == 1
    assert "exists already" in capsys.readouterr().err
    assert output.read_text("utf-8") == "precious"
    assert main([*words, "--force"]) == 0
    assert "likes tea" in output.read_text("utf-8")


@pytest.mark.parametrize("ending", [".db", ".jsonl"])
def test_a_workspace_of_a_single_file_is_refused(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / f"memory{ending}")
    main(["remember", "Ada", "likes tea", "--store", store])
    assert main(["search", "tea", "--workspace", "nope", "--store", store]) == 1
    assert "leave out --workspace nope" in capsys.readouterr().err


def test_sync_needs_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "memory.jsonl")
    lines = (
        '{"type":"entity","name":"Ada","entityType":"person","observations":[]}\n'
        '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}\n'
    )
    Path(store).write_text(lines, "utf-8")
    (tmp_path / "vault").mkdir()
    assert main(["sync", str(tmp_path / "vault"), "--store", store]) == 1
    assert "keeps no history; use a SQLite store" in capsys.readouterr().err
    output = str(tmp_path / "new")
    assert main(["export", "--format", "markdown", "-o", output, "--store", store]) == 0


def test_an_option_before_the_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", "x.db", "remember", "Ada", "likes tea"]) == 2
    assert "write it after the command" in capsys.readouterr().err


def test_the_numbers_of_an_import_are_grouped_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = '{"type":"entity","name":"E%d","entityType":"x","observations":[]}'
    lines = "\n".join(line % number for number in range(1_200))
    (tmp_path / "in.jsonl").write_text(lines, "utf-8")
    main(["import", str(tmp_path / "in.jsonl"), "--store", str(tmp_path / "new.db")])
    assert "imported 1,200 entities (1,200 new)" in capsys.readouterr().out


def test_a_normal_start_is_no_warning(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        pass
    started = [line for line in server.log.splitlines() if "serving " in line]
    assert started
    assert "WARNING" not in started[0]


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_an_entry_beside_the_plugin_is_reported(
    client: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "settings.json").write_text('{"enabledPlugins": {"polymnia@polymnia": true}}')
    assert main(["install", client, "--store", str(tmp_path / "memory.db")]) == 0
    assert "see the tools twice" in capsys.readouterr().err


def test_progress_tells_the_total_and_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("polymnia.cli.common.monotonic", lambda: now)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress("passages")
    progress(10, 1_000)
    now = 10.0
    progress(250, 1_000)
    progress.end()
    first, second = capsys.readouterr().err.split("\r")[1:]
    assert first == "[------------------------------] 10 of 1,000 passages"
    assert second.rstrip() == "[#######-----------------------] 250 of 1,000 passages, 30 s left"
