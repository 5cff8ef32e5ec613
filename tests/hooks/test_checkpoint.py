"""What a checkpoint stores of a session."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from polymnia.engine.facts.erase import erase
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces
from polymnia.hooks import checkpoint
from polymnia.hooks.checkpoint import save_checkpoint
from polymnia.hooks.events import answer_hook
from polymnia.model import Entity
from polymnia.settings import Settings, positions_file
from tests.hooks.sessions import append, sent, turn

NAME = "When do we deploy? (2026-03-01, 5e55)"


@pytest.fixture
def transcript(project: Path) -> Path:
    path = project.parent / "5e55.jsonl"
    return append(path, turn("user", "When do we deploy?", 1), turn("assistant", "On Fridays.", 2))


def stored(settings: Settings, workspace: str = "shop") -> list[Entity]:
    with closing(open_workspaces(settings.store, read_only=True)) as workspaces:
        return list(entities.read_all(workspaces.memory(workspace)).entities)


@pytest.mark.parametrize("event", ["PreCompact", "Stop", "SessionEnd"])
def test_the_turns_are_stored_in_the_workspace_of_the_project(
    event: str, settings: Settings, project: Path, transcript: Path
) -> None:
    assert answer_hook(settings, event, sent(project / ".git", transcript, event)) == ""
    (found,) = stored(settings)
    assert (found.name, found.type) == (NAME, "conversation")
    assert found.texts == ("user: When do we deploy?", "assistant: On Fridays.")
    assert found.facts[0].source == "claude-code:5e55"


def test_copilot_does_not_name_the_transcript_when_a_session_ends(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project.parent / "copilot"
    monkeypatch.setenv("COPILOT_HOME", str(home))
    session = home / "session-state" / "c0" / "events.jsonl"
    session.parent.mkdir(parents=True)
    start = {"type": "session.start", "data": {"sessionId": "c0", "startTime": "2026-03-01"}}
    message = {"messageId": "m1", "content": "Deploys run on Fridays."}
    append(session, start, {"type": "assistant.message", "id": "e1", "data": message})
    ended = json.dumps({"session_id": "c0", "cwd": str(project)}).encode()
    answer_hook(settings, "SessionEnd", ended, "copilot")
    (found,) = stored(settings)
    assert found.texts == ("assistant: Deploys run on Fridays.",)


def test_the_next_checkpoint_adds_what_is_new(
    settings: Settings, project: Path, transcript: Path
) -> None:
    assert save_checkpoint(settings, transcript, project) == 2
    assert save_checkpoint(settings, transcript, project) == 0
    append(transcript, turn("user", "Why?", 3))
    assert save_checkpoint(settings, transcript, project) == 1
    (found,) = stored(settings)
    assert (found.name, found.texts[2:]) == (NAME, ("user: Why?",))


def test_what_was_forgotten_does_not_come_back(
    settings: Settings, project: Path, transcript: Path
) -> None:
    save_checkpoint(settings, transcript, project)
    with closing(open_workspaces(settings.store)) as workspaces:
        forget(workspaces.memory("shop"), Unwanted(facts=((NAME, 1),)), by="test")
    append(transcript, turn("user", "Why?", 3))
    save_checkpoint(settings, transcript, project)
    assert stored(settings)[0].texts == ("assistant: On Fridays.", "user: Why?")


def test_a_line_in_the_making_waits_for_the_next_event(
    settings: Settings, project: Path, transcript: Path
) -> None:
    whole = transcript.read_bytes()
    transcript.write_bytes(whole[:-9])
    assert save_checkpoint(settings, transcript, project) == 1
    transcript.write_bytes(whole)
    assert save_checkpoint(settings, transcript, project) == 1


def test_long_work_continues_at_the_next_event(
    settings: Settings, project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(transcript, *[turn("user", f"question {number}", number) for number in range(3, 100)])
    monkeypatch.setattr(checkpoint, "SLICE_BYTES", 1000)
    first = save_checkpoint(settings, transcript, project, max_seconds=0)
    assert 0 < first < 99
    assert first + save_checkpoint(settings, transcript, project) == 99
    assert len(stored(settings)[0].facts) == 99


def test_a_transcript_that_was_replaced_is_read_from_its_beginning(
    settings: Settings, project: Path, transcript: Path
) -> None:
    save_checkpoint(settings, transcript, project)
    transcript.unlink()
    append(transcript, turn("user", "Hi", 9))
    assert save_checkpoint(settings, transcript, project) == 1


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"a": 1}', b'{"a": {"offset": -1.5}}'])
def test_a_damaged_file_of_positions_adds_nothing_twice(
    data: bytes, settings: Settings, project: Path, transcript: Path
) -> None:
    save_checkpoint(settings, transcript, project)
    positions_file().write_bytes(data)
    assert save_checkpoint(settings, transcript, project) == 0
    assert len(stored(settings)[0].facts) == 2


@pytest.mark.parametrize(("rule", "expected"), [("warn", False), ("refuse", False), ("off", True)])
def test_a_secret_is_stored_only_where_secrets_are_not_looked_for(
    rule: str, expected: bool, settings: Settings, project: Path, transcript: Path
) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    append(transcript, turn("user", f"The token is {token}", 3))
    save_checkpoint(replace(settings, secrets=rule), transcript, project)
    text = stored(settings)[0].texts[2]
    assert (token in text) == expected
    assert ("left out: it may contain a GitHub token" in text) != expected


@pytest.mark.parametrize("change", [{"checkpoints": False}, {"read_only": True}])
def test_checkpoints_can_be_switched_off(
    change: dict[str, bool], settings: Settings, project: Path, transcript: Path
) -> None:
    answer_hook(replace(settings, **change), "Stop", sent(project, transcript))
    assert sorted(project.parent.iterdir()) == [transcript, project]


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b'{"type":"entity","name":"A"}\n', b"\x00\xff\n", None]
)
def test_a_file_that_is_no_transcript_creates_nothing(
    content: bytes | None, settings: Settings, project: Path
) -> None:
    path = project.parent / "other.jsonl"
    if content is not None:
        path.write_bytes(content)
    assert save_checkpoint(settings, path, project) == 0
    assert not (project.parent / "workspaces").exists()


def test_outside_a_project_the_turns_are_personal(
    settings: Settings, project: Path, transcript: Path
) -> None:
    save_checkpoint(settings, transcript, project.parent)
    assert len(stored(settings, "personal")) == 1


def turns_sent(directory: Path, *texts: str) -> bytes:
    """Return what our plugin for OpenCode writes to a hook: all turns of the session."""
    turns = []
    for number, text in enumerate(texts):
        speaker = ("user", "assistant")[number % 2]
        turns.append({"speaker": speaker, "text": text, "at": f"2026-03-01T10:00:{number:02}Z"})
    return json.dumps({"session_id": "ses_1", "cwd": str(directory), "turns": turns}).encode()


def test_turns_that_come_with_the_event_are_stored_once(settings: Settings, project: Path) -> None:
    for texts in (["When?", "On Fridays."], ["When?", "On Fridays.", "Why?"]):
        assert answer_hook(settings, "Stop", turns_sent(project, *texts), "opencode") == ""
    (found,) = stored(settings)
    assert found.texts == ("user: When?", "assistant: On Fridays.", "user: Why?")
    assert found.facts[0].source == "opencode:ses_1"


def test_a_forgotten_turn_of_an_event_does_not_come_back(settings: Settings, project: Path) -> None:
    answer_hook(settings, "Stop", turns_sent(project, "When?", "On Fridays."), "opencode")
    with closing(open_workspaces(settings.store)) as workspaces:
        (found,) = stored(settings)
        forget(workspaces.memory("shop"), Unwanted(facts=((found.name, 1),)), by="test")
    answer_hook(settings, "Stop", turns_sent(project, "When?", "On Fridays.", "Why?"), "opencode")
    assert stored(settings)[0].texts == ("assistant: On Fridays.", "user: Why?")


@pytest.mark.parametrize("program", ["claude-code", "opencode"])
def test_the_title_of_an_erased_conversation_stays_nowhere(
    program: str, settings: Settings, project: Path, transcript: Path
) -> None:
    def event(*texts: str) -> None:
        if program == "opencode":
            answer_hook(settings, "Stop", turns_sent(project, *texts), program)
        else:
            save_checkpoint(settings, transcript, project)

    event("When do we deploy?", "On Fridays.")
    (found,) = stored(settings)
    assert found.name.startswith("When do we deploy?")
    assert b"deploy" not in positions_file().read_bytes()
    with closing(open_workspaces(settings.store)) as workspaces:
        erase(workspaces.memory("shop"), Unwanted(entities=(found.name,)), by="test")
    append(transcript, turn("user", "Why?", 3))
    event("When do we deploy?", "On Fridays.", "Why?")
    append(transcript, turn("assistant", "It is quiet then.", 4))
    event("When do we deploy?", "On Fridays.", "Why?", "It is quiet then.")
    (found,) = stored(settings)
    assert found.name.startswith("Conversation (2026-03-01, ")
    assert found.texts == ("user: Why?", "assistant: It is quiet then.")


def test_titles_that_an_earlier_version_kept_go_with_the_next_checkpoint(
    settings: Settings, project: Path, transcript: Path
) -> None:
    save_checkpoint(settings, transcript, project)
    positions = json.loads(positions_file().read_bytes())
    earlier = {"source": "codex", "id": "c1", "title": "Plans of Ada", "created_at": 0}
    positions["store other.jsonl"] = {"offset": 9, "conversation": earlier}
    positions_file().write_text(json.dumps(positions))
    append(transcript, turn("user", "Why?", 3))
    assert save_checkpoint(settings, transcript, project) == 1
    assert b"Plans" not in positions_file().read_bytes()
    assert stored(settings)[0].name == NAME


@pytest.mark.parametrize("turns", ['"x"', "[1, {}]", '[{"speaker": "tool", "text": "noise"}]'])
def test_turns_of_another_form_are_ignored(turns: str, settings: Settings, project: Path) -> None:
    data = f'{{"session_id": "ses_1", "turns": {turns}}}'.encode()
    assert answer_hook(settings, "Stop", data, "opencode") == ""
    assert not Path(settings.store).exists()
