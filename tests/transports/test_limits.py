"""A token that calls too often, and a workspace that is full."""

from pathlib import Path

import pytest

from polymnia.auth.tokens import file_tokens
from tests.transports.running import Running, Talk, metrics_of


def write(talk: Talk, name: str) -> str:
    """Create an entity with one fact, and return the reply."""
    entity = {"name": name, "entityType": "thing", "observations": [f"{name} is here"]}
    text: str = talk.call("create_entities", entities=[entity])["content"][0]["text"]
    return text


def test_calls_above_the_limit_of_a_token_are_refused_counted_and_logged(tmp_path: Path) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    alice = tokens.create("alice", can="write", writes=1)
    bob = tokens.create("bob", can="write")
    settings = {"POLYMNIA_REQUESTS_PER_MINUTE": "2"}
    with Running(tmp_path / "memory.db", "--metrics", settings=settings) as server:
        with Talk(server.port, alice) as talk:
            assert "First" in write(talk, "First")
            assert write(talk, "Second").startswith(
                "too many writes: the token alice may make 1 a minute; nothing was done, try again"
            )
            refused = talk.call("read_graph")
            assert refused["isError"]
            assert refused["content"][0]["text"].startswith("too many requests: the token alice")
            listing = talk.ask("resources/list")
            assert listing["error"]["message"].startswith("too many requests")
            # A server that is alive says so.
            assert talk.ask("ping")["result"] == {}
        with Talk(server.port, bob) as talk:
            assert "Second" not in str(talk.call("read_graph"))
        metrics = metrics_of(server, bob)
        assert metrics['polymnia_over_limit_total{limit="writes"}'] == 1
        assert metrics['polymnia_over_limit_total{limit="requests"}'] == 2
        server.wait_for("the token alice is over its limit of 1 writes a minute")


def test_a_changed_limit_applies_to_the_next_call(tmp_path: Path) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    alice = tokens.create("alice", can="write", writes=1)
    with Running(tmp_path / "memory.db") as server, Talk(server.port, alice) as talk:
        assert "First" in write(talk, "First")
        tokens.limit("alice", requests=None, writes=None)
        assert "Second" in write(talk, "Second")


@pytest.mark.parametrize("store", ["memory.db", "memory.jsonl", "workspaces/"])
def test_a_full_workspace_takes_no_more_facts_and_loses_none(tmp_path: Path, store: str) -> None:
    settings = {"POLYMNIA_MAX_FACTS": "2", "POLYMNIA_MAX_FACT_BYTES": "20"}
    with Running(f"{tmp_path}/{store}", settings=settings) as server, Talk(server.port) as talk:
        assert "at most 20 can be stored" in write(talk, "A name of many letters")
        write(talk, "One")
        write(talk, "Two")
        assert write(talk, "Three").startswith(
            "this workspace is full: it has 2 of at most 2 facts, and this would add 1"
        )
        assert talk.call("delete_entities", entityNames=["Two"]).get("isError") is None
        assert "Three" in write(talk, "Three")
