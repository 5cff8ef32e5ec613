"""Which sentences of a conversation may be worth remembering."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from polymnia.engine.facts.candidates import list_candidates
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import take_in
from polymnia.errors import BadInput
from polymnia.hooks import drafting
from polymnia.hooks.drafting import draft_candidates
from polymnia.hooks.events import answer_hook
from polymnia.hooks.noticing import MAX_CANDIDATES, notice
from polymnia.importers.conversation import Turn
from polymnia.settings import Settings
from polymnia.stores import open_store
from tests.chat_server import serve_chat
from tests.hooks.sessions import append, entity, sent, turn


def noticed(speaker: str, text: str) -> list[tuple[str, str]]:
    return [(draft.kind, draft.text) for draft in notice([Turn(speaker, text, 7)], "codex:1")]


@pytest.mark.parametrize(
    ("kind", "speaker", "text", "kept"),
    [
        (
            "fact",
            "user",
            "Remember that staging is reset on Mondays.",
            "staging is reset on Mondays.",
        ),
        ("rule", "user", "Always run ruff first.", "Always run ruff first."),
        ("decision", "user", "Hm. We decided to drop 3.9.", "We decided to drop 3.9."),
        ("preference", "user", "- I prefer short messages", "I prefer short messages"),
        (
            "file",
            "assistant",
            "Flags are defined in etc/flags.toml.",
            "Flags are defined in etc/flags.toml.",
        ),
        (
            "fix",
            "assistant",
            "The timeout came from the proxy, so I raised its limit.",
            "The timeout came from the proxy, so I raised its limit.",
        ),
    ],
)
def test_a_sentence_is_noticed(kind: str, speaker: str, text: str, kept: str) -> None:
    assert noticed(speaker, text) == [(kind, kept)]


@pytest.mark.parametrize(
    ("speaker", "text"),
    [
        ("user", "Do we always deploy on Fridays?"),
        ("user", "never mind"),
        ("user", "```\nAlways run ruff first.\n```"),
        ("user", "> We decided to drop 3.9."),
        ("user", "Remember that the password is hunter2secret9"),
        ("assistant", "Always run ruff first."),
        ("assistant", "I fixed the typo."),
    ],
)
def test_noise_is_left_out(speaker: str, text: str) -> None:
    assert noticed(speaker, text) == []


def test_a_checkpoint_offers_a_short_list() -> None:
    text = "\n".join(f"Always run check {number}." for number in range(20))
    assert len(noticed("user", text)) == MAX_CANDIDATES


@pytest.fixture
def memory() -> Memory:
    memory = Memory(open_store(":memory:"))
    talk = entity("A talk", "user: tabs, please", "assistant: Noted.", kind="conversation")
    take_in(memory, [talk], by="test")
    return memory


def test_a_chat_model_drafts_candidates(memory: Memory) -> None:
    answer = "- preference: The user wants tabs\n2. x: y\nfact: password is hunter2secret9\nnone"
    with serve_chat() as server:
        server.garbage = json.dumps({"message": {"content": answer}}).encode()
        draft_candidates(Settings(chat_model=f"ollama:any@{server.url}"), memory)
    assert server.asked[0]["messages"][1]["content"] == "user: tabs, please\nassistant: Noted."
    assert [fact.text for fact in list_candidates(memory)] == ["The user wants tabs"]


def test_without_a_chat_model_nothing_is_drafted(memory: Memory) -> None:
    with pytest.raises(BadInput, match="no chat model is configured"):
        draft_candidates(Settings(), memory)


@pytest.mark.parametrize(("event", "count"), [("Stop", 0), ("SessionEnd", 1)])
def test_only_the_end_of_a_session_starts_the_model(
    event: str, count: int, settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr(drafting, "start_drafting", lambda *given: started.append(given))
    transcript = append(project.parent / "5e55.jsonl", turn("user", "When?", 1))
    settings = replace(settings, chat_model="ollama:any")
    answer_hook(settings, event, sent(project, transcript, event))
    assert len(started) == count
