"""Checkpoints and briefings on every kind of store."""

from pathlib import Path

import pytest

from polymnia.hooks.events import answer_hook
from polymnia.settings import Settings
from tests.hooks.sessions import append, sent, turn


def require_brief(settings: Settings, project: Path) -> None:
    """Checkpoint a session, and check that the next one is briefed on it."""
    transcript = append(project.parent / "5e55.jsonl", turn("user", "When do we deploy?", 1))
    answer_hook(settings, "Stop", sent(project, transcript))
    append(transcript, turn("assistant", "On Fridays.", 2))
    answer_hook(settings, "SessionEnd", sent(project, transcript))
    told = answer_hook(settings, "SessionStart", sent(project, event="SessionStart"))
    assert "assistant: On Fridays. (When do we deploy?" in told
    assert "assistant: On Fridays." in told


@pytest.mark.parametrize("name", ["memory.db", "memory.jsonl", "memory.mcpmem", "workspaces/"])
def test_a_session_is_briefed_on_the_one_before(name: str, project: Path) -> None:
    require_brief(Settings(store=f"{project.parent}/{name}"), project)


def test_a_session_is_briefed_from_a_database(postgres_database: str, project: Path) -> None:
    require_brief(Settings(store=postgres_database), project)


def test_a_named_workspace_is_used(project: Path) -> None:
    require_brief(Settings(store=f"{project.parent}/workspaces/", workspace="team"), project)
