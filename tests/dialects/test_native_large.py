"""On a large memory no call with default arguments gives a large reply."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.json import encode

from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store
from tests.dialects.conversation import Client

ENTITIES = 100_000
BATCH = 5_000
MAX_REPLY_BYTES = 25 * 1024
HUB = "e0"
CALLS: dict[str, dict[str, Any]] = {
    "recall": {"query": "coffee"},
    "open": {"names": [HUB]},
    "explore": {"name": HUB},
    "history": {},
    "review": {},
    "briefing": {},
    "remember": {"entities": [{"name": HUB, "facts": ["likes coffee in the morning"]}]},
    "revise": {"name": HUB, "summary": "the centre of everything"},
    "forget": {"name": HUB, "whole": True, "dry_run": True},
    "undo": {"since": "1d", "actor": "nobody else", "dry_run": True},
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    memory = Memory(open_store(str(tmp_path_factory.mktemp("large") / "memory.db")))
    for start in range(0, ENTITIES, BATCH):
        names = range(start, start + BATCH)
        drafts = [
            EntityDraft(f"e{n}", f"type {n % 50}", (f"drinks coffee number {n} " * 5,))
            for n in names
        ]
        entities.create(memory, drafts, by="test")
        relations.create(
            memory, [Relation(HUB, f"e{n}", "knows") for n in names if n % 10 == 1], by="test"
        )
    yield Client("native", memory)
    memory.store.close()


@pytest.mark.parametrize("tool", CALLS)
def test_no_default_call_returns_more_than_25_kb(client: Client, tool: str) -> None:
    result = client.call(tool, CALLS[tool])
    assert len(encode(result)) <= MAX_REPLY_BYTES
