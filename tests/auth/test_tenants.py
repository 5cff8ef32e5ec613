"""Tokens that `polymnia token create` made without options: each has a memory of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.postgres import new_database, shared_server
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.running import Line, Running, Talk, Web, call, initialize, stateless, text_of

SALARY = {"entities": [{"name": "My salary", "facts": ["It is 100 a year."]}]}


def polymnia(*arguments: str) -> str:
    command = polymnia_command(*arguments)
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def said(result: Any) -> str:
    """Return the text of a tool's result."""
    return str(result["content"][0]["text"])


class Team(Struct):
    """A server, and the tokens of those who use it."""

    server: Running
    store: str
    tokens: dict[str, str]

    def talk(self, name: str, path: str = "/mcp", **headers: str) -> Talk:
        return Talk(self.server.port, self.tokens[name], path=path, **headers)

    def remember(self, name: str, about: str, fact: str, **headers: str) -> str:
        with self.talk(name, **headers) as talk:
            return said(talk.call("remember", entities=[{"name": about, "facts": [fact]}]))

    def recall(self, name: str, query: str, **arguments: Any) -> str:
        with self.talk(name) as talk:
            return said(talk.call("recall", query=query, **arguments))


@pytest.fixture(scope="module", params=["directory", "postgres"])
def team(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    with ExitStack() as resources:
        if request.param == "postgres":
            store = resources.enter_context(new_database(shared_server()))
        else:
            store = f"{tmp_path_factory.mktemp('tenants')}/"
        yield resources.enter_context(serve_team(store))


@contextmanager
def serve_team(store: str) -> Iterator[Team]:
    polymnia("workspace", "create", "shop", "--store", store)
    tokens = {}
    for name, options in {
        "alice": ("--can", "write"),
        "bob": ("--can", "write"),
        "carol": ("--can", "write", "--workspace", "shop"),
        "dave": ("--can", "write", "--workspace", "shop"),
        "free": ("--can", "write", "--all-workspaces"),
        "boss": ("--can", "admin", "--all-workspaces"),
    }.items():
        tokens[name] = polymnia("token", "create", name, *options, "--store", store)
    flags = ("--also", "reference", "--embedder", "none")
    with Running(store, *flags, dialect="native") as server:
        yield Team(server, store, tokens)


def test_a_client_does_not_see_what_another_remembers(team: Team) -> None:
    assert "personal-alice" in team.remember("alice", "My salary", "It is 100 a year.")
    assert "100 a year" in team.recall("alice", "salary")
    for query in ({}, {"workspace": "personal"}):
        assert "100 a year" not in team.recall("bob", "salary", **query)
    with team.talk("bob") as bob:
        assert "100 a year" not in said(bob.call("briefing"))


@pytest.mark.parametrize("workspace", ["personal-alice", "Personal-Alice"])
def test_the_workspace_of_another_cannot_be_named(team: Team, workspace: str) -> None:
    assert "may not use the workspace" in team.recall("bob", "salary", workspace=workspace)
    with team.talk("bob", **{"X-Memory-Workspace": workspace}) as bob:
        assert "may not use the workspace" in said(bob.call("recall", query="salary"))


def test_the_word_personal_means_the_own_workspace(team: Team) -> None:
    with team.talk("carol") as carol:
        entity = {"name": "Carol", "facts": ["She likes tea."]}
        reply = carol.call("remember", entities=[entity], workspace="personal")
        assert "personal-carol" in said(reply)
        assert "likes tea" in said(carol.call("recall", query="tea"))
    assert "likes tea" not in team.recall("dave", "tea")


def test_a_shared_workspace_is_the_default_of_those_who_share_one(team: Team) -> None:
    assert "shop:" in team.remember("carol", "Till", "It is in the hall.")
    assert "in the hall" in team.recall("dave", "till")


def test_other_dialects_use_the_own_workspace_too(team: Team) -> None:
    entity = {"name": "Diary", "entityType": "book", "observations": ["secret of alice"]}
    with team.talk("alice", path="/reference/mcp") as alice:
        assert "secret of alice" in said(alice.call("create_entities", entities=[entity]))
    with team.talk("bob", path="/reference/mcp") as bob:
        assert "secret of alice" not in said(bob.call("read_graph"))


@pytest.mark.parametrize("name", ["free", "carol"])
def test_creating_a_workspace_needs_admin(team: Team, name: str) -> None:
    """A stateless request names a workspace in each request, so it needs no session."""
    with team.talk(name) as talk:
        headers = {"X-Memory-Workspace": f"made-by-{name}"}
        message, more = stateless(call("remember", **SALARY))
        answer = talk.post(message, **headers, **more)
        assert b'"isError":true' in answer.body
    listed = polymnia("workspace", "list", "--store", team.store)
    assert "made-by" not in listed


def test_a_limited_token_loses_its_other_workspaces_at_once(team: Team) -> None:
    polymnia("token", "create", "erin", "--can", "write", "--all-workspaces", "--store", team.store)
    text = polymnia("token", "rotate", "erin", "--store", team.store)
    team.tokens["erin"] = text
    team.remember("boss", "Vault", "The code is 1234.", **{"X-Memory-Workspace": "shop"})
    with team.talk("erin") as erin:
        assert "code is 1234" in said(erin.call("recall", query="vault", workspace="shop"))
        polymnia("token", "assign", "erin", "--store", team.store)
        with Web(team.server.port, "ply_ffffffffffff_unknown") as stranger:
            # A database's tokens are read every second, and at once for an unknown one.
            assert stranger.post(initialize()).status == 401
        answer = erin.post(call("recall", query="vault", workspace="shop"))
        assert b"1234" not in answer.body
    assert "may not use the workspace" in team.recall("erin", "vault", workspace="shop")


def test_doctor_names_the_tokens_that_share_everything(team: Team) -> None:
    remarks = [
        line
        for line in polymnia("doctor", "--store", team.store).splitlines()
        if line.startswith("remark: these tokens")
    ]
    assert len(remarks) == 1
    assert "called personal: free" in remarks[0]
    assert "alice" not in remarks[0]


def test_tcp_clients_are_apart_too(tmp_path: Path) -> None:
    store = f"{tmp_path}/"
    alice, bob = (
        polymnia("token", "create", name, "--can", "write", "--store", store)
        for name in ("alice", "bob")
    )
    with Running(store, "--embedder", "none", transport="tcp", dialect="native") as server:
        with Line(server.port, alice) as line:
            line.ask(initialize())
            assert "personal-alice" in text_of(line.ask(call("remember", **SALARY)))
        with Line(server.port, bob) as line:
            line.ask(initialize())
            assert "100 a year" not in text_of(line.ask(call("recall", query="salary")))
