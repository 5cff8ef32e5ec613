"""Projects over HTTP.

Sessions with their own projects, requests that name one, and several servers.
"""

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command

META = "io.modelcontextprotocol/"


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[int]:
    """Run a server over a data directory and yield its port."""
    command = polymnia_command(
        "serve", "--transport", "http", "--port", "0", "--dialect", "project"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    with subprocess.Popen(
        [*command, "--data-dir", str(directory / "data"), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=end_with_parent,
    ) as server:
        assert server.stderr is not None
        found = re.search(r":(\d+)/mcp", server.stderr.readline())
        assert found
        try:
            yield int(found[1])
        finally:
            server.terminate()
            server.stderr.read()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with serving(tmp_path, "--also", "reference") as port:
        yield port


class Caller:
    """An HTTP client, with a session, or without one and with its project in a header."""

    def __init__(
        self, port: int, *, project: str | None = None, path: str = "/mcp", token: str = ""
    ) -> None:
        self._port = port
        self._path = path
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if project is not None:
            self._headers["X-Memory-Workspace"] = project

    def greet(self) -> "Caller":
        """Begin a session."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        _, headers = self._post({"method": "initialize", "params": params}, {})
        self._headers |= {
            "Mcp-Session-Id": headers["mcp-session-id"],
            "Mcp-Protocol-Version": "2025-11-25",
        }
        return self

    def in_project(self, project: str) -> "Caller":
        """Name the project in every request from now on."""
        self._headers["X-Memory-Workspace"] = project
        return self

    def call(self, tool: str, **arguments: Any) -> Any:
        """Return the result of a call in the session."""
        return self._post(
            {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}, {}
        )[0]["result"]

    def call_alone(self, tool: str, **arguments: Any) -> Any:
        """Return the result of a stateless call."""
        about = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
        about |= {f"{META}clientInfo": {"name": "x", "version": "1"}}
        params = {"name": tool, "arguments": arguments, "_meta": about}
        headers = {
            "Mcp-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        return self._post({"method": "tools/call", "params": params}, headers)[0]["result"]

    def _post(self, message: dict[str, Any], headers: dict[str, str]) -> tuple[Any, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **message})
        connection.request("POST", self._path, body, {**self._headers, **headers})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        assert response.status == 200, text
        return json.loads(text), {name.lower(): value for name, value in response.getheaders()}


def names(result: Any) -> list[str]:
    return [entity["name"] for entity in result["structuredContent"]["entities"]]


def thing(name: str) -> list[dict[str, str]]:
    return [{"name": name, "entity_type": "thing"}]


def test_each_session_is_in_its_own_project(port: int) -> None:
    one, two = Caller(port).greet(), Caller(port).greet()
    one.call("create_project", name="alpha")
    two.call("create_project", name="beta")
    one.call("create_entities", entities=thing("A"))
    two.call("create_entities", entities=thing("B"))
    assert (names(one.call("read_graph")), names(two.call("read_graph"))) == (["A"], ["B"])


def test_a_request_names_its_project_in_the_header(port: int) -> None:
    Caller(port).greet().call("create_project", name="alpha")
    Caller(port, project="alpha").call_alone("create_entities", entities=thing("A"))
    assert names(Caller(port, project="alpha").call_alone("read_graph")) == ["A"]
    refused = Caller(port).call_alone("read_graph")
    assert (refused["isError"], "X-Memory-Workspace" in refused["content"][0]["text"]) == (
        True,
        True,
    )


def test_a_session_is_told_that_another_archived_its_project(port: int) -> None:
    one, two = Caller(port).greet(), Caller(port).greet()
    one.call("create_project", name="alpha")
    one.call("create_entities", entities=thing("A"))
    two.call("archive_project", name="alpha")
    told = one.call("read_graph")
    assert (
        told["content"][0]["text"] == "Project alpha was archived. restore_project brings it back."
    )
    two.call("restore_project", name="alpha")
    assert names(one.call("read_graph")) == ["A"]


@pytest.mark.matrix
def test_many_sessions_work_in_their_projects_at_once(port: int) -> None:
    graphs: dict[int, list[str]] = {}

    def work(number: int) -> None:
        caller = Caller(port).greet()
        caller.call("create_project", name=f"p{number}")
        for place in range(5):
            caller.call("create_entities", entities=thing(f"{number}-{place}"))
        graphs[number] = names(caller.call("read_graph"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert graphs == {number: [f"{number}-{place}" for place in range(5)] for number in range(6)}


def test_the_other_dialects_of_the_server_see_the_same_workspaces(port: int) -> None:
    caller = Caller(port).greet()
    caller.call("create_project", name="alpha")
    caller.call("create_entities", entities=thing("A"))
    reference = Caller(port, project="alpha", path="/reference/mcp")
    assert names(reference.call_alone("read_graph")) == ["A"]
    assert names(Caller(port, path="/reference/mcp").call_alone("read_graph")) == []


def test_a_token_admits_only_to_its_projects(tmp_path: Path) -> None:
    made = polymnia_command("token", "create", "--data-dir", str(tmp_path / "data"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def token(*arguments: str) -> str:
        done = subprocess.run(
            [*made, *arguments], capture_output=True, text=True, check=True, env=environment
        )
        return done.stdout.strip()

    admin, limited = (
        token("boss", "--can", "admin", "--all-workspaces"),
        token("guest", "--can", "write", "--workspace", "beta"),
    )
    with serving(tmp_path) as port:
        boss = Caller(port, token=admin).greet()
        for name in ("alpha", "beta"):
            boss.call("create_project", name=name)
        guest = Caller(port, token=limited).greet()
        listed = guest.call("list_projects")["structuredContent"]["projects"]
        assert [item["name"] for item in listed] == ["beta", "personal-guest"]
        assert guest.call("switch_project", name="alpha")["isError"] is True
        guest.call("switch_project", name="beta")
        assert names(guest.call("create_entities", entities=thing("B"))) == ["B"]
        assert guest.call("delete_project", name="beta")["isError"] is True
    assert (tmp_path / "data" / "_meta.tokens").is_file()


@pytest.mark.matrix
def test_several_servers_share_the_projects(tmp_path: Path) -> None:
    with serving(tmp_path) as one, serving(tmp_path) as other:
        callers = [Caller(port).greet() for port in (one, other, one, other)]
        callers[0].call("create_project", name="alpha")
        for number, caller in enumerate(callers):
            caller.call("switch_project", name="alpha")
            caller.call("create_entities", entities=thing(str(number)))
        callers[1].call("archive_project", name="alpha")
        assert all(caller.call("read_graph").get("isError") for caller in callers)
        callers[2].call("restore_project", name="alpha")
        callers[3].call("switch_project", name="alpha")
        assert sorted(names(callers[3].call("read_graph"))) == ["0", "1", "2", "3"]


def test_a_client_with_a_fixed_project_header_is_not_told_that_it_switched(port: int) -> None:
    Caller(port).greet().call("create_project", name="alpha")
    Caller(port).greet().call("create_project", name="beta")
    fixed = Caller(port, project="alpha").greet()
    for _ in range(2):
        refused = fixed.call("switch_project", name="beta")
        assert refused["isError"]
        assert "X-Memory-Workspace" in refused["content"][0]["text"]
    fixed.call("create_entities", entities=thing("A"))
    assert names(Caller(port, project="alpha").call_alone("read_graph")) == ["A"]
    assert names(Caller(port, project="beta").call_alone("read_graph")) == []


def test_a_project_created_with_a_fixed_header_is_not_the_active_one_and_the_reply_says_so(
    port: int,
) -> None:
    Caller(port).greet().call("create_project", name="alpha")
    fixed = Caller(port, project="alpha").greet()
    created = fixed.call("create_project", name="beta")
    assert created["structuredContent"]["name"] == "beta"
    assert created["content"][1]["text"].startswith("Not switched: ")
    assert fixed.call("get_current_project")["structuredContent"]["project"]["name"] == "alpha"


def test_a_session_is_set_for_the_conversation_even_if_requests_name_their_workspace(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, "--also", "vault") as port:
        Caller(port).greet().call("create_project", name="alpha")
        one, other = (Caller(port, path="/vault/mcp").greet().in_project("alpha") for _ in range(2))
        assert one.call("set_session_id", session_id="shared")["structuredContent"] == {
            "session_id": "shared"
        }
        one.call("commit_memory", scope="session", key="k", content="text")
        assert other.call("search_memories", query="text")["structuredContent"]["results"] == []
        other.call("set_session_id", session_id="shared")
        assert len(other.call("search_memories", query="text")["structuredContent"]["results"]) == 1
