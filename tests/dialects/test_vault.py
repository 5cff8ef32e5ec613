"""The vault dialect's tools and resources as specified."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from polymnia.dialects import open_dialect
from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import DEFAULT
from polymnia.errors import NotSupported, SettingsError
from polymnia.mcp.server import Server
from polymnia.model import VAULT, Principal
from polymnia.stores import open_store
from polymnia.stores.contract import find_note
from tests.dialects.conversation import Client
from tests.dialects.vault import Agent, vault_server
from tests.mcp.conversation import REVISIONS

PREFERENCE = "User prefers Python examples over TypeScript."
BULK = {"code": -32602, "message": "Bulk vault prune requires at least one filter."}
ODD_KEYS = [
    "a/b",
    "what?",
    "50%",
    "#1",
    "with space",
    "ключ",
    "🦊",
    "a+b&c=d",
    "..",
    '"',
    "%2F",
    "memory://vault",
]


@pytest.fixture
def server(versioned_url: str) -> Iterator[Server]:
    server, _ = vault_server(versioned_url)
    yield server
    server.stop()
    server.workspaces.close()


@pytest.fixture
def agent(server: Server) -> Agent:
    return Agent(server, session="mine")


def test_the_catalogue_has_four_tools() -> None:
    names = ["commit_memory", "search_memories", "prune_memory", "set_session_id"]
    assert list(open_dialect("vault").tools) == names


@pytest.mark.parametrize("scope", ["session", "vault"])
def test_a_commit_says_what_it_did(agent: Agent, scope: str) -> None:
    reply = agent.commit(
        "user_preference_language", PREFERENCE, scope, tags=["preference", "coding"]
    )
    assert reply == {"committed": True, "key": "user_preference_language", "scope": scope}


def test_a_memory_has_the_specified_shape(agent: Agent) -> None:
    agent.commit("user_preference_language", PREFERENCE, tags=["preference", "coding"])
    memory = agent.read("memory://vault/user_preference_language")
    assert list(memory) == ["key", "content", "tags", "scope", "created_at", "updated_at"]
    assert memory["key"] == "user_preference_language"
    assert memory["content"] == PREFERENCE
    assert (memory["tags"], memory["scope"]) == (["preference", "coding"], "vault")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", memory["created_at"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", memory["updated_at"])


@pytest.mark.parametrize("scope", ["session", "vault"])
def test_a_second_commit_replaces_the_first(agent: Agent, scope: str) -> None:
    agent.commit("key", "first", scope, tags=["old"])
    agent.commit("key", "second", scope)
    (found,) = agent.search("second")["results"]
    assert (found["content"], found["tags"], found["scope"]) == ("second", [], scope)
    assert agent.search("first")["results"] == []


def test_a_second_commit_changes_updated_at_but_not_created_at(
    server: Server, agent: Agent
) -> None:
    memory = server.workspaces.memory("default")
    agent.commit("key", "first")
    first = notes.read(memory, VAULT, "key")
    agent.commit("key", "first")
    second = notes.read(memory, VAULT, "key")
    assert first is not None and second is not None
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


def test_an_empty_key_is_rejected(agent: Agent) -> None:
    assert (
        agent.refused("commit_memory", scope="vault", key="", content="x")
        == "key: must not be empty"
    )


@pytest.mark.parametrize("missing", ["scope", "key", "content"])
def test_scope_key_and_content_are_required(agent: Agent, missing: str) -> None:
    arguments = {"scope": "vault", "key": "k", "content": "c"}
    del arguments[missing]
    assert agent.refused("commit_memory", **arguments) == f"{missing}: required, but missing"


def test_an_unknown_scope_is_rejected(agent: Agent) -> None:
    refusal = agent.refused("commit_memory", scope="all", key="k", content="c")
    assert refusal == "scope: 'all' is not one of session, vault"


@pytest.mark.parametrize("tool", ["commit_memory", "search_memories"])
@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ([1.0, 2.0], "expected 3 numbers, got 2"),
        ([], "expected 3 numbers, got 0"),
        ([0, 0.0, -0.0], "all numbers are zero"),
        ([1e-60, 0, 0], "all numbers are zero"),
        ([1e39, 0, 0], "32-bit float"),
    ],
)
def test_an_invalid_embedding_is_rejected(
    agent: Agent, tool: str, numbers: list[float], sentence: str
) -> None:
    if tool == "commit_memory":
        text = agent.refused(tool, scope="vault", key="k", content="c", embedding=numbers)
    else:
        text = agent.refused(tool, query="c", query_embedding=numbers)
    assert sentence in text
    assert text.startswith("embedding: " if tool == "commit_memory" else "query_embedding: ")
    assert agent.read("memory://vault") == []


def test_nan_and_infinity_are_never_stored(agent: Agent) -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    message += b'"params":{"name":"commit_memory","arguments":'
    message += b'{"scope":"vault","key":"k","content":"c","embedding":[NaN,0,1]}}}'
    assert b'"error"' in (agent.session.handle(message).body or b"")
    assert agent.read("memory://vault") == []


def test_search_finds_by_words_in_key_content_and_tags(agent: Agent) -> None:
    agent.commit("alpha_key", "nothing here")
    agent.commit("two", "alpha in the content")
    agent.commit("three", "nothing", tags=["alpha"])
    agent.commit("four", "something else")
    assert sorted(agent.found("alpha")) == ["alpha_key", "three", "two"]


def test_a_result_has_key_content_tags_scope_and_relevance(agent: Agent) -> None:
    agent.commit("key", "some content", tags=["t"])
    (found,) = agent.search("content")["results"]
    relevance = found.pop("relevance")
    assert found == {"key": "key", "content": "some content", "tags": ["t"], "scope": "vault"}
    assert 0 < relevance < 1


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("python AND typescript", ["both"]),
        ("python NOT typescript", ["py"]),
        ("python OR typescript", ["both", "py", "ts"]),
        ("type*", ["both", "ts"]),
        ('"python and typescript"', ["both"]),
        ("content : python", ["both", "py"]),
        ("key : both", ["both"]),
        ("NEAR(python typescript, 2)", ["both"]),
        ("python typescript", ["both"]),
    ],
)
def test_search_takes_fts5_syntax(agent: Agent, query: str, keys: list[str]) -> None:
    agent.commit("py", "learns python")
    agent.commit("ts", "learns typescript")
    agent.commit("both", "python and typescript")
    assert sorted(agent.found(query)) == keys


@pytest.mark.parametrize(
    "query",
    [
        "what's python?",
        "python-lover",
        "python AND",
        '"python',
        "c++ python",
        "nowhere:python",
        "(python",
        "^ python )",
    ],
)
def test_text_that_is_not_fts5_is_searched_as_words(agent: Agent, query: str) -> None:
    agent.commit("py", "learns python")
    assert agent.found(query) == ["py"]


@pytest.mark.parametrize(
    "query", ["!!!", "?", "\x00", "' OR 1=1 --", "💥" * 2000, "(" * 5000, "a AND " * 3000]
)
def test_no_query_text_causes_an_error(agent: Agent, query: str) -> None:
    agent.commit("key", "text")
    assert agent.found(query) == []


@pytest.mark.parametrize("query", ["", "  ", "*"])
def test_an_empty_query_returns_what_passes_the_filters_newest_first(
    agent: Agent, query: str
) -> None:
    for key in ("first", "second", "third"):
        agent.commit(key, tags=["t"] if key != "second" else [])
    assert agent.found(query, scope="vault") == ["third", "second", "first"]
    assert agent.found(query, tags=["t"]) == ["third", "first"]
    assert agent.found(query, limit=1, scope="vault") == ["third"]


def test_only_memories_with_all_the_tags_are_found(agent: Agent) -> None:
    agent.commit("one", "word", tags=["a"])
    agent.commit("two", "word", tags=["a", "b", "c"])
    agent.commit("three", "word", "session", tags=["b", "a"])
    found = agent.search("word", tags=["a", "b"])
    assert sorted(result["key"] for result in found["results"]) == ["three", "two"]
    assert found["total_searched"] == 2


def test_a_tag_is_matched_as_a_whole_and_case_sensitively(agent: Agent) -> None:
    agent.commit("key", "word", tags=["Code", 'say "hi"', ""])
    assert agent.found("word", tags=["code"]) == []
    assert agent.found("word", tags=["Cod"]) == []
    assert agent.found("word", tags=['say "hi"', "", "Code", "Code"]) == ["key"]


def remember_grace(server: Server) -> None:
    facts = ["keeps a zebra", "plays chess"]
    Client("native", server.workspaces.memory(DEFAULT)).text(
        "remember", {"entities": [{"name": "Grace H.", "facts": facts}]}
    )


def test_entities_of_other_dialects_are_found_beside_notes(server: Server, agent: Agent) -> None:
    remember_grace(server)
    agent.commit("plan", "adopt a zebra")
    found = agent.search("zebra")
    assert found["total_searched"] == 2
    assert {result["key"]: result["content"] for result in found["results"]} == {
        "plan": "adopt a zebra",
        "polymnia://entity/Grace%20H.": "keeps a zebra",
    }
    assert len(agent.found("zebra", limit=1)) == 1
    assert (
        agent.search("Grace", scope="vault")["results"][0]["content"]
        == "keeps a zebra\nplays chess"
    )


def test_a_search_of_a_session_or_by_tags_finds_no_entities(server: Server, agent: Agent) -> None:
    remember_grace(server)
    assert agent.search("zebra", scope="session") == {"results": [], "total_searched": 0}
    assert agent.search("zebra", tags=["animal"]) == {"results": [], "total_searched": 0}


def test_pruning_leaves_entities(server: Server, agent: Agent) -> None:
    remember_grace(server)
    (key,) = agent.found("zebra")
    assert agent.prune("vault", key=key) == 0
    assert agent.found("zebra") == [key]


def test_total_searched_counts_what_passes_the_filters(agent: Agent) -> None:
    for number in range(5):
        agent.commit(f"v{number}", "word", tags=["even"] if number % 2 == 0 else [])
    agent.commit("s", "word", "session")
    searched = {
        scope: agent.search("nothing", scope=scope)["total_searched"]
        for scope in ("vault", "session", "all")
    }
    assert searched == {"vault": 5, "session": 1, "all": 6}
    assert agent.search("nothing")["total_searched"] == 6
    assert agent.found("word", scope="session") == ["s"]
    assert agent.search("word", tags=["even"], limit=1)["total_searched"] == 3


def test_the_default_limit_is_ten(agent: Agent) -> None:
    for number in range(12):
        agent.commit(f"key{number}", "word")
    assert len(agent.found("word")) == 10
    assert len(agent.found("word", limit=3)) == 3
    assert len(agent.found("word", limit=10**30)) == 12
    assert (
        agent.refused("search_memories", query="word", limit=0)
        == "limit: expected at least 1, got 0"
    )


def test_only_an_exact_key_or_content_has_relevance_one(agent: Agent) -> None:
    agent.commit("python", "a language")
    agent.commit("other", "python")
    agent.commit("near", "python python python python")
    scores = {result["key"]: result["relevance"] for result in agent.search("python")["results"]}
    assert scores["python"] == scores["other"] == 1.0
    assert 0 < scores["near"] < 1


@pytest.mark.parametrize("key", [*ODD_KEYS, "AND", "a NOT b"])
def test_an_exact_key_is_found_first_even_if_it_is_fts5_syntax(agent: Agent, key: str) -> None:
    agent.commit("other", f"{key} {key}")
    agent.commit(key, "text")
    first = agent.search(key)["results"][0]
    assert (first["key"], first["relevance"]) == (key, 1.0)


def test_what_a_filter_excludes_is_found_neither_exactly_nor_by_its_embedding(
    agent: Agent,
) -> None:
    agent.commit("python", "a language", tags=["x"], embedding=[1, 0, 0])
    assert agent.found("python", tags=["y"], query_embedding=[1, 0, 0]) == []
    assert agent.found("nothing", tags=["x"], query_embedding=[1, 1, 0]) == ["python"]


def test_with_both_embeddings_relevance_blends_words_and_cosine(agent: Agent) -> None:
    agent.commit("near", "python here", embedding=[1, 1, 0])
    agent.commit("far", "python there, python again", embedding=[0, 0, 1])
    words = {result["key"]: result["relevance"] for result in agent.search("python")["results"]}
    both = {
        result["key"]: result["relevance"]
        for result in agent.search("python", query_embedding=[1, 0, 0])["results"]
    }
    assert both["near"] == pytest.approx(0.4 * words["near"] + 0.6 * math.sqrt(0.5))
    assert both["far"] == pytest.approx(0.4 * words["far"])
    assert both["near"] > both["far"]


def test_without_a_stored_embedding_relevance_depends_on_words_alone(agent: Agent) -> None:
    agent.commit("plain", "python here")
    agent.commit("other", "python and more", embedding=[1, 0, 0])
    words = {result["key"]: result["relevance"] for result in agent.search("python")["results"]}
    both = {
        result["key"]: result["relevance"]
        for result in agent.search("python", query_embedding=[0, 1, 0])["results"]
    }
    assert both["plain"] == words["plain"]


@pytest.mark.parametrize("scope", ["session", "vault"])
def test_a_memory_is_found_by_its_embedding_alone(agent: Agent, scope: str) -> None:
    agent.commit("close", "no such word", scope, embedding=[2, 0.1, 0])
    agent.commit("opposite", "no such word either", scope, embedding=[-1, 0, 0])
    (found,) = agent.search("python", query_embedding=[1, 0, 0])["results"]
    assert found["key"] == "close"
    assert found["relevance"] == pytest.approx(0.6 * 2 / math.hypot(2, 0.1))


def test_relevance_is_between_0_and_1_for_any_vectors(agent: Agent) -> None:
    agent.commit("against", "python", embedding=[-1, 0, 0])
    agent.commit("with", "python or so", embedding=[1, 0, 0])
    scores = [
        result["relevance"]
        for result in agent.search("python or", query_embedding=[1, 0, 0])["results"]
    ]
    assert all(0 <= score < 1 for score in scores)


def test_new_content_without_an_embedding_drops_the_old_one(agent: Agent) -> None:
    agent.commit("key", "old", embedding=[1, 0, 0])
    agent.commit("key", "old", tags=["t"])
    assert agent.found("zzz", query_embedding=[1, 0, 0]) == ["key"]
    agent.commit("key", "new")
    assert agent.found("zzz", query_embedding=[1, 0, 0]) == []


def test_an_embedding_is_kept_as_little_endian_floats(agent: Agent, versioned_url: str) -> None:
    agent.commit("key", embedding=[1, -2, 0.5])
    store = open_store(versioned_url)
    with store.reading() as read:
        note = find_note(read.notes, VAULT, "key")
    store.close()
    assert note and note.embedding == bytes.fromhex("0000803f 000000c0 0000003f")


@pytest.mark.parametrize("scope", ["session", "vault"])
def test_prune_deletes_one_key(agent: Agent, scope: str) -> None:
    for key in ("one", "two"):
        agent.commit(key, "word", scope)
    assert agent.prune(scope, key="one") == 1
    assert agent.prune(scope, key="one") == 0
    assert agent.found("word") == ["two"]


def test_prune_of_all_deletes_in_both_scopes(agent: Agent) -> None:
    agent.commit("key", "word", "session")
    agent.commit("key", "word", "vault")
    assert agent.prune("all", key="key") == 2


def test_prune_deletes_notes_with_all_the_tags(agent: Agent) -> None:
    agent.commit("one", tags=["a"])
    agent.commit("two", tags=["a", "b"])
    assert agent.prune("vault", tags=["b", "a", "b"]) == 1
    assert [item["key"] for item in agent.read("memory://vault")] == ["one"]


def test_prune_deletes_only_what_matches_all_filters(agent: Agent) -> None:
    agent.commit("one", tags=["a"])
    assert agent.prune("vault", key="one", tags=["b"]) == 0
    assert agent.prune("vault", key="one", older_than="2001-01-01T00:00:00Z") == 0
    assert agent.prune("vault", key="one", tags=["a"], older_than="2901-01-01T00:00:00Z") == 1


@pytest.mark.parametrize("scope", ["vault", "all"])
@pytest.mark.parametrize("filters", [{}, {"tags": []}])
def test_a_bulk_prune_of_the_vault_is_invalid_params(
    agent: Agent, scope: str, filters: Any
) -> None:
    agent.commit("key")
    arguments = {"scope": scope, **filters}
    assert agent.error("tools/call", name="prune_memory", arguments=arguments) == BULK
    assert len(agent.read("memory://vault")) == 1


def test_a_session_can_be_cleared_without_a_filter(agent: Agent) -> None:
    agent.commit("one", "word", "session")
    agent.commit("two", "word", "session")
    agent.commit("kept", "word")
    assert agent.prune("session") == 2
    assert agent.found("word") == ["kept"]


@pytest.mark.parametrize(
    "moment",
    [
        "2026-04-27T14:00:00Z",
        "2026-04-27T16:00:00+02:00",
        "2026-04-27T14:00:00.123456789Z",
        "2026-04-27T14:00:00,5Z",
        "2026-04-27T14:00Z",
        "20260427T140000Z",
        "2026-04-27 14:00:00-05:30",
        "2026-04-27t14:00:00z",
        "2026-W18-1T14:00:00Z",
        "2026-117T14:00:00Z",
        "2026117T140000Z",
    ],
)
def test_older_than_accepts_any_iso_8601_time(agent: Agent, moment: str) -> None:
    agent.commit("key")
    assert agent.prune("vault", older_than=moment) == 0
    assert agent.prune("vault", older_than=moment.replace("2026", "2926")) == 1


@pytest.mark.parametrize(
    "moment",
    [
        "",
        "yesterday",
        "2026-04-27",
        "2026-04-27T14:00:00",
        "2026-13-01T00:00:00Z",
        "2026-999T00:00:00Z",
        "1777",
    ],
)
def test_a_bad_older_than_is_a_clear_error(agent: Agent, moment: str) -> None:
    agent.commit("key")
    text = agent.refused("prune_memory", scope="vault", older_than=moment)
    assert text.startswith(f"older_than: {moment!r} ")
    assert "2026-04-27T14:00:00Z" in text
    assert len(agent.read("memory://vault")) == 1


def test_older_than_compares_creation_times(server: Server, agent: Agent) -> None:
    agent.commit("key", "first")
    agent.commit("key", "second")
    note = notes.read(server.workspaces.memory("default"), VAULT, "key")
    assert note is not None and note.updated_at > note.created_at
    between = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=note.created_at + 1)
    assert agent.prune("vault", older_than=between.isoformat()) == 1


def test_unknown_arguments_are_named(agent: Agent) -> None:
    assert (
        agent.refused("search_memories", query="x", colour="red")
        == "colour: there is no such argument"
    )


def test_the_vault_is_a_json_array_oldest_first(agent: Agent) -> None:
    for key in ("b", "a", "c"):
        agent.commit(key)
    agent.commit("b", "changed")
    assert [item["key"] for item in agent.read("memory://vault")] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("?offset=1&limit=2", ["k1", "k2"]),
        ("?limit=2&offset=3", ["k3", "k4"]),
        ("?limit=1", ["k0"]),
        ("?offset=3", ["k3", "k4"]),
        ("?offset=9", []),
        ("?limit=0", []),
        ("?", ["k0", "k1", "k2", "k3", "k4"]),
    ],
)
def test_the_vault_can_be_read_by_page(agent: Agent, query: str, keys: list[str]) -> None:
    for number in range(5):
        agent.commit(f"k{number}")
    assert [item["key"] for item in agent.read(f"memory://vault{query}")] == keys


@pytest.mark.parametrize("query", ["?offset=-1", "?limit=many", "?limit=", "?page=2", "?limit=²"])
def test_an_invalid_page_is_a_clear_error(agent: Agent, query: str) -> None:
    error = agent.error("resources/read", uri=f"memory://vault{query}")
    assert error["code"] == -32602
    assert "offset" in error["message"] or "limit" in error["message"]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_key_of_any_characters_is_read_by_its_percent_encoded_address(
    agent: Agent, key: str
) -> None:
    agent.commit(key, f"of {key}")
    assert agent.read(f"memory://vault/{quote(key, safe='')}")["content"] == f"of {key}"


@pytest.mark.parametrize(
    "uri", ["memory://vault/nobody", "memory://vault/%ff", "memory://vaults", "memory://"]
)
def test_a_missing_resource_is_not_found(agent: Agent, uri: str) -> None:
    assert agent.error("resources/read", uri=uri)["message"] == f"Resource not found: {uri}"


def test_the_resources_and_templates_are_listed(agent: Agent) -> None:
    assert agent.resources() == ["memory://vault", "memory://session/mine"]
    templates = agent.result("resources/templates/list")["resourceTemplates"]
    assert [template["uriTemplate"] for template in templates] == [
        "memory://session/{session_id}",
        "memory://vault{?offset,limit}",
        "memory://vault/{key}",
    ]


def test_keys_are_completed(agent: Agent) -> None:
    for key in ("beta", "alpha", "alphabet", "alp%", "Alpha"):
        agent.commit(key)
    agent.commit("alpine", "text", "session")
    assert agent.completed("memory://vault/{key}", "key", "alp") == ["alp%", "alpha", "alphabet"]
    assert agent.completed("memory://vault/{key}", "key", "") == [
        "Alpha",
        "alp%",
        "alpha",
        "alphabet",
        "beta",
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_commits_searches_and_reads(server: Server, revision: str) -> None:
    agent = Agent(server, revision, session="mine")
    for scope in ("session", "vault"):
        assert not agent.call("commit_memory", scope=scope, key=scope, content="some word").get(
            "isError"
        )
    assert '"total_searched":2' in agent.text("search_memories", query="word")
    (memory,) = agent.read("memory://session/mine")
    assert (memory["key"], memory["scope"]) == ("session", "session")
    assert agent.read("memory://vault/vault")["content"] == "some word"


def test_a_reader_has_only_search_and_resources(server: Server) -> None:
    Agent(server).commit("key", "word")
    reader = Agent(server, principal=Principal(name="guest", can="read"))
    assert [tool["name"] for tool in reader.result("tools/list")["tools"]] == ["search_memories"]
    assert reader.found("word") == ["key"]
    assert reader.read("memory://vault/key")["content"] == "word"
    for tool, arguments in (
        ("commit_memory", {"scope": "session", "key": "k", "content": "c"}),
        ("prune_memory", {"scope": "session"}),
        ("set_session_id", {"session_id": "x"}),
    ):
        assert (
            reader.refused(tool, **arguments)
            == f"the token guest may only read; {tool} needs write"
        )
    assert len(reader.read("memory://vault")) == 1


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.mcpmem"])
def test_a_store_without_notes_is_rejected_at_the_start(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        SettingsError,
        match=r"the vault dialect keeps notes, and .* cannot hold notes; use a SQLite",
    ):
        vault_server(str(tmp_path / name))


def test_without_a_start_the_call_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match="cannot hold notes"):
        notes.page(Memory(open_store(str(tmp_path / "memory.jsonl"))), VAULT)


QUESTION = "what language does the user prefer"


@pytest.mark.parametrize("scope", ["session", "vault"])
@pytest.mark.parametrize("query", [QUESTION, f"{QUESTION}?"])
def test_when_no_note_has_all_words_those_with_any_are_found(
    agent: Agent, scope: str, query: str
) -> None:
    agent.commit("language", PREFERENCE, scope=scope)
    agent.commit("tea", "Green tea at four.", scope=scope)
    assert agent.found(query) == ["language"]


def test_notes_with_all_words_come_alone(agent: Agent) -> None:
    agent.commit("both", "python and ruby")
    agent.commit("one", "python")
    assert agent.found("python ruby") == ["both"]


@pytest.mark.parametrize(
    "query", ["python AND cobol", '"python cobol"', "python NOT user", "content : cobol python"]
)
def test_a_query_with_operators_is_taken_literally(agent: Agent, query: str) -> None:
    agent.commit("language", PREFERENCE)
    assert agent.found(query) == []


@pytest.mark.parametrize("query", ["", " ", "*"])
def test_an_empty_query_finds_an_empty_note_without_relevance(agent: Agent, query: str) -> None:
    agent.commit("empty", query)
    agent.commit("newer", "text")
    results = agent.search(query)["results"]
    assert [(result["key"], result["relevance"]) for result in results] == [
        ("newer", 0.0),
        ("empty", 0.0),
    ]
