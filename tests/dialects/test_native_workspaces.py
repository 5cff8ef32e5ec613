"""The native dialect over many workspaces.

The project and the personal one, created by the first write, labelled.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.dialects import open_dialect
from polymnia.dialects.base import ServerRules
from polymnia.engine.workspaces import (
    PERSONAL,
    Workspaces,
    default_workspace,
    find_project,
    open_workspaces,
    project_workspace,
)
from polymnia.errors import SettingsError
from polymnia.mcp.server import Server
from polymnia.model import Principal
from polymnia.stores.contract import Store
from tests.dialects.conversation import Client


@pytest.fixture(params=["directory", "postgres"])
def workspaces(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspaces]:
    """Yield the workspaces of an empty data directory, and of an empty database."""
    is_directory = request.param == "directory"
    opened = open_workspaces(
        f"{tmp_path}/store/" if is_directory else request.getfixturevalue("postgres_database")
    )
    yield opened
    opened.close()


def client_of(workspaces: Workspaces, workspace: str, principal: Principal | None = None) -> Client:
    server = Server(open_dialect("native"), workspaces, workspace=workspace)
    return Client("native", server, principal or Principal())


def names(workspaces: Workspaces) -> list[str]:
    return [item.name for item in workspaces.find_all()]


def test_a_workspace_is_created_by_the_first_write(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    assert client.text("recall", {"query": "tea"}) == "Nothing is stored yet."
    assert "app: nothing yet; the first write creates it." in client.text("briefing")
    assert names(workspaces) == []
    client.text("remember", {"entities": [{"name": "Ada", "facts": ["drinks tea"]}]})
    assert names(workspaces) == ["app"]
    client.text(
        "remember",
        {"entities": [{"name": "me", "facts": ["drinks coffee"]}], "workspace": "personal"},
    )
    assert names(workspaces) == ["app", PERSONAL]


@pytest.mark.parametrize(
    "call", [{"query": "zeppelin"}, {"query": "zeppelin", "workspace": "unknown"}]
)
def test_a_recall_without_hits_opens_a_few_workspaces_only(
    workspaces: Workspaces, call: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        workspaces.create(f"team-{number}")
    client = client_of(workspaces, "team-0")
    client.text("remember", {"entities": [{"name": "Ada", "facts": ["drinks tea"]}]})
    opened: list[str] = []
    open_store = workspaces._catalogue.open

    def open_and_count(name: str) -> Store:
        opened.append(name)
        return open_store(name)

    monkeypatch.setattr(workspaces._catalogue, "open", open_and_count)
    client.call("recall", call)
    assert len(opened) <= 11


def test_both_workspaces_are_searched_and_hits_are_labelled(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    client.text("remember", {"entities": [{"name": "Ada", "facts": ["drinks tea"]}]})
    client.text(
        "remember",
        {"entities": [{"name": "me", "facts": ["drinks tea too"]}], "workspace": "personal"},
    )
    found = client.items("recall", {"query": "Who drinks tea?"})
    assert {(item["name"], item["workspace"]) for item in found} == {
        ("Ada", "app"),
        ("me", PERSONAL),
    }
    only = client.items("recall", {"query": "tea", "workspace": "personal"})
    assert [item["name"] for item in only] == ["me"]
    opened = client.text("open", {"names": ["me"]})
    assert "In personal, by test, unless noted.\nme (thing)" in opened


def test_other_workspaces_with_hits_are_named(workspaces: Workspaces) -> None:
    client_of(workspaces, "old").text(
        "remember", {"entities": [{"name": "Ada", "facts": ["drinks tea"]}]}
    )
    client = client_of(workspaces, "app")
    text = client.text("recall", {"query": "tea"})
    assert text.endswith("Other workspaces have hits: old; pass one as workspace.")
    assert "drinks tea" in client.text("recall", {"query": "tea", "workspace": "old"})
    limited = client_of(
        workspaces, "app", Principal(name="x", can="write", workspaces=frozenset({"app"}))
    )
    assert "Other workspaces" not in limited.text("recall", {"query": "tea"})
    assert "may not use the workspace 'old'" in limited.error(
        "recall", {"query": "tea", "workspace": "old"}
    )
    assert "there is no workspace 'missing'" in client.error(
        "recall", {"query": "tea", "workspace": "missing"}
    )


def test_the_instructions_name_the_workspaces(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    greeting = client.request(
        "initialize", protocolVersion="2025-11-25", clientInfo={"name": "t", "version": "1"}
    )
    assert "app (this project; the default for writes) and personal" in greeting["instructions"]


def test_a_project_is_the_git_work_tree_around_a_directory(
    tmp_path: Path, workspaces: Workspaces
) -> None:
    root = tmp_path / "my app"
    below = root / "src" / "deep"
    below.mkdir(parents=True)
    assert find_project(below) is None
    assert default_workspace(workspaces, below) == PERSONAL
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert find_project(below) == root.resolve()
    assert default_workspace(workspaces, below) == "my-app"


def test_projects_with_the_same_name_have_different_workspaces(
    tmp_path: Path, workspaces: Workspaces
) -> None:
    first, second = tmp_path / "a" / "app", tmp_path / "b" / "app"
    assert project_workspace(workspaces, first) == "app"
    workspaces.create("app", str(first))
    assert project_workspace(workspaces, first) == "app"
    other = project_workspace(workspaces, second)
    assert other.startswith("app-")
    workspaces.create(other, str(second))
    assert project_workspace(workspaces, second) == other


def test_toolsets_add_tools(workspaces: Workspaces) -> None:
    dialect = open_dialect("native", ServerRules(toolsets=("all",)))
    server = Server(dialect, workspaces, workspace="app")
    client = Client("native", server)
    assert list(dialect.tools)[10:] == [
        "write_note", "find_notes", "read_notes", "delete_note",
        "list_workspaces", "manage_workspace", "trash_can", "search", "fetch",
    ]  # fmt: skip
    client.text(
        "remember", {"entities": [{"name": "Ada", "type": "person", "facts": ["drinks tea"]}]}
    )
    found = client.json("search", {"query": "Who drinks tea?"})
    assert found == {
        "results": [{"id": "app::Ada", "title": "Ada (person)", "url": "polymnia://entity/Ada"}]
    }
    fetched = client.json("fetch", {"id": "app::Ada"})
    assert (fetched["id"], fetched["title"], fetched["text"]) == (
        "app::Ada",
        "Ada (person)",
        "drinks tea",
    )
    assert client.error("fetch", {"id": "app::Zoe"}).startswith("there is no document 'app::Zoe'")
    client.text("write_note", {"key": "plan", "content": "Drink more tea."})
    assert "plan: Drink more tea." in client.text("find_notes", {"query": "tea"})
    client.text("delete_note", {"key": "plan"})
    assert client.text("find_notes") == "No notes found."
    client.text("manage_workspace", {"action": "create", "name": "more", "to": "for later"})
    assert "- more (active): for later" in client.text("list_workspaces")
    client.text("forget", {"name": "Ada", "whole": True, "confirm": True})
    assert client.text("trash_can").count("deleted 20") == 2  # Ada and the note
    client.text("trash_can", {"restore": "Ada"})
    assert "drinks tea" in client.text("open", {"names": ["Ada"]})
    with pytest.raises(
        SettingsError,
        match="unknown toolset 'magic': use notes, admin, search-fetch or all",
    ):
        open_dialect("native", ServerRules(toolsets=("magic",)))


def test_resources_prompts_and_completion(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    client.text(
        "remember", {"entities": [{"name": "Ada L", "type": "person", "facts": ["drinks tea"]}]}
    )
    (read,) = client.request("resources/read", uri="polymnia://entity/Ada%20L")["contents"]
    assert "#1 drinks tea" in read["text"]
    (briefing,) = client.request("resources/read", uri="polymnia://briefing")["contents"]
    assert "drinks tea (Ada L)" in briefing["text"]
    prompts = client.request("prompts/list")["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["recall", "remember", "tidy"]
    (message,) = client.request("prompts/get", name="recall", arguments={"topic": "tea"})[
        "messages"
    ]
    assert "what you already know about tea" in message["content"]["text"]
    reference = {"type": "ref/resource", "uri": "polymnia://entity/{name}"}
    done = client.request(
        "completion/complete", ref=reference, argument={"name": "name", "value": "ada"}
    )
    assert done["completion"]["values"] == ["Ada%20L"]


def test_what_recall_shows_is_explored_and_has_a_history(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    knows = [
        {"from": "me", "type": "knows", "to": "Ada"},
        {"from": "Ada", "type": "knows", "to": "Bob"},
    ]
    people = [{"name": name} for name in ("me", "Ada", "Bob")]
    client.text(
        "remember",
        {"entities": [{"name": "Ada"}, {"name": "tool"}], "relations": [knows[1] | {"to": "tool"}]},
    )
    client.text("remember", {"entities": people, "relations": knows, "workspace": "personal"})
    around = client.text("explore", {"name": "Ada"}).splitlines()
    relations = {line.strip() for line in around if "->" in line}
    assert relations == {
        "Ada -knows-> tool",
        "me -knows-> Ada (personal)",
        "Ada -knows-> Bob (personal)",
    }
    assert client.text("explore", {"name": "me", "to": "Bob"}).count("-knows->") == 2
    assert "Nothing connects me and tool in app and personal." in client.text(
        "explore", {"name": "me", "to": "tool"}
    )
    assert "Nobody" in client.error("explore", {"name": "me", "to": "Nobody"})
    found = client.text("history", {"name": "me"})
    assert re.findall(r"^- (\S+),", found, re.M) == ["personal:1"]


def test_the_history_of_both_workspaces_is_read_page_by_page(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    for number in range(4):
        client.text("remember", {"entities": [{"name": f"a{number}"}]})
        client.text("remember", {"entities": [{"name": f"p{number}"}], "workspace": "personal"})
    pages: list[list[str]] = []
    cursor = ""
    while cursor or not pages:
        page = client.text("history", {"limit": 3, "cursor": cursor})
        pages.append(re.findall(r"entity (\w+)", page))
        cursor = "".join(re.findall(r"pass cursor '(.*)'", page))
    assert pages == [["p3", "a3", "p2"], ["a2", "p1", "a1"], ["p0", "a0"]]
    assert "belongs to other workspaces" in client.error(
        "history", {"cursor": "3.3", "workspace": "app"}
    )


def test_types_tags_and_workspaces_are_completed(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    client.text("remember", {"entities": [{"name": "Ada", "type": "person", "tags": ["friend"]}]})
    client.text("remember", {"entities": [{"name": "me", "type": "peer"}], "workspace": "personal"})

    def complete(prompt: str, argument: str, value: str) -> list[str]:
        reference = {"type": "ref/prompt", "name": prompt}
        done = client.request(
            "completion/complete", ref=reference, argument={"name": argument, "value": value}
        )
        values: list[str] = done["completion"]["values"]
        return values

    assert complete("recall", "type", "PE") == ["person", "peer"]
    assert complete("recall", "tag", "fr") == ["friend"]
    assert complete("recall", "topic", "a") == ["Ada"]
    assert complete("tidy", "workspace", "p") == [PERSONAL]
    given = {"topic": "tea", "type": "person", "workspace": "app"}
    (message,) = client.request("prompts/get", name="recall", arguments=given)["messages"]
    assert 'questions (types "person", workspace "app")' in message["content"]["text"]


def test_changes_of_an_actor_are_found_in_every_workspace(workspaces: Workspaces) -> None:
    client_of(workspaces, "shop").text("remember", {"entities": [{"name": "Ada"}]})
    client = client_of(workspaces, "app")
    client.text("remember", {"entities": [{"name": "Ben"}]})
    shown = client.text("history", {"actor": "test"})
    assert "shop:1" in shown
    assert "app:1" in shown
    error = client.error("history", {"actor": "codx"})
    assert error.startswith("nobody called 'codx' has changed app and ")
    assert error.endswith("; actors: test 1")


def test_undo_finds_the_workspace_of_a_change_by_its_id(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    client.text("remember", {"entities": [{"name": "Ada"}], "workspace": "personal"})
    receipt = client.text("undo", {"changes": ["personal:1"]})
    assert receipt == "personal:2 undid personal:1: 1 removed."


def test_undo_takes_changes_of_two_workspaces_or_none(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    client.text("remember", {"entities": [{"name": "Ada"}], "workspace": "personal"})
    client.text("remember", {"entities": [{"name": "Ben"}]})
    refusal = client.error("undo", {"changes": ["personal:1", "app:7"]})
    assert refusal == "there is no change 7; history lists the changes"
    assert "Ada" in client.text("open", {"names": ["Ada"]})
    receipt = client.text("undo", {"changes": ["personal:1", "app:1"]})
    assert receipt.splitlines() == [
        "personal:2 undid personal:1: 1 removed.",
        "app:2 undid app:1: 1 removed.",
    ]


def test_a_workspace_may_be_named_in_another_case(workspaces: Workspaces) -> None:
    workspaces.create("tidepool")
    client = client_of(workspaces, "app")
    call = {"name": "Ada", "facts": ["drinks tea"], "workspace": "Tidepool"}
    assert client.text("remember", call).startswith("tidepool:1 stored")
    assert "drinks tea" in client.text("recall", {"query": "tea", "workspace": "TIDEPOOL"})
    call = {"name": "me", "facts": ["drinks rum"], "workspace": "Personal"}
    assert client.text("remember", call).startswith("personal:1 stored")


def test_a_workspace_of_an_entity_is_that_of_the_call(workspaces: Workspaces) -> None:
    client = client_of(workspaces, "app")
    entities = [{"name": name, "facts": ["drinks"], "workspace": "personal"} for name in "ab"]
    assert client.text("remember", {"entities": entities}).startswith("personal:1 stored")
