"""The workspace dialect.

Its catalogue, what its tools do, and what becomes of workspaces, times and deleted nodes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode

from polymnia.dialects import open_dialect
from polymnia.dialects.base import Call
from polymnia.dialects.base import Client as Caller
from polymnia.embedders import open_embedder
from polymnia.engine.history import trash
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.engine.workspaces import Workspaces, open_workspaces
from polymnia.errors import Cancelled
from polymnia.mcp.server import Server
from polymnia.model import OWNER, Principal
from tests.dialects.conversation import Client
from tests.dialects.workspace import (
    CALLS,
    PARAMETERS,
    RETURNS,
    TEAM,
    check_shape,
    prepare_workspaces,
)
from tests.embedders.ollama import serve_ollama
from tests.postgres import new_database, shared_server

DIALECT = open_dialect("workspace")


@pytest.fixture(scope="module")
def embedder() -> Iterator[str]:
    with serve_ollama() as ollama:
        yield f"ollama:bag@{ollama.url}"


@pytest.fixture(params=["directory", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of an empty data directory, and of an empty database."""
    if request.param == "directory":
        yield f"{tmp_path}/data/"
        return
    with new_database(shared_server()) as database:
        yield database


@pytest.fixture
def workspaces(embedder: str, url: str) -> Iterator[Workspaces]:
    prepare_workspaces(url, embedder, TEAM, "other")
    opened = open_workspaces(url, meaning=Meaning(SharedEmbedder(embedder, open_embedder)))
    yield opened
    opened.close()


def talk(
    workspaces: Workspaces, workspace: str | None = TEAM, principal: Principal = OWNER
) -> Client:
    return Client("workspace", Server(DIALECT, workspaces, workspace=workspace), principal)


@pytest.fixture
def client(workspaces: Workspaces) -> Client:
    return talk(workspaces)


def node(client: Client, name: str) -> Any:
    (found,) = client.json("open_nodes", {"names": [name]})["entities"]
    return found


def test_the_catalogue_is_the_specification_s(client: Client) -> None:
    listed = {tool["name"]: tool for tool in client.request("tools/list")["tools"]}
    assert set(listed) == set(PARAMETERS) == set(RETURNS)
    for name, expected in PARAMETERS.items():
        schema = listed[name]["inputSchema"]
        found = {each: below.get("default", ...) for each, below in schema["properties"].items()}
        assert found == expected, name
        assert set(schema.get("required", ())) == {
            each for each, default in expected.items() if default is ...
        }, name
        assert "workspace" not in schema["properties"]
        assert {"title", "outputSchema", "annotations"} <= set(listed[name])


def test_every_tool_returns_what_the_specification_says(client: Client) -> None:
    assert {tool for tool, _ in CALLS} == set(RETURNS)
    for tool, arguments in CALLS:
        result = client.call(tool, arguments)
        assert not result.get("isError"), (tool, result)
        value = decode(result["content"][0]["text"])
        check_shape(value, RETURNS[tool], tool)
        is_list = isinstance(RETURNS[tool], list)
        assert result["structuredContent"] == ({"result": value} if is_list else value)
        assert bool(DIALECT.tools[tool].returns) is True


def test_lists_are_marked_for_clients_that_unwrap_them(client: Client) -> None:
    listed = {tool["name"]: tool["outputSchema"] for tool in client.request("tools/list")["tools"]}
    marked = {name for name, schema in listed.items() if schema.get("x-fastmcp-wrap-result")}
    assert marked == {name for name, shape in RETURNS.items() if isinstance(shape, list)}


def test_annotations_tell_readers_from_writers(client: Client) -> None:
    hints = {tool["name"]: tool["annotations"] for tool in client.request("tools/list")["tools"]}
    readers = {name for name, each in hints.items() if each["readOnlyHint"]}
    assert readers == {
        name for name in RETURNS if name.startswith(("get_", "find_", "search_", "query_", "open_"))
    }
    destructive = {name for name, each in hints.items() if each["destructiveHint"]}
    assert destructive == {
        "delete_entities",
        "replace_observation",
        "delete_observations",
        "delete_relations",
        "update_relation_type",
    }


def test_a_known_name_is_not_created_again_and_the_reply_says_so(client: Client) -> None:
    drafts = [{"name": name, "entity_type": "service"} for name in ("billing", "new", "new")]
    result = client.call("create_entities", {"entities": drafts})
    assert [item["name"] for item in result["structuredContent"]["result"]] == ["new"]
    assert result["content"][1]["text"] == (
        "Unchanged, because they exist: billing. "
        "Given more than once, and created as the first: new."
    )


def test_a_relation_that_comes_twice_is_created_once_and_existed_then(client: Client) -> None:
    drafts = [{"name": name, "entity_type": "service"} for name in ("here", "there")]
    client.call("create_entities", {"entities": drafts})
    relation = {"from_entity": "here", "to_entity": "there", "relation_type": "calls"}
    reply = client.json("create_relations", {"relations": [relation, relation]})
    shown = [{"from": "here", "to": "there", "relation_type": "calls"}]
    assert (reply["created"], reply["already_existed"]) == (shown, shown)
    assert len(node(client, "billing")["observations"]) == 2


def test_facts_are_appended_as_they_are_and_ordinals_stay(client: Client) -> None:
    add = {"observations": [{"entity_name": "Ann", "contents": ["adopted a puppy", "sings"]}]}
    (added,) = client.json("add_observations", add)
    assert [item["ordinal"] for item in added["added"]] == [3, 4]
    client.json("delete_observations", {"deletions": [{"entity_name": "Ann", "ordinals": [4, 2]}]})
    (added,) = client.json("add_observations", add)
    assert [item["ordinal"] for item in added["added"]] == [5, 6]
    assert [fact["ordinal"] for fact in node(client, "Ann")["observations"]] == [
        1,
        3,
        5,
        6,
    ]


def test_a_replaced_fact_may_repeat_another_one(client: Client) -> None:
    client.json("add_observations", {"observations": [{"entity_name": "Ann", "contents": ["a"]}]})
    before = node(client, "Ann")["observations"]
    replacement = {"entity_name": "Ann", "ordinal": 3, "new_content": before[0]["content"]}
    reply = client.json("replace_observation", replacement)
    assert reply["old_content"] == "a"
    expected = [*before[:2], {"ordinal": 3, "content": before[0]["content"]}]
    assert node(client, "Ann")["observations"] == expected


def test_any_child_write_moves_the_time_of_update(client: Client) -> None:
    writes: list[tuple[str, dict[str, Any]]] = [
        ("add_observations", {"observations": [{"entity_name": "Ann", "contents": ["x"]}]}),
        ("replace_observation", {"entity_name": "Ann", "ordinal": 1, "new_content": "y"}),
        ("replace_observation", {"entity_name": "Ann", "ordinal": 1, "new_content": "y"}),
        ("delete_observations", {"deletions": [{"entity_name": "Ann", "ordinals": [1]}]}),
        ("set_summary", {"name": "Ann", "summary": "A person"}),
        ("set_tags", {"name": "Ann", "tags": ["t"]}),
        ("set_tags", {"name": "Ann", "tags": ["t"]}),
        ("create_relations", {"relations": [RELATED]}),
        (
            "update_relation_type",
            {"from_entity": "billing", "to_entity": "Ann", "old_type": "r", "new_type": "s"},
        ),
        ("delete_relations", {"relations": [{**RELATED, "relation_type": "s"}]}),
    ]
    for tool, arguments in writes:
        before = node(client, "Ann")["updated_at"]
        client.json(tool, arguments)
        assert node(client, "Ann")["updated_at"] > before, tool
        assert client.json("get_recently_modified", {"limit": 2})[0]["name"] in ("Ann", "billing")


RELATED = {"from_entity": "billing", "to_entity": "Ann", "relation_type": "r"}


def test_the_time_of_a_summary_moves_only_with_the_summary(client: Client) -> None:
    client.json("set_summary", {"name": "Ann", "summary": "A person"})
    assert "Ann" not in {item["name"] for item in client.json("get_pending_consolidation")}
    client.json("set_tags", {"name": "Ann", "tags": ["t"]})
    assert "Ann" not in {item["name"] for item in client.json("get_pending_consolidation")}
    client.json("add_observations", {"observations": [{"entity_name": "Ann", "contents": ["x"]}]})
    pending = {item["name"]: item for item in client.json("get_pending_consolidation")}
    assert pending["Ann"]["summary_updated_at"] < pending["Ann"]["last_observation_at"]
    assert pending["gateway"]["summary_updated_at"] is None


def test_a_deleted_node_is_gone_from_every_read_and_can_be_restored(
    client: Client, workspaces: Workspaces
) -> None:
    client.json("delete_entities", {"entity_names": ["search"]})
    texts = [
        client.text("open_nodes", {"names": ["gateway", "billing"]}),
        client.text("get_nodes_by_type", {"entity_type": "service"}),
        client.text("get_recently_modified"),
        client.text("search_nodes", {"query": "answers questions with an index"}),
        client.text("search_nodes", {"query": "index", "mode": "text"}),
        client.text("get_neighborhood", {"name": "gateway", "depth": 3}),
        client.text("get_orphans"),
        client.text("get_pending_consolidation"),
    ]
    assert [text for text in texts if '"search"' in text] == []
    assert (
        client.json("get_path", {"from_entity": "gateway", "to_entity": "billing"})["found"]
        is False
    )
    assert client.json("get_stats")["relation_count"] == 3
    trash.restore(workspaces.memory(TEAM), "search", by="test")
    assert client.json("get_path", {"from_entity": "gateway", "to_entity": "billing"})["path"] == [
        "gateway",
        "search",
        "billing",
    ]


def test_a_search_tells_the_perspective_and_the_fact_that_matched(client: Client) -> None:
    first, *_ = client.json("search_nodes", {"query": "dog"})
    assert (first["name"], first["matched_observation"]) == ("Ann", "adopted a puppy")
    assert first["matched_perspective"] in {
        "general",
        "technical",
        "relational",
        "temporal",
        "project",
    }
    (by_words,) = client.json("search_nodes", {"query": "puppy", "mode": "text"})
    assert (by_words["name"], by_words["matched_perspective"]) == ("Ann", None)
    assert len(client.json("search_nodes", {"query": "service", "limit": 2})) == 2


def test_unknown_nodes_are_errors_that_name_them(client: Client) -> None:
    for tool, arguments in (
        ("set_summary", {"name": "nobody", "summary": "x"}),
        ("query_observations", {"entity_name": "nobody", "query": "x"}),
        ("get_neighborhood", {"name": "nobody"}),
        ("get_path", {"from_entity": "Ann", "to_entity": "nobody"}),
        ("get_relations_between", {"entity_a": "nobody", "entity_b": "Ann"}),
    ):
        assert client.error(tool, arguments) == "Entity with name nobody not found"


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        (
            "search_nodes",
            {"query": "x", "mode": "fuzzy"},
            "mode: 'fuzzy' is not one of embedding, text",
        ),
        ("search_nodes", {"query": "x", "limit": 0}, "limit: expected an integer >= 1"),
        (
            "search_nodes",
            {"query": "x", "workspace": "other"},
            "workspace: there is no such argument",
        ),
        ("get_neighborhood", {"name": "Ann", "depth": 11}, "depth: expected an integer <= 10"),
        (
            "create_entities",
            {"entities": [{"name": "", "entity_type": "x"}]},
            "entities[0].name: expected a string",
        ),
    ],
)
def test_wrong_arguments_are_named(
    client: Client, tool: str, arguments: dict[str, Any], problem: str
) -> None:
    assert client.error(tool, arguments).startswith(problem)


def test_a_client_without_a_workspace_is_told_how_to_name_one(workspaces: Workspaces) -> None:
    assert (
        talk(workspaces, None)
        .error("get_stats")
        .startswith("no workspace selected: send its name in the header X-Memory-Workspace")
    )


def test_unknown_archived_and_forbidden_workspaces_are_errors(workspaces: Workspaces) -> None:
    only_other = Principal(name="t", can="admin", workspaces=frozenset(["other"]))
    assert "there is no workspace 'missing'" in talk(workspaces, "missing").error("get_stats")
    assert talk(workspaces, TEAM, only_other).error("get_stats") == (
        "the token t may not use the workspace 'team' (only: other)"
    )
    workspaces.archive("other")
    assert "the workspace 'other' is archived" in talk(workspaces, "other", only_other).error(
        "get_stats"
    )


def test_two_workspaces_with_the_same_names_do_not_mix(workspaces: Workspaces) -> None:
    team, other = talk(workspaces), talk(workspaces, "other")
    team.json(
        "add_observations", {"observations": [{"entity_name": "Ann", "contents": ["secret"]}]}
    )
    assert "secret" not in other.text("open_nodes", {"names": ["Ann"]})
    assert other.json("search_nodes", {"query": "secret", "mode": "text"}) == []
    assert (
        team.json("get_stats")["observation_count"],
        other.json("get_stats")["observation_count"],
    ) == (9, 8)
    assert other.json("get_stats")["workspace"] == "other"


@pytest.mark.parametrize(
    "tool",
    [
        "get_relation_gaps",
        "find_similar_nodes",
        "get_consolidation_report",
        "get_pending_consolidation",
    ],
)
def test_long_tools_report_progress_and_stop_when_cancelled(
    workspaces: Workspaces, tool: str
) -> None:
    reports: list[float] = []
    client = Caller(workspace=TEAM)
    called = DIALECT.tools[tool]

    class WatchedCall(Call):
        def progress(self, done: float, total: float | None, message: str | None) -> None:
            reports.append(done)

    class CancelledCall(Call):
        def cancelled(self) -> bool:
            return True

    called.run(WatchedCall(workspaces, client, "test"), called.decoder.decode(b"{}"))
    assert reports
    assert reports == sorted(reports)
    with pytest.raises(Cancelled):
        called.run(CancelledCall(workspaces, client, "test"), called.decoder.decode(b"{}"))


def test_a_workspace_gets_the_five_perspectives_with_its_first_call(
    embedder: str, url: str
) -> None:
    opened = open_workspaces(url, meaning=Meaning(SharedEmbedder(embedder, open_embedder)))
    opened.create("new")
    with opened.memory("new").reading() as read:
        assert [perspective.name for perspective in read.vectors.perspectives()] == ["text"]
    talk(opened, "new").json("get_stats")
    with opened.memory("new").reading() as read:
        names = [perspective.name for perspective in read.vectors.perspectives()]
    assert names == ["text", "general", "technical", "relational", "temporal", "project"]
    opened.close()
