"""Progress: a client that asks for it hears of long work, whichever tool does it."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.json import decode, encode

from polymnia.dialects.registry import open_dialect
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp import request
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import EntityDraft
from polymnia.stores.open import open_store
from tests.transports.running import call


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(request, "PROGRESS_INTERVAL_S", 0.001)
    store = open_store(str(tmp_path / "memory.db"))
    memory = Memory(store)
    entities.create(
        memory, [EntityDraft(f"e{number}", "thing", ("fact",)) for number in range(3000)], by="test"
    )
    yield Session(Server(open_dialect("reference"), one_workspace(memory)))
    store.close()


def read_graph(session: Session, **meta: object) -> list[float]:
    """Read everything and return the progress that was reported."""
    message = call("read_graph")
    message["params"]["_meta"] = meta
    assert session.handle(encode(message)).body is not None
    told = [decode(item) for item in session.outbox]
    assert all(item["method"] == "notifications/progress" for item in told)
    assert all(item["params"]["progressToken"] == meta["progressToken"] for item in told)
    return [item["params"]["progress"] for item in told]


def test_a_long_read_reports_progress_that_increases(session: Session) -> None:
    reported = read_graph(session, progressToken="p")
    assert reported
    assert all(earlier < later for earlier, later in itertools.pairwise(reported))


def test_a_client_that_does_not_ask_hears_nothing(session: Session) -> None:
    assert read_graph(session) == []
