"""Check that a server's chat model drafts the texts of its reports."""

from pathlib import Path

import pytest

from polymnia.app import open_servers
from polymnia.engine.curation import drafts
from polymnia.engine.curation.report import consolidation_report
from polymnia.engine.graph.entities import create
from polymnia.errors import SettingsError
from polymnia.model import EntityDraft
from polymnia.settings import Settings
from tests.chat_server import serve_chat
from tests.processes import TIMEOUT_S


def settings(tmp_path: Path, chat_model: str) -> Settings:
    return Settings(
        dialect="reference",
        store=str(tmp_path / "memory.db"),
        embedder="none",
        chat_model=chat_model,
    )


def test_the_chat_model_of_a_server_drafts_for_its_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "DRAFT_TIMEOUT_S", TIMEOUT_S)
    with (
        serve_chat() as chat,
        open_servers(settings(tmp_path, f"ollama:small@{chat.url}")) as servers,
    ):
        memory = servers["reference"].workspaces.memory("default")
        create(memory, [EntityDraft("Ann", "person", ("drinks tea",))], by="test")
        (stale,) = consolidation_report(memory).stale_summaries
        assert "drinks tea" in str(stale.draft)


def test_a_server_without_a_chat_model_drafts_nothing(tmp_path: Path) -> None:
    with open_servers(settings(tmp_path, "")) as servers:
        assert servers["reference"].workspaces.memory("default").drafter is None


def test_a_server_does_not_start_with_an_unknown_kind_of_chat_model(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingsError, match="is not a chat model"),
        open_servers(settings(tmp_path, "gpt")),
    ):
        pass
