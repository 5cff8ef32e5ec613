"""What other programs left on the machine is taken once, into the right place, and given back."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from bench.agents.takeover import PROJECTS, Machine
from polymnia.clients import takeover
from polymnia.clients.takeover import (
    PastSource,
    TakeoverReceipt,
    find_past_sources,
    take_over,
    undo_takeover,
)
from polymnia.disk.lock import file_lock
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces
from polymnia.errors import BadInput, StoreBusy
from polymnia.settings import Settings, client_roots, load_settings, takeover_file

TURNS = 800  # four sessions of each program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings({"store": f"{home}/workspaces/"})


def sources(home: Path) -> list[PastSource]:
    return find_past_sources(client_roots(), home)


def run(settings: Settings, home: Path, *, dry_run: bool = False) -> TakeoverReceipt:
    return take_over(settings, sources(home), home, dry_run=dry_run)


def names(settings: Settings, workspace: str) -> list[str]:
    with closing(open_workspaces(settings.store)) as workspaces:
        return [entity.name for entity in entities.read_all(workspaces.memory(workspace)).entities]


def test_sessions_of_four_programs_go_to_their_projects(home: Path, settings: Settings) -> None:
    Machine(home).write_transcripts(TURNS)
    receipt = run(settings, home)
    assert (receipt.entities, receipt.facts) == (16, TURNS)
    # Gemini CLI does not say where a session took place.
    assert receipt.by_workspace == {**dict.fromkeys(PROJECTS, 150), "personal": 200}


def test_a_second_time_takes_only_what_is_new(home: Path, settings: Settings) -> None:
    machine = Machine(home)
    machine.write_transcripts(60)
    run(settings, home)
    machine.write_transcripts(100)  # the second session goes on
    receipt = run(settings, home)
    assert (receipt.facts, receipt.known_files) == (40, 1)


def test_what_was_forgotten_does_not_come_back(home: Path, settings: Settings) -> None:
    Machine(home).write_transcripts(50)
    run(settings, home)
    (name,) = names(settings, "shop")
    with closing(open_workspaces(settings.store)) as workspaces:
        forget(workspaces.memory("shop"), Unwanted(entities=(name,)), by="test")
    assert run(settings, home).facts == 0


def test_everything_is_taken_back_in_one_step(home: Path, settings: Settings) -> None:
    Machine(home).write_transcripts(TURNS)
    run(settings, home)
    undone = undo_takeover(settings, by="test")
    assert (sum(undone.facts.values()), undone.conflicts) == (TURNS, 0)
    assert [names(settings, project) for project in PROJECTS] == [[], [], [], []]
    assert run(settings, home).facts == TURNS


def test_an_interrupted_import_continues_and_is_taken_back_whole(
    home: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Machine(home).write_transcripts(TURNS)
    monkeypatch.setattr(takeover, "MAX_WAITING_ROWS", 100)

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_over(settings, sources(home), home, progress=interrupt)
    rest = run(settings, home)
    assert 0 < rest.facts < TURNS
    assert sum(undo_takeover(settings, by="test").facts.values()) == TURNS


def test_a_dry_run_creates_nothing(home: Path, settings: Settings) -> None:
    Machine(home).write_transcripts(100)
    assert run(settings, home, dry_run=True).facts == 100
    assert not Path(settings.store).exists()
    assert not takeover_file().exists()


def test_instructions_and_memories_of_other_servers_are_found(
    home: Path, settings: Settings
) -> None:
    (home / "old.jsonl").write_text(
        '{"type":"entity","name":"Ada","entityType":"person","observations":["writes"]}\n', "utf-8"
    )
    (home / "notes.txt").write_text("not a memory", "utf-8")
    files = {"MEMORY_FILE_PATH": str(home / "old.jsonl"), "LOG": str(home / "notes.txt")}
    server = {"command": "npx", "args": ["server-memory"], "env": files}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"old": server}}), "utf-8")
    (home / "AGENTS.md").write_text("# Style\n\n- use tabs\n", "utf-8")
    titles = [source.title for source in sources(home)]
    assert titles == ["the project's instructions", "the memory of the server old"]
    run(settings, home)
    assert "Ada" in names(settings, "personal")


def test_a_turn_with_a_secret_is_replaced(home: Path, settings: Settings) -> None:
    path = home / ".claude" / "projects" / "x" / "s.jsonl"
    path.parent.mkdir(parents=True)
    message = {"role": "user", "content": "use ghp_" + "a1B2" * 9}
    line = {"type": "user", "sessionId": "s", "message": message}
    path.write_text(json.dumps(line) + "\n", "utf-8")
    assert run(settings, home).secrets == 1
    with closing(open_workspaces(settings.store)) as workspaces:
        (session,) = entities.read_all(workspaces.memory("personal")).entities
    assert "ghp_" not in session.texts[0]


def test_only_one_import_runs_at_a_time(home: Path, settings: Settings) -> None:
    takeover_file().parent.mkdir(parents=True, exist_ok=True)
    with file_lock(takeover_file()), pytest.raises(StoreBusy, match="another import"):
        run(settings, home)


def test_nothing_can_be_taken_back_before_something_was_taken(settings: Settings) -> None:
    with pytest.raises(BadInput, match="has imported nothing"):
        undo_takeover(settings, by="test")
