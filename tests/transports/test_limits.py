"""A token that calls too often, and a workspace that is full."""

from contextlib import closing
from pathlib import Path

import pytest

from polymnia.auth.tokens import file_tokens
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import open_workspaces
from polymnia.errors import OverLimit
from polymnia.model import EntityDraft
from polymnia.model.changes import Quota
from polymnia.stores import open_store
from tests.postgres import new_workspace
from tests.transports.running import Running, Talk, metrics_of
from tests.ui.client import Visitor


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


@pytest.mark.parametrize("store", ["memory.db", "memory.jsonl", "postgres"])
def test_a_workspace_with_too_many_bytes_takes_no_more(tmp_path: Path, store: str) -> None:
    url = new_workspace() if store == "postgres" else f"{tmp_path}/{store}"
    # A SQLite file is larger than its facts.
    settings = {"POLYMNIA_MAX_WORKSPACE_BYTES": "400000" if store == "memory.db" else "15"}
    names = [f"{number}" for number in range(2)]
    if store == "memory.db":
        names = [f"{number} {'x' * 60_000}" for number in range(8)]
    with Running(url, settings=settings) as server, Talk(server.port) as talk:
        replies = [write(talk, name) for name in (*names, "last of all")]
    assert names[0] in replies[0]
    assert replies[-1].startswith("this workspace is full: it has ")
    assert " bytes, and this would add 19; nothing was stored" in replies[-1]


def test_bytes_are_counted_as_facts_come_change_and_go() -> None:
    with closing(open_store(new_workspace())) as store:
        memory = Memory(store)
        sizes = []
        for number in range(300):  # the counts are kept now and then
            entities.create(memory, [EntityDraft(f"e{number}", "t", ("é" * 10,))], by="test")
        for name in ("e1", "e299"):
            entities.delete(memory, [name], by="test")
            with memory.reading() as read:
                sizes.append(read.stored_bytes())
    assert sizes == [299 * 20, 298 * 20]


def test_no_more_workspaces_are_created_than_there_may_be(tmp_path: Path) -> None:
    quota = Quota(workspaces=2)
    with closing(open_workspaces(f"{tmp_path}/", quota=quota)) as workspaces:
        workspaces.create("one")
        workspaces.create("two")
        with pytest.raises(OverLimit, match="there are 2 workspaces already"):
            workspaces.create("three")
        workspaces.delete("one")
        assert workspaces.create("three").name == "three"


def test_the_access_page_sets_limits_and_shows_their_use(tmp_path: Path) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    admin, alice = tokens.create("root", can="admin"), tokens.create("alice", can="write")
    settings = {"POLYMNIA_MAX_FACTS": "50"}
    with Running(tmp_path / "memory.db", settings=settings) as server:
        visitor = Visitor(server.port)
        visitor.log_in(admin)
        asked = visitor.get("/ui/access/tokens/limit?name=alice")
        assert "Calls a minute of alice" in asked.words
        said = visitor.post("/ui/access/tokens/limit", name="alice", requests="30", writes="1")
        assert "Changed the limits of alice" in said.words
        with Talk(server.port, alice) as talk:
            assert "First" in write(talk, "First")
            assert write(talk, "Second").startswith("too many writes")
        shown = visitor.get("/ui/access").words
        for part in (" of 30 requests, ", " of 1 writes", " 1 of 50 "):
            assert part in shown
