"""The project dialect: its 16 tools as specified, over a data directory and over a single file."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.json import decode, encode

from polymnia.app import open_servers
from polymnia.arguments import json_schema
from polymnia.dialects import open_dialect
from polymnia.engine.workspaces import open_workspaces
from polymnia.errors import SettingsError
from polymnia.mcp.server import Server
from polymnia.model import Principal
from polymnia.settings import load_settings
from tests.dialects.conversation import Client as AnyClient
from tests.mcp.conversation import RecordingChannel
from tests.postgres import new_workspace

NO_PROJECT = "No active project. Use switch_project to select one."
ALICE = {"name": "Alice", "entity_type": "person", "observations": ["drinks tea", "writes Go"]}
BOB = {"name": "Bob", "entity_type": "person"}
GO = {"name": "Go", "entity_type": "technology", "observations": ["compiled"]}
USES = {"from": "Alice", "to": "Go", "relation_type": "uses"}
KNOWS = {"from": "Alice", "to": "Bob", "relation_type": "knows"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Client(AnyClient):
    """A client that validates structured content against the tool's output schema."""

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        result = super().call(tool, arguments)
        if not result.get("isError"):
            returns = open_dialect("project").tools[tool].returns
            assert returns is not None
            Draft202012Validator(json_schema(returns)).validate(result["structuredContent"])
        return result


@contextmanager
def server_on(directory: Path) -> Iterator[Server]:
    workspaces = open_workspaces(f"{directory}/data/")
    yield Server(open_dialect("project"), workspaces, workspace=None)
    workspaces.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with server_on(tmp_path) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Client:
    return Client("project", server)


@pytest.fixture(params=["directory", "single file", "postgres"])
def inside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """A client in an empty project, in a directory, in a single file and in a database."""
    directory = request.param == "directory"
    urls = {"directory": f"{tmp_path}/data/", "single file": f"{tmp_path}/one.db"}
    workspaces = open_workspaces(urls.get(request.param) or new_workspace())
    client = Client(
        "project", Server(open_dialect("project"), workspaces, workspace=workspaces.sole)
    )
    if directory:
        client.json("create_project", {"name": "alpha"})
    yield client
    workspaces.close()


@pytest.fixture
def full(inside: Client) -> Client:
    inside.json("create_entities", {"entities": [ALICE, BOB, GO]})
    inside.json("create_relations", {"relations": [USES, KNOWS]})
    return inside


def names(nodes: Any) -> list[str]:
    return [node["name"] for node in nodes]


def texts(node: Any) -> list[str]:
    return [fact["content"] for fact in node["observations"]]


def keys(relations: Any) -> list[dict[str, str]]:
    return [
        {key: relation[key] for key in ("from", "to", "relation_type")} for relation in relations
    ]


def structured(client: Client, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    return client.call(tool, arguments)["structuredContent"]


def test_the_catalogue_has_16_tools() -> None:
    assert len(open_dialect("project").tools) == 16


def test_a_new_client_has_no_active_project(client: Client) -> None:
    assert client.text("get_current_project") == NO_PROJECT
    assert structured(client, "get_current_project") == {"message": NO_PROJECT, "project": None}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_entities", {"entities": []}),
        ("add_observations", {"observations": []}),
        ("create_relations", {"relations": []}),
        ("search_nodes", {"query": "x"}),
        ("open_nodes", {"names": []}),
        ("read_graph", {}),
        ("delete_entities", {"names": []}),
        ("delete_observations", {"deletions": []}),
        ("delete_relations", {"relations": []}),
    ],
)
def test_without_a_project_a_graph_tool_names_switch_project(
    client: Client, tool: str, arguments: dict[str, Any]
) -> None:
    assert client.error(tool, arguments) == NO_PROJECT


def test_create_project_returns_it_and_switches_to_it(client: Client) -> None:
    project = client.json("create_project", {"name": "alpha", "description": "the first"})
    assert (project["name"], project["description"], project["status"]) == (
        "alpha",
        "the first",
        "active",
    )
    assert UUID.fullmatch(project["id"])
    assert TIME.fullmatch(project["created_at"])
    assert TIME.fullmatch(project["updated_at"])
    assert client.json("get_current_project") == project
    assert structured(client, "get_current_project") == {"message": None, "project": project}


def test_a_project_is_a_file_of_its_own(client: Client, tmp_path: Path) -> None:
    project = client.json("create_project", {"name": "alpha"})
    assert (tmp_path / "data" / "_meta.db").is_file()
    assert (tmp_path / "data" / "projects" / f"{project['id']}.db").is_file()


def test_create_project_rejects_a_taken_or_invalid_name(client: Client) -> None:
    client.json("create_project", {"name": "alpha"})
    assert client.error("create_project", {"name": "Alpha"}) == (
        "there is a project alpha already; choose another name"
    )
    assert "for example 'my-project'" in client.error("create_project", {"name": "My project"})
    assert client.json("get_current_project")["name"] == "alpha"


def test_list_projects_by_status(client: Client) -> None:
    for name in ("beta", "alpha"):
        client.json("create_project", {"name": name})
    client.json("archive_project", {"name": "beta"})
    assert names(client.json("list_projects")) == ["alpha"]
    assert names(client.json("list_projects", {"status": "archived"})) == ["beta"]
    assert names(client.json("list_projects", {"status": "all"})) == ["alpha", "beta"]
    assert structured(client, "list_projects") == {"projects": client.json("list_projects")}
    assert (
        client.error("list_projects", {"status": "old"})
        == "status: 'old' is not one of active, all, archived"
    )


def test_switch_project_confirms_with_the_project(client: Client) -> None:
    alpha = client.json("create_project", {"name": "alpha"})
    client.json("create_project", {"name": "beta"})
    assert client.json("switch_project", {"name": "alpha"}) == {
        "message": "Switched to project alpha.",
        "project": alpha,
    }
    assert client.json("get_current_project")["name"] == "alpha"


def test_switch_project_rejects_missing_and_archived_projects(client: Client) -> None:
    client.json("create_project", {"name": "alpha"})
    client.json("create_project", {"name": "beta"})
    client.json("archive_project", {"name": "alpha"})
    assert client.error("switch_project", {"name": "ghost"}) == (
        "There is no project ghost. Use list_projects to see which exist."
    )
    assert client.error("switch_project", {"name": "alpha"}) == (
        "Project alpha is archived. restore_project brings it back."
    )
    assert client.json("get_current_project")["name"] == "beta"


def test_projects_are_isolated(client: Client) -> None:
    client.json("create_project", {"name": "alpha"})
    client.json("create_entities", {"entities": [ALICE]})
    client.json("create_project", {"name": "beta"})
    assert client.json("read_graph") == {"entities": [], "relations": []}
    client.json("switch_project", {"name": "alpha"})
    assert names(client.json("read_graph")["entities"]) == ["Alice"]


def test_two_clients_of_one_server_have_their_own_active_projects(server: Server) -> None:
    one, two = Client("project", server), Client("project", server)
    one.json("create_project", {"name": "alpha"})
    assert two.error("read_graph") == NO_PROJECT
    two.json("create_project", {"name": "beta"})
    two.json("create_entities", {"entities": [BOB]})
    assert one.json("read_graph")["entities"] == []
    assert one.json("get_current_project")["name"] == "alpha"


def test_archive_project_moves_the_file_and_deactivates_the_project(
    client: Client, tmp_path: Path
) -> None:
    project = client.json("create_project", {"name": "alpha"})
    said = client.json("archive_project", {"name": "alpha"})
    assert said["message"] == "Project alpha archived."
    assert (said["project"]["id"], said["project"]["status"]) == (project["id"], "archived")
    assert [path.name for path in (tmp_path / "data" / "archive").iterdir()] == [
        f"{project['id']}.db"
    ]
    assert list((tmp_path / "data" / "projects").iterdir()) == []
    assert client.error("read_graph") == NO_PROJECT
    assert "already archived" in client.error("archive_project", {"name": "alpha"})


def test_restore_project_brings_everything_back(client: Client) -> None:
    project = client.json("create_project", {"name": "alpha"})
    client.json("create_entities", {"entities": [ALICE]})
    client.json("archive_project", {"name": "alpha"})
    restored = client.json("restore_project", {"name": "alpha"})
    assert {**restored, "updated_at": ""} == {**project, "updated_at": ""}
    client.json("switch_project", {"name": "alpha"})
    assert names(client.json("read_graph")["entities"]) == ["Alice"]
    assert client.error("restore_project", {"name": "alpha"}) == (
        "Project alpha is not archived. switch_project selects it."
    )


def test_delete_project_deletes_active_and_archived_projects(
    client: Client, tmp_path: Path
) -> None:
    for name in ("alpha", "beta"):
        client.json("create_project", {"name": name})
    client.json("archive_project", {"name": "alpha"})
    for name in ("alpha", "beta"):
        assert client.json("delete_project", {"name": name})["message"] == (
            f"Project {name} and all its data deleted."
        )
    assert client.json("list_projects", {"status": "all"}) == []
    assert client.text("get_current_project") == NO_PROJECT
    assert list((tmp_path / "data").glob("*/*.db*")) == []
    assert "There is no project alpha" in client.error("delete_project", {"name": "alpha"})


def test_a_client_is_told_that_another_archived_or_deleted_its_project(
    server: Server,
) -> None:
    one, two = Client("project", server), Client("project", server)
    one.json("create_project", {"name": "alpha"})
    one.json("create_entities", {"entities": [ALICE]})
    two.json("archive_project", {"name": "alpha"})
    told = "Project alpha was archived. restore_project brings it back."
    assert one.error("create_entities", {"entities": [BOB]}) == told
    assert one.text("get_current_project") == told
    one.json("restore_project", {"name": "alpha"})
    assert names(one.json("read_graph")["entities"]) == ["Alice"]
    two.json("delete_project", {"name": "alpha"})
    told = "There is no project alpha. Use list_projects to see which exist."
    assert one.error("read_graph") == told


def stateless(
    server: Server, tool: str, arguments: dict[str, Any], *, meta: str = "", header: str = ""
) -> Any:
    """Return the result of one stateless request that names its project in `_meta`, in a header, or
    not at all.
    """
    prefix = "io.modelcontextprotocol/"
    about = {
        f"{prefix}protocolVersion": "2026-07-28",
        f"{prefix}clientInfo": {"name": "x", "version": "1"},
    }
    about |= {f"{prefix}clientCapabilities": {}} | ({"polymnia/workspace": meta} if meta else {})
    params = {"name": tool, "arguments": arguments, "_meta": about}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    session = Client("project", server).session
    answer = session.handle(encode(message), RecordingChannel(workspace=header or None))
    return decode(answer.body or b"")["result"]


@pytest.mark.parametrize("way", ["meta", "header"])
def test_a_stateless_client_names_its_project_with_each_request(
    client: Client, server: Server, way: str
) -> None:
    client.json("create_project", {"name": "alpha"})
    where = {"meta": "alpha"} if way == "meta" else {"header": "alpha"}
    created = stateless(server, "create_entities", {"entities": [BOB]}, **where)
    assert names(created["structuredContent"]["entities"]) == ["Bob"]
    assert names(client.json("read_graph")["entities"]) == ["Bob"]


@pytest.mark.parametrize(
    ("tool", "arguments"), [("switch_project", {"name": "alpha"}), ("read_graph", {})]
)
def test_a_stateless_client_is_told_how_to_name_its_project(
    client: Client, server: Server, tool: str, arguments: dict[str, Any]
) -> None:
    client.json("create_project", {"name": "alpha"})
    said = stateless(server, tool, arguments)
    assert said["isError"] is True
    assert '"polymnia/workspace"' in said["content"][0]["text"]
    assert "X-Memory-Workspace" in said["content"][0]["text"]


def test_a_stateless_client_that_creates_a_project_is_told_how_to_use_it(server: Server) -> None:
    said = stateless(server, "create_project", {"name": "alpha"})
    assert said["structuredContent"]["name"] == "alpha"
    assert "X-Memory-Workspace" in said["content"][1]["text"]


def test_a_reader_sees_no_tools_that_change_projects(server: Server) -> None:
    reader = Client("project", server, Principal(name="r", can="read"))
    offered = {tool["name"] for tool in reader.request("tools/list")["tools"]}
    assert offered == {
        *(
            "list_projects",
            "switch_project",
            "get_current_project",
            "search_nodes",
            "open_nodes",
            "read_graph",
        )
    }


def test_a_writer_may_not_create_or_delete_projects(client: Client, server: Server) -> None:
    client.json("create_project", {"name": "alpha"})
    writer = Client("project", server, Principal(name="w", can="write"))
    writer.json("switch_project", {"name": "alpha"})
    writer.json("create_entities", {"entities": [BOB]})
    for tool in ("create_project", "archive_project", "delete_project", "restore_project"):
        assert "needs admin" in writer.error(tool, {"name": "alpha"})


def test_a_client_limited_to_some_projects_sees_and_enters_only_those(
    client: Client, server: Server
) -> None:
    for name in ("alpha", "beta"):
        client.json("create_project", {"name": name})
    limited = Client(
        "project", server, Principal(name="t", can="admin", workspaces=frozenset({"beta"}))
    )
    assert names(limited.json("list_projects", {"status": "all"})) == ["beta"]
    limited.json("switch_project", {"name": "beta"})
    for tool in (
        "switch_project",
        "create_project",
        "archive_project",
        "delete_project",
        "restore_project",
    ):
        assert "may not use the workspace 'alpha'" in limited.error(tool, {"name": "alpha"})


def test_created_entities_have_ids_and_times(inside: Client) -> None:
    (alice, bob) = inside.json("create_entities", {"entities": [ALICE, BOB]})
    assert list(alice) == ["id", "name", "entity_type", "created_at", "updated_at", "observations"]
    assert (alice["name"], alice["entity_type"], texts(alice)) == (
        "Alice",
        "person",
        ["drinks tea", "writes Go"],
    )
    assert UUID.fullmatch(alice["id"])
    assert TIME.fullmatch(alice["created_at"])
    assert [fact["id"] for fact in alice["observations"]] == [
        f"{alice['id']}/1",
        f"{alice['id']}/2",
    ]
    assert all(TIME.fullmatch(fact["created_at"]) for fact in alice["observations"])
    assert (bob["observations"], bob["id"] != alice["id"]) == ([], True)


def test_create_entities_reports_names_that_exist_or_came_twice(full: Client) -> None:
    carol = {**BOB, "name": "Carol"}
    again = {**carol, "observations": ["is somebody else"]}
    drafts = [{**ALICE, "entity_type": "robot"}, carol, again]
    result = full.call("create_entities", {"entities": drafts})
    assert names(result["structuredContent"]["entities"]) == ["Carol"]
    assert result["content"][1]["text"] == (
        "Unchanged, because they exist: Alice. Given more than once, and created as the first: "
        "Carol."
    )
    alice, created = full.json("open_nodes", {"names": ["Alice", "Carol"]})
    assert (alice["entity_type"], texts(created)) == ("person", [])


def test_create_relations_names_those_that_exist_or_came_twice(full: Client) -> None:
    likes = {**USES, "relation_type": "likes"}
    result = full.call("create_relations", {"relations": [USES, likes, likes, USES]})
    (created,) = result["structuredContent"]["relations"]
    assert created["relation_type"] == "likes"
    assert result["content"][1]["text"] == (
        "Unchanged, because they exist: Alice -uses-> Go. "
        "Given more than once, and created as the first: Alice -likes-> Go."
    )


def test_add_facts_also_appends_repeated_texts(full: Client) -> None:
    addition = {"entity_name": "Alice", "contents": ["drinks tea", "sings", "sings"]}
    added = full.json("add_observations", {"observations": [addition]})
    (alice,) = full.json("open_nodes", {"names": ["Alice"]})
    assert [item["content"] for item in added] == ["drinks tea", "sings", "sings"]
    assert {(item["entity_id"], item["entity_name"]) for item in added} == {(alice["id"], "Alice")}
    assert [item["id"] for item in added] == [fact["id"] for fact in alice["observations"][2:]]
    assert all(TIME.fullmatch(item["created_at"]) for item in added)
    assert texts(alice) == ["drinks tea", "writes Go", "drinks tea", "sings", "sings"]


def test_add_facts_to_an_unknown_entity_adds_nothing(full: Client) -> None:
    additions = [{"entity_name": name, "contents": ["x"]} for name in ("Alice", "Ghost")]
    assert (
        full.error("add_observations", {"observations": additions})
        == "Entity with name Ghost not found"
    )
    assert len(texts(full.json("open_nodes", {"names": ["Alice"]})[0])) == 2


def test_created_relations_have_ids_and_times(full: Client) -> None:
    likes = {**KNOWS, "relation_type": "likes"}
    (created,) = full.json("create_relations", {"relations": [KNOWS, likes, likes]})
    assert keys([created]) == [likes]
    assert UUID.fullmatch(created["id"])
    assert TIME.fullmatch(created["created_at"])
    assert created in full.json("read_graph")["relations"]


@pytest.mark.parametrize("missing", [{"from": "Ghost"}, {"to": "Ghost"}])
def test_both_ends_of_a_relation_must_exist(full: Client, missing: dict[str, str]) -> None:
    likes = {**KNOWS, "relation_type": "likes"}
    said = full.error("create_relations", {"relations": [likes, {**likes, **missing}]})
    assert said == "Entity with name Ghost not found"
    assert keys(full.json("read_graph")["relations"]) == [USES, KNOWS]


def test_search_nodes_returns_entities_with_facts_and_relations(full: Client) -> None:
    (alice,) = full.json("search_nodes", {"query": "tea"})
    assert (texts(alice), keys(alice["relations"])) == (["drinks tea", "writes Go"], [USES, KNOWS])
    assert structured(full, "search_nodes", {"query": "tea"}) == {"entities": [alice]}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("go", ["Go", "Alice"]),
        ("tea OR compiled", ["Alice", "Go"]),
        ("person NOT alice", ["Bob"]),
        ("tech*", ["Go"]),
        ('"drinks tea"', ["Alice"]),
        ("name: go", ["Go"]),
        ("alice tea", ["Alice"]),
        ("who's (drinking tea?", ["Alice"]),
        ("nothing", []),
    ],
)
def test_search_nodes_accepts_fts5_syntax_and_any_other_text(
    full: Client, query: str, found: list[str]
) -> None:
    assert sorted(names(full.json("search_nodes", {"query": query}))) == sorted(found)


def test_open_nodes_returns_exact_names_in_the_order_given(full: Client) -> None:
    nodes = full.json("open_nodes", {"names": ["Go", "Ghost", "Alice", "go", "Go"]})
    assert names(nodes) == ["Go", "Alice"]
    assert [keys(node["relations"]) for node in nodes] == [[USES], [USES, KNOWS]]


def test_read_graph_is_everything(full: Client) -> None:
    graph = full.json("read_graph")
    assert (names(graph["entities"]), keys(graph["relations"])) == (
        ["Alice", "Bob", "Go"],
        [USES, KNOWS],
    )
    assert structured(full, "read_graph") == graph


def test_delete_entities_also_deletes_facts_and_relations(full: Client) -> None:
    assert full.json("delete_entities", {"names": ["Alice", "Ghost"]}) == {"deleted": 1}
    assert full.json("read_graph")["relations"] == []
    assert names(full.json("search_nodes", {"query": "tea OR alice"})) == []
    assert full.json("delete_entities", {"names": ["Alice"]}) == {"deleted": 0}


def test_a_name_can_be_created_again_after_its_deletion(full: Client) -> None:
    (old,) = full.json("open_nodes", {"names": ["Alice"]})
    full.json("delete_entities", {"names": ["Alice"]})
    (new,) = full.json("create_entities", {"entities": [{"name": "Alice", "entity_type": "cat"}]})
    assert new["id"] != old["id"]
    (found,) = full.json("open_nodes", {"names": ["Alice"]})
    assert (found["entity_type"], texts(found), found["relations"]) == ("cat", [], [])


def test_delete_facts_by_text_counts_them(full: Client) -> None:
    full.json(
        "add_observations", {"observations": [{"entity_name": "Alice", "contents": ["drinks tea"]}]}
    )
    deletions = [
        {"entity_name": "Alice", "observations": ["drinks tea", "other"]},
        {"entity_name": "X", "observations": []},
    ]
    assert full.json("delete_observations", {"deletions": deletions}) == {"deleted": 2}
    (alice,) = full.json("open_nodes", {"names": ["Alice"]})
    assert [fact["id"].rpartition("/")[2] for fact in alice["observations"]] == ["2"]
    assert names(full.json("search_nodes", {"query": "tea"})) == []


def test_delete_relations_by_all_three_fields_counts_them(full: Client) -> None:
    assert full.json(
        "delete_relations", {"relations": [USES, {**KNOWS, "relation_type": "x"}]}
    ) == {"deleted": 1}
    assert keys(full.json("read_graph")["relations"]) == [KNOWS]


def test_ids_stay_the_same_from_one_read_to_the_next(full: Client) -> None:
    assert full.json("read_graph") == full.json("read_graph")


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("create_project", {}, "name: required, but missing"),
        ("open_nodes", {"names": ["x"], "depth": 1}, "depth: there is no such argument"),
        (
            "create_entities",
            {"entities": [{"name": "A", "entityType": "x"}]},
            "entities[0].entityType: there is no such argument; "
            "entities[0].entity_type: required, but missing",
        ),
        (
            "create_relations",
            {"relations": [{"from": "A", "to": "B"}]},
            "relations[0].relation_type: required, but missing",
        ),
    ],
)
def test_wrong_arguments_are_named(
    inside: Client, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    assert inside.error(tool, arguments) == sentence


def test_a_single_file_holds_one_project_and_says_how_to_have_more(tmp_path: Path) -> None:
    workspaces = open_workspaces(f"{tmp_path}/one.db")
    client = Client("project", Server(open_dialect("project"), workspaces))
    assert names(client.json("list_projects")) == ["default"]
    assert client.json("get_current_project")["name"] == "default"
    assert "data directory" in client.error("create_project", {"name": "alpha"})
    workspaces.close()


@pytest.mark.parametrize("store", ["memory.jsonl", "memory.mcpmem"])
def test_a_file_store_is_a_clear_error(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({"dialect": "project", "store": store}, {"HOME": str(tmp_path)})
    with (
        pytest.raises(SettingsError, match="needs a data directory, a SQLite file or PostgreSQL"),
        open_servers(settings),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_session_remembers_which_project_it_chose_and_not_only_its_name(server: Server) -> None:
    one, other = Client("project", server), Client("project", server)
    one.json("create_project", {"name": "alpha"})
    other.json("delete_project", {"name": "alpha"})
    other.json("create_project", {"name": "alpha"})
    assert "a new project has its name" in one.error("create_entities", {"entities": [BOB]})
    assert one.error("read_graph") == NO_PROJECT
    assert other.json("read_graph")["entities"] == []
    one.json("switch_project", {"name": "alpha"})
    assert one.json("read_graph")["entities"] == []


@pytest.mark.parametrize("harm", ["missing", "damaged", "foreign"])
def test_a_project_whose_file_cannot_be_opened_is_not_switched_to(
    tmp_path: Path, harm: str
) -> None:
    with server_on(tmp_path) as server:
        Client("project", server).json("create_project", {"name": "alpha"})
    (file,) = (tmp_path / "data" / "projects").glob("*.db")
    file.unlink()
    if harm == "damaged":
        file.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    elif harm == "foreign":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE receipts (total REAL)")
    with server_on(tmp_path) as server:
        client = Client("project", server)
        message = client.error("switch_project", {"name": "alpha"})
        assert message.startswith("Project alpha cannot be opened: ")
        assert str(tmp_path) not in message
        assert client.error("read_graph") == NO_PROJECT


@pytest.mark.parametrize("name", ["परियोजना", "โครงการ", "திட்டம்", "café"])
def test_a_project_name_may_have_combining_marks(client: Client, name: str) -> None:
    client.json("create_project", {"name": name})
    assert client.json("get_current_project")["name"] == name


@pytest.mark.parametrize("name", ["\u0301a", "a\u200db", "../a", ".a", "a.", "-a", "a b", ""])
def test_a_project_name_starts_with_a_letter_or_digit_and_has_no_other_characters(
    client: Client, name: str
) -> None:
    assert "cannot be a name" in client.error("create_project", {"name": name})


def test_a_project_that_disappears_during_a_call_is_reported_as_a_project(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client archives the project after the tool has found it."""
    one, other = Client("project", server), Client("project", server)
    one.json("create_project", {"name": "alpha"})
    find = server.workspaces.find

    def find_then_archive(name: str) -> Any:
        monkeypatch.setattr(server.workspaces, "find", find)
        found = find(name)
        other.json("archive_project", {"name": name})
        return found

    monkeypatch.setattr(server.workspaces, "find", find_then_archive)
    message = one.error("archive_project", {"name": "alpha"})
    assert message == "Project alpha was archived. restore_project brings it back."


def test_a_reader_is_not_told_to_use_tools_it_does_not_have(client: Client, server: Server) -> None:
    client.json("create_project", {"name": "alpha"})
    client.json("archive_project", {"name": "alpha"})
    reader = Client("project", server, Principal(name="eve", can="read"))
    message = reader.error("switch_project", {"name": "alpha"})
    assert message == "Project alpha is archived. Only a client with admin rights can restore it."
