"""Workspaces over HTTP and SSE: the header, the token, and workspaces that go away."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from polymnia.auth.tokens import Tokens, file_tokens
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft
from polymnia.settings import load_settings
from tests.dialects.isolation import Caller
from tests.processes import TIMEOUT_S
from tests.transports.process import POLYMNIA, Process, call
from tests.transports.web import Web

SECRET = "nobody else may read this"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data directory with the workspaces a and b, which have a node of the same name."""
    workspaces = open_workspaces(f"{tmp_path}/data/")
    for name in ("a", "b"):
        workspaces.create(name)
        entities.create(
            workspaces.memory(name),
            [EntityDraft("Ann", "person", (f"{SECRET}: {name}",))],
            by="test",
        )
    workspaces.close()
    return tmp_path / "data"


@pytest.fixture
def tokens(data: Path) -> Tokens:
    return file_tokens(data / "tokens.json")


@pytest.fixture
def host(data: Path, tokens: Tokens) -> Iterator[str]:
    options = (
        "--dialect",
        "workspace",
        "--transport",
        "http",
        "--port",
        "0",
        "--tokens",
        str(data / "tokens.json"),
    )
    tokens.create("first", can="read", workspaces=["a"], lifetime=None)
    process = Process((*POLYMNIA, f"{data}/", *options), data, stdin=DEVNULL, stdout=DEVNULL)
    yield Web(process).host
    process.end()


def opened(caller: Caller) -> tuple[bool, str]:
    """Return whether opening Ann failed, and the text of the reply."""
    return caller.call("open_nodes", {"names": ["Ann"]})


def test_the_header_chooses_the_workspace_within_what_the_token_allows(
    host: str, tokens: Tokens
) -> None:
    token = tokens.create("both", can="write", workspaces=["a", "b"], lifetime=None)
    for name in ("a", "b", "a"):
        is_error, text = opened(Caller(host, token, name))
        assert (is_error, f"{SECRET}: {name}" in text) == (False, True)


@pytest.mark.parametrize(
    ("workspace", "problem"),
    [
        ("b", "the token only-a may not use the workspace 'b'"),
        ("unknown", "the token only-a may not use the workspace 'unknown'"),
        ("", "no workspace selected: send its name in the header X-Memory-Workspace"),
    ],
)
def test_a_forbidden_unknown_or_missing_workspace_reads_nothing(
    host: str, tokens: Tokens, workspace: str, problem: str
) -> None:
    token = tokens.create("only-a", can="admin", workspaces=["a"], lifetime=None)
    is_error, text = opened(Caller(host, token, workspace))
    assert is_error
    assert text.startswith(problem)
    assert SECRET not in text


def test_an_archived_workspace_reads_nothing_until_it_is_restored(
    host: str, tokens: Tokens, data: Path
) -> None:
    caller = Caller(host, tokens.create("all", can="admin", workspaces=None, lifetime=None), "a")
    assert opened(caller)[0] is False
    workspaces = open_workspaces(f"{data}/")
    workspaces.archive("a")
    assert opened(caller) == (True, "the workspace 'a' is archived")
    workspaces.restore("a")
    assert opened(caller)[0] is False
    workspaces.close()


def test_a_session_keeps_the_workspace_of_its_first_request(host: str, tokens: Tokens) -> None:
    token = tokens.create("both", can="write", workspaces=["a", "b"], lifetime=None)
    session = Caller(host, token, "a").begin_session()
    session.workspace = ""
    assert f"{SECRET}: a" in opened(session)[1]
    session.workspace = "b"  # a request that names its workspace is answered from there
    assert f"{SECRET}: b" in opened(session)[1]


def test_an_sse_stream_is_bound_by_its_header_and_each_post_by_its_own(
    host: str, tokens: Tokens
) -> None:
    token = tokens.create("both", can="write", workspaces=["a"], lifetime=None)
    authorization = {"Authorization": f"Bearer {token}"}
    stream = HTTPConnection(host, timeout=TIMEOUT_S)
    stream.request("GET", "/sse", headers={**authorization, "X-Memory-Workspace": "a"})
    events = stream.getresponse()
    endpoint = read_event(events)
    assert endpoint.startswith("/sse/messages/?session_id=")

    def post(message: Any, workspace: str) -> Any:
        connection = HTTPConnection(host, timeout=TIMEOUT_S)
        headers = {**authorization, "Content-Type": "application/json"}
        if workspace:
            headers["X-Memory-Workspace"] = workspace
        connection.request("POST", endpoint, json.dumps(message), headers)
        assert connection.getresponse().status == 202
        connection.close()
        return json.loads(read_event(events))["result"]

    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info}
    post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, "a")
    texts = [
        post(call(2, "open_nodes", names=["Ann"]), workspace)["content"][0]["text"]
        for workspace in ("a", "", "b")
    ]
    assert [f"{SECRET}: a" in text for text in texts] == [True, True, False]
    assert texts[2].startswith("the token both may not use the workspace 'b'")
    stream.close()


def read_event(events: Any) -> str:
    """Return the data of the next server-sent event."""
    while True:
        line = events.readline().decode().rstrip("\r\n")
        if line.startswith("data: "):
            return str(line.removeprefix("data: "))


def test_stdio_needs_a_workspace_and_says_how_to_create_one(data: Path) -> None:
    process = Process((*POLYMNIA, f"{data}/", "--dialect", "workspace"), data)
    assert process.wait() == 1
    assert (
        "the workspace dialect needs a workspace: name it with --workspace or POLYMNIA_WORKSPACE"
        in process.stderr
    )
    assert "`polymnia workspace create NAME` creates one" in process.stderr
    process.end()
    process = Process((*POLYMNIA, f"{data}/", "--dialect", "workspace", "--workspace", "c"), data)
    assert process.wait() == 1
    assert "there is no workspace 'c'" in process.stderr
    process.end()


def test_stdio_takes_the_workspace_from_the_environment(data: Path) -> None:
    process = Process(
        (*POLYMNIA, f"{data}/", "--dialect", "workspace"), data, POLYMNIA_WORKSPACE="b"
    )
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    process.ask({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert (
        f"{SECRET}: b"
        in process.ask(call(2, "open_nodes", names=["Ann"]))["result"]["content"][0]["text"]
    )
    process.end()


def test_a_store_that_holds_only_a_graph_is_refused(tmp_path: Path) -> None:
    process = Process(
        (*POLYMNIA, "memory.jsonl", "--dialect", "workspace", "--workspace", "a"), tmp_path
    )
    assert process.wait() == 1
    assert "the workspace dialect cannot use memory.jsonl" in process.stderr
    process.end()


def test_the_defaults_are_the_specification_s_port_and_a_data_directory() -> None:
    settings = load_settings({"dialect": "workspace"}, {})
    assert (settings.address, settings.store) == ("127.0.0.1:8765", "data/")
