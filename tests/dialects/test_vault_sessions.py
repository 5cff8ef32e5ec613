"""Sessions of the vault dialect.

Who sees them, who is notified of them, and when their memories are deleted.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest
from psycopg.sql import SQL

from polymnia.dialects.base import Client as Caller
from polymnia.engine import notes as engine_notes
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import ChangeQuery, Principal
from polymnia.stores import open_store
from tests.dialects.vault import Agent, vault_server
from tests.mcp.conversation import HANDSHAKE, STATELESS, envelope

LIST_CHANGED: tuple[str, dict[str, str]] = ("notifications/resources/list_changed", {})
ANN = Principal(name="ann", can="write")
BEN = Principal(name="ben", can="write")


@pytest.fixture
def url(versioned_url: str) -> str:
    return versioned_url


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    server, _ = vault_server(url)
    yield server
    server.stop()
    server.workspaces.close()


def updated(uri: str) -> tuple[str, dict[str, str]]:
    return ("notifications/resources/updated", {"uri": uri})


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    """Return the rows of a query on the tables themselves.

    `mine` in it stands for the rows of the store at the URL.
    """
    if not url.startswith("postgresql:"):
        connection = apsw.Connection(url)
        try:
            return connection.execute(query.replace("mine", "true")).fetchall()
        finally:
            connection.close()
    server, _, workspace = url.partition("?workspace=")
    mine = f"workspace_id = (SELECT workspace_id FROM catalogue WHERE name = '{workspace}')"
    with psycopg.connect(server, options="-c search_path=polymnia") as database:
        return database.execute(SQL(query.replace("mine", mine))).fetchall()


def session_rows(url: str) -> list[tuple[object, ...]]:
    return rows(url, "SELECT session, key FROM session_notes WHERE mine ORDER BY id")


@pytest.fixture(params=["other session", "same session, other principal"])
def two(request: pytest.FixtureRequest, server: Server) -> tuple[Agent, Agent]:
    """Two clients that must not see each other's session."""
    if request.param == "other session":
        return Agent(server, session="one"), Agent(server, session="two")
    return Agent(server, session="one", principal=ANN), Agent(server, session="one", principal=BEN)


def test_a_search_never_finds_notes_of_another_session(two: tuple[Agent, Agent]) -> None:
    mine, other = two
    mine.commit("secret", "hidden word", "session", embedding=[1, 0, 0], tags=["t"])
    for scope in ("session", "all"):
        found = other.search("secret OR hidden OR word", scope=scope, query_embedding=[1, 0, 0])
        assert found == {"results": [], "total_searched": 0}
        assert other.search("", scope=scope, tags=["t"]) == {"results": [], "total_searched": 0}
    assert mine.found("hidden") == ["secret"]


def test_relevance_reveals_nothing_about_another_session(two: tuple[Agent, Agent]) -> None:
    mine, other = two
    for key, text in (
        ("a", "alpha beta"),
        ("b", "alpha gamma gamma"),
        ("c", "beta"),
        ("d", "delta"),
    ):
        other.commit(key, text, "session")
    before = other.search("alpha OR beta OR gamma", scope="session")
    for number in range(20):
        mine.commit(f"secret{number}", "alpha alpha beta", "session")
    assert other.search("alpha OR beta OR gamma", scope="session") == before


def test_only_its_own_client_reads_a_session(two: tuple[Agent, Agent], server: Server) -> None:
    mine, other = two
    mine.commit("secret", "hidden", "session")
    if mine.session.client.session == other.session.client.session:
        assert other.read("memory://session/one") == []
    else:
        error = other.error("resources/read", uri="memory://session/one")
        own = "a client may read only its own session: memory://session/two"
        assert error == {"code": -32602, "message": own}
        assert other.error("resources/read", uri="memory://session/nobody")["message"] == own


def test_another_session_is_neither_listed_nor_completed(server: Server) -> None:
    mine, other = Agent(server, session="one"), Agent(server, session="two")
    mine.commit("secret", "hidden", "session")
    assert other.resources() == ["memory://vault", "memory://session/two"]
    assert other.completed("memory://session/{session_id}", "session_id", "") == ["two"]
    assert other.completed("memory://session/{session_id}", "session_id", "one") == []
    assert other.completed("memory://vault/{key}", "key", "") == []


def test_no_notification_mentions_another_session(two: tuple[Agent, Agent]) -> None:
    mine, other = two
    for uri in (
        "memory://session/one",
        "memory://session/two",
        "memory://vault",
        "memory://vault/secret",
    ):
        other.result("resources/subscribe", uri=uri)
    mine.commit("secret", "hidden", "session")
    mine.commit("secret", "changed", "session")
    mine.prune("session")
    assert other.told() == []


def test_nothing_is_pruned_in_another_session(two: tuple[Agent, Agent]) -> None:
    mine, other = two
    mine.commit("secret", "hidden", "session", tags=["t"])
    assert other.prune("session") == 0
    assert other.prune("all", tags=["t"]) == 0
    assert mine.found("hidden") == ["secret"]


def test_the_change_log_does_not_hold_session_texts(server: Server, url: str) -> None:
    agent = Agent(server, session="one")
    agent.commit("note", "hidden words", "session", tags=["hidden tag"], embedding=[1, 0, 0])
    agent.commit("note", "hidden again", "session")
    agent.prune("session")
    agent.commit("note", "seen words")
    operations = rows(url, "SELECT operation FROM changes WHERE mine ORDER BY id")
    assert [row[0] for row in operations] == [
        "commit_memory",
        "commit_memory",
        "prune_memory",
        "commit_memory",
    ]
    with closing(open_store(url)) as store, store.reading() as read:
        told = [
            change.after.notes for change in read.history.changes(ChangeQuery(limit=None))[::-1]
        ]
    assert [[note.content for note in item] for item in told] == [[], [], [], ["seen words"]]


def test_two_clients_of_one_session_share_it(server: Server) -> None:
    first, second = Agent(server, session="one"), Agent(server, session="one")
    second.result("resources/subscribe", uri="memory://session/one")
    first.commit("key", "word", "session")
    assert second.found("word") == ["key"]
    assert second.told() == [LIST_CHANGED, updated("memory://session/one")]


def test_list_changed_is_sent_when_a_memory_is_created_or_deleted_but_not_updated(
    server: Server,
) -> None:
    agent = Agent(server)
    for scope in ("vault", "session"):
        agent.commit("key", "first", scope)
        assert agent.told() == [LIST_CHANGED]
        agent.commit("key", "second", scope)
        assert agent.told() == []
        agent.prune(scope, key="key")
        assert agent.told() == [LIST_CHANGED]
        agent.prune(scope, key="key")
        assert agent.told() == []


def test_subscribers_are_notified_of_the_vault_its_pages_and_its_memories(server: Server) -> None:
    writer, reader = Agent(server), Agent(server)
    touched = [
        "memory://vault",
        "memory://vault/a%2fb",
        "memory://vault/a/b",
        "memory://vault?limit=5",
    ]
    for uri in (*touched, "memory://vault/other", "memory://session/other"):
        reader.result("resources/subscribe", uri=uri)
    writer.commit("a/b", "text")
    assert reader.told() == [LIST_CHANGED, *[updated(uri) for uri in sorted(touched)]]


def test_a_stateless_listener_is_notified_of_its_session_and_the_vault(server: Server) -> None:
    listener = Agent(server, STATELESS)
    wants = {
        "resourcesListChanged": True,
        "resourceSubscriptions": ["memory://session/one", "memory://vault"],
    }
    meta = {"_meta": {**envelope(), "polymnia/sessionId": "one"}}
    listener.say(listener.message("subscriptions/listen", {"notifications": wants, **meta}))
    listener.told()
    Agent(server, session="two").commit("a", "text", "session")
    assert listener.told() == []
    Agent(server, session="one").commit("a", "text", "session")
    assert [method for method, _ in listener.told()] == [
        LIST_CHANGED[0],
        "notifications/resources/updated",
    ]
    Agent(server, session="two").commit("a", "text")
    assert [params.get("uri") for _, params in listener.told()] == [None, "memory://vault"]


def test_a_client_may_name_its_session_in_initialize(server: Server) -> None:
    agent = Agent(server, STATELESS)
    info = {"name": "claude-agent", "version": "1.0", "extra": {"sessionId": "sess_abc123"}}
    agent.revision = HANDSHAKE[-1]
    agent.result("initialize", protocolVersion=HANDSHAKE[-1], capabilities={}, clientInfo=info)
    assert agent.resources() == ["memory://vault", "memory://session/sess_abc123"]


@pytest.mark.parametrize("extra", [{"sessionId": 7}, {"sessionId": " "}, {"sessionId": "x" * 201}])
def test_an_invalid_session_id_in_initialize_is_rejected(
    server: Server, extra: dict[str, object]
) -> None:
    agent = Agent(server, STATELESS)
    agent.revision = HANDSHAKE[-1]
    info = {"name": "claude-agent", "version": "1.0", "extra": extra}
    error = agent.error(
        "initialize", protocolVersion=HANDSHAKE[-1], capabilities={}, clientInfo=info
    )
    assert error["code"] == -32602


@pytest.mark.parametrize("extra", [None, [], "x", {}, {"other": 1}])
def test_other_extra_client_information_is_ignored(server: Server, extra: object) -> None:
    agent = Agent(server, STATELESS)
    agent.revision = HANDSHAKE[-1]
    info = {"name": "claude-agent", "version": "1.0", "extra": extra}
    agent.result("initialize", protocolVersion=HANDSHAKE[-1], capabilities={}, clientInfo=info)
    assert agent.commit("key", "text", "session")["committed"]


def test_a_client_that_names_no_session_gets_a_new_one(server: Server) -> None:
    first, second = Agent(server), Agent(server)
    first.commit("key", "word", "session")
    assert first.found("word") == ["key"]
    assert second.found("word") == []
    assert first.resources() != second.resources()


def test_set_session_id_changes_the_session_and_the_list(server: Server) -> None:
    agent = Agent(server, session="one")
    agent.commit("key", "word", "session")
    assert agent.done("set_session_id", session_id="two") == {"session_id": "two"}
    assert agent.told() == [LIST_CHANGED, LIST_CHANGED]
    assert agent.found("word") == []
    assert agent.resources() == ["memory://vault", "memory://session/two"]
    agent.done("set_session_id", session_id="two")
    assert agent.told() == []
    agent.done("set_session_id", session_id="one")
    assert agent.found("word") == ["key"]


@pytest.mark.parametrize("name", ["", " ", "x" * 201])
def test_a_session_id_must_not_be_blank_or_too_long(server: Server, name: str) -> None:
    assert Agent(server).refused("set_session_id", session_id=name).startswith("session id: ")


def test_a_session_of_odd_characters_is_read_by_its_encoded_address(server: Server) -> None:
    agent = Agent(server, session="a/b ?ü")
    agent.commit("key", "word", "session")
    uri = agent.resources()[-1]
    assert uri == "memory://session/a%2Fb%20%3F%C3%BC"
    assert [item["key"] for item in agent.read(uri)] == ["key"]


def stateless(server: Server, session: str | None) -> Agent:
    """Return a stateless client, as over HTTP."""
    agent = Agent(server, STATELESS)
    agent.session.close()
    agent.session = Session(
        server,
        client=Caller(workspace=server.workspace, session=session or "", lasting=False, id=""),
    )
    return agent


def test_a_stateless_request_names_its_session(server: Server) -> None:
    agent = stateless(server, None)
    named = {"_meta": {"polymnia/sessionId": "one"}}
    commit = {
        "name": "commit_memory",
        "arguments": {"scope": "session", "key": "key", "content": "word"},
    }
    assert not agent.result("tools/call", **commit, **named).get("isError")
    search = {"name": "search_memories", "arguments": {"query": "word"}}
    assert (
        agent.result("tools/call", **search, **named)["structuredContent"]["results"][0]["key"]
        == "key"
    )
    assert agent.result("tools/call", **search)["structuredContent"] == {
        "results": [],
        "total_searched": 0,
    }


def test_a_stateless_request_without_a_session_is_told_how_to_name_one(server: Server) -> None:
    agent = stateless(server, None)
    for tool, arguments in (
        ("commit_memory", {"scope": "session", "key": "k", "content": "c"}),
        ("search_memories", {"query": "x", "scope": "session"}),
        ("prune_memory", {"scope": "session"}),
        ("set_session_id", {"session_id": "x"}),
    ):
        assert 'set "polymnia/sessionId" in params._meta' in agent.refused(tool, **arguments)
    error = agent.error("resources/read", uri="memory://session/x")
    assert 'set "polymnia/sessionId" in params._meta' in error["message"]
    assert agent.resources() == ["memory://vault"]


def test_on_a_connection_a_stateless_client_has_the_connection_as_its_session(
    server: Server, url: str
) -> None:
    agent = Agent(server, STATELESS)
    agent.commit("key", "word", "session")
    assert agent.found("word") == ["key"]
    agent.session.close()
    assert session_rows(url) == []


def test_session_memories_are_deleted_when_their_conversation_ends(
    server: Server, url: str
) -> None:
    agent, other = Agent(server, session="one"), Agent(server, session="two")
    agent.commit("key", "word", "session")
    agent.done("set_session_id", session_id="another")
    agent.commit("key", "word", "session")
    agent.commit("kept", "word")
    other.commit("theirs", "word", "session")
    agent.session.close()
    agent.session.close()
    assert session_rows(url) == [("two", "theirs")]
    assert other.found("word") == ["theirs", "kept"]


def test_a_shared_session_ends_with_its_last_conversation(server: Server, url: str) -> None:
    first, second = Agent(server, session="one"), Agent(server, session="one")
    first.commit("a", "word", "session")
    second.commit("b", "word", "session")
    first.session.close()
    assert session_rows(url) == [("one", "a"), ("one", "b")]
    second.session.close()
    assert session_rows(url) == []


def test_a_reader_that_leaves_deletes_nothing(server: Server, url: str) -> None:
    writer, reader = Agent(server, session="one"), Agent(server, session="one")
    writer.commit("a", "word", "session")
    reader.found("word")
    reader.session.close()
    assert session_rows(url) == [("one", "a")]


def test_sessions_can_be_persistent(url: str) -> None:
    server, store = vault_server(url, persist_sessions=True)
    agent = Agent(server, session="one")
    agent.commit("a", "word", "session")
    agent.session.close()
    server.stop()
    store.close()
    server, store = vault_server(url, persist_sessions=True)
    assert Agent(server, session="one").found("word") == ["a"]
    store.close()
    assert rows(url, "SELECT count(*) FROM session_members WHERE mine") == [(0,)]


def test_a_session_named_by_requests_ends_with_the_server(server: Server, url: str) -> None:
    agent = stateless(server, "one")
    agent.commit("a", "word", "session")
    agent.session.close()
    assert session_rows(url) == [("one", "a")]
    server.stop()
    assert session_rows(url) == []


def test_a_session_named_by_requests_ends_after_a_day_without_use(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = stateless(server, "old"), stateless(server, "new")
    old.commit("a", "word", "session")
    new.commit("b", "word", "session")
    assert session_rows(url) == [("old", "a"), ("new", "b")]
    monkeypatch.setattr(engine_notes, "UNUSED_LIFETIME_US", 0)
    new.commit("c", "word", "session")
    assert session_rows(url) == [("new", "c")]


def test_the_next_start_deletes_what_a_killed_server_left(url: str) -> None:
    server, store = vault_server(url)
    agent = Agent(server, session="one")
    agent.commit("a", "word", "session")
    agent.commit("kept", "word")
    store.close()  # without ending the conversation
    assert session_rows(url) == [("one", "a")]
    for _ in range(200):  # PostgreSQL notices a moment later that the first server is gone
        server, store = vault_server(url)
        if not session_rows(url):
            break
        store.close()
    assert session_rows(url) == []
    assert Agent(server).found("word") == ["kept"]
    store.close()


def test_a_start_keeps_the_sessions_of_a_running_server(server: Server, url: str) -> None:
    agent = Agent(server, session="one")
    agent.commit("a", "word", "session")
    other, store = vault_server(url)
    assert agent.found("word") == ["a"]
    Agent(other, session="two").commit("b", "word", "session")
    other.stop()
    store.close()
    assert agent.found("word") == ["a"]


def test_no_side_files_remain_beside_the_store(tmp_path: Path) -> None:
    server, store = vault_server(str(tmp_path / "memory.db"))
    agent = Agent(server, session="one")
    agent.commit("a", "word", "session")
    assert len(list(tmp_path.glob("*-server-*"))) == 1
    agent.session.close()
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]
