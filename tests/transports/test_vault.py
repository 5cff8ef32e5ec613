"""Sessions of real vault servers.

Named by variables and requests, ended in every way a process can end.
"""

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import apsw
import pytest

from polymnia.dialects.base import Client as Caller
from polymnia.transports.http.sessions import HttpSessions
from tests.dialects.vault import vault_server
from tests.transports.process import POLYMNIA, Process, call, request
from tests.transports.web import Web

JSON = dict[str, Any]
VAULT = (*POLYMNIA[:-1], "--dialect", "vault")

Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers in the test's directory, and ends them with the test."""
    started: list[Process] = []

    def starting(*flags: str, **variables: str) -> Process:
        started.append(Process((*VAULT, *flags), tmp_path, stdin=PIPE, stdout=PIPE, **variables))
        return started[-1]

    yield starting
    for item in started:
        item.end()


@pytest.fixture
def notes(tmp_path: Path) -> Callable[[], list[tuple[Any, ...]]]:
    """Looks into the default file from outside."""

    def look() -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(tmp_path / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            vault = connection.execute("SELECT '', key FROM notes WHERE until IS NULL").fetchall()
            return sorted([*vault, *connection.execute("SELECT session, key FROM session_notes")])
        finally:
            connection.close()

    return look


Notes = Callable[[], list[tuple[Any, ...]]]


def commit(identifier: int, key: str, scope: str = "session") -> JSON:
    return call(identifier, "commit_memory", scope=scope, key=key, content="some word")


def greet(process: Process) -> JSON:
    info = {"name": "test", "version": "1"}
    return process.ask(
        request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    )


def write_both(process: Process) -> None:
    """A memory in each scope, even if the server sends other messages meanwhile."""
    assert "error" not in process.ask(commit(1, "mine"))
    assert "error" not in process.ask(commit(2, "lasting", "vault"))


def test_the_session_comes_from_its_variable_and_the_file_has_its_default_name(
    start: Start, notes: Notes
) -> None:
    write_both(start(MEMORY_MCP_SESSION_ID="named"))
    assert notes() == [("", "lasting"), ("named", "mine")]


def test_the_file_comes_from_its_variable(start: Start, tmp_path: Path) -> None:
    write_both(start(MEMORY_MCP_DB_PATH=str(tmp_path / "elsewhere.data")))
    assert (tmp_path / "elsewhere.data").exists()
    assert not (tmp_path / "memory.db").exists()


def test_a_session_ends_with_the_input(start: Start, notes: Notes) -> None:
    process = start()
    write_both(process)
    process.end_input()
    assert process.wait() == 0
    assert notes() == [("", "lasting")]


def test_a_session_ends_with_a_client_that_no_longer_listens(start: Start, notes: Notes) -> None:
    process = start()
    write_both(process)
    process.stop_listening()
    process.send(request(3))
    process.wait()
    assert notes() == [("", "lasting")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_session_ends_with_a_signal(start: Start, notes: Notes, number: signal.Signals) -> None:
    process = start()
    write_both(process)
    process.popen.send_signal(number)
    process.wait()
    assert notes() == [("", "lasting")]


def test_a_session_may_be_kept_by_its_variable(start: Start, notes: Notes) -> None:
    process = start(MEMORY_MCP_SESSION_ID="named", MEMORY_MCP_SESSION_PERSIST="true")
    write_both(process)
    process.end_input()
    process.wait()
    greet(start(MEMORY_MCP_SESSION_PERSIST="true"))
    assert notes() == [("", "lasting"), ("named", "mine")]


def test_what_a_killed_server_left_goes_at_the_next_start(
    start: Start, notes: Notes, tmp_path: Path
) -> None:
    process = start(MEMORY_MCP_SESSION_ID="named")
    write_both(process)
    process.popen.kill()
    process.wait()
    assert notes() == [("", "lasting"), ("named", "mine")]
    greet(start(MEMORY_MCP_SESSION_ID="named"))
    assert notes() == [("", "lasting")]
    assert list(tmp_path.glob("*-server-*")) == []


def test_a_start_leaves_the_sessions_of_a_running_server_alone(start: Start, notes: Notes) -> None:
    killed, running = start(MEMORY_MCP_SESSION_ID="killed"), start(MEMORY_MCP_SESSION_ID="running")
    for process in (killed, running):
        write_both(process)
    killed.popen.kill()
    killed.wait()
    greet(start())
    assert notes() == [("", "lasting"), ("running", "mine")]
    assert "error" not in running.ask(commit(3, "more"))
    assert notes() == [("", "lasting"), ("running", "mine"), ("running", "more")]


def test_a_session_that_two_servers_use_goes_with_the_last(start: Start, notes: Notes) -> None:
    first, second = start(MEMORY_MCP_SESSION_ID="shared"), start(MEMORY_MCP_SESSION_ID="shared")
    assert "error" not in first.ask(commit(1, "a"))
    assert "error" not in second.ask(commit(1, "b"))
    first.end_input()
    first.wait()
    assert notes() == [("shared", "a"), ("shared", "b")]
    second.end_input()
    second.wait()
    assert notes() == []


def test_vectors_that_another_process_writes_are_found_at_once(start: Start) -> None:
    one, two = (start(POLYMNIA_EMBEDDING_DIMENSION="3") for _ in range(2))
    search = call(9, "search_memories", query="zzz", query_embedding=[1, 0, 0])

    def found(process: Process) -> list[str]:
        return [
            result["key"]
            for result in process.ask(search)["result"]["structuredContent"]["results"]
        ]

    for number, (writer, key) in enumerate([(one, "a"), (two, "b"), (one, "c")]):
        vector = [1, number / 10, 0]
        writer.ask(call(1, "commit_memory", scope="vault", key=key, content="x", embedding=vector))
        assert found(one) == found(two) == ["a", "b", "c"][: number + 1]
    one.ask(call(1, "prune_memory", scope="vault", key="a"))
    assert found(two) == ["b", "c"]


def test_a_file_store_is_refused_with_a_sentence(start: Start) -> None:
    process = start("--store", "memory.jsonl")
    assert process.wait() == 1
    assert "the vault dialect keeps notes, and memory.jsonl cannot hold notes" in process.stderr


def test_the_length_of_embeddings_is_a_setting(start: Start) -> None:
    process = start(POLYMNIA_EMBEDDING_DIMENSION="2")
    reply = process.ask(
        call(1, "commit_memory", scope="vault", key="k", content="c", embedding=[1, 2, 3])
    )
    assert reply["result"]["content"][0]["text"] == "embedding: expected 2 numbers, got 3"


def test_by_default_embeddings_have_1536_numbers(start: Start) -> None:
    process = start()
    whole = call(1, "commit_memory", scope="vault", key="k", content="c", embedding=[0.5] * 1536)
    assert process.ask(whole)["result"]["structuredContent"]["committed"] is True
    short = call(2, "commit_memory", scope="vault", key="k", content="c", embedding=[0.5] * 1535)
    assert (
        process.ask(short)["result"]["content"][0]["text"]
        == "embedding: expected 1536 numbers, got 1535"
    )


@pytest.fixture
def web(start: Start) -> Web:
    return Web(start("--transport", "http", "--port", "0"))


def test_over_http_the_session_is_that_of_the_protocol(web: Web, notes: Notes) -> None:
    client = web.client()
    client.commit("mine", "session")
    assert notes() == [(client.session, "mine")]


def test_over_http_a_client_may_name_its_session_in_initialize(web: Web, notes: Notes) -> None:
    web.client(extra={"sessionId": "sess_abc123"}).commit("mine", "session")
    assert notes() == [("sess_abc123", "mine")]


def test_over_http_a_session_ends_with_delete(web: Web, notes: Notes) -> None:
    client, other = web.client(), web.client()
    client.commit("mine", "session")
    client.commit("lasting", "vault")
    other.commit("theirs", "session")
    assert client.delete() == 204
    assert notes() == [("", "lasting"), (other.session, "theirs")]


def test_over_http_sessions_end_with_a_signal(web: Web, notes: Notes) -> None:
    web.client().commit("mine", "session")
    web.client().commit("lasting", "vault")
    web.stateless(session="named").commit("theirs", "session")
    web.process.popen.terminate()
    assert web.process.wait() == 0
    assert notes() == [("", "lasting")]


def test_over_http_a_stateless_client_names_its_session_with_each_request(
    web: Web, notes: Notes
) -> None:
    named, other, unnamed = (
        web.stateless(session="named"),
        web.stateless(session="other"),
        web.stateless(),
    )
    named.commit("mine", "session")
    assert notes() == [("named", "mine")]
    assert named.found("word") == ["mine"]
    assert other.found("word") == unnamed.found("word") == []
    refusal = unnamed.call("commit_memory", scope="session", key="k", content="c")
    assert refusal["isError"] and "polymnia/sessionId" in refusal["content"][0]["text"]


def test_over_http_a_session_belongs_to_its_token(
    start: Start, tmp_path: Path, notes: Notes
) -> None:
    tokens = {
        name: web_token(tmp_path, name, can)
        for name, can in (("ann", "write"), ("ben", "write"), ("eve", "read"))
    }
    web = Web(start("--transport", "http", "--port", "0"))
    ann, ben, eve = (
        web.client(token=tokens[name], extra={"sessionId": "same"})
        for name in ("ann", "ben", "eve")
    )
    ann.commit("mine", "session")
    ann.commit("lasting", "vault")
    assert ann.found("word") == ["mine", "lasting"]
    assert ben.found("word") == eve.found("word") == ["lasting"]
    assert (
        ben.ask("resources/read", uri="memory://session/same")["result"]["contents"][0]["text"]
        == "[]"
    )
    assert web.stateless(session="same", token=tokens["ben"]).found("word") == ["lasting"]
    assert [tool["name"] for tool in eve.ask("tools/list")["result"]["tools"]] == [
        "search_memories"
    ]
    assert eve.call("commit_memory", scope="session", key="k", content="c")["isError"]
    ben.delete()
    assert notes() == [("", "lasting"), ("same", "mine")]


def test_a_read_only_server_offers_search_and_resources(start: Start) -> None:
    process = start()
    write_both(process)
    web = Web(start("--transport", "http", "--port", "0", "--read-only"))
    client = web.client()
    assert [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]] == [
        "search_memories"
    ]
    assert client.found("word") == ["lasting"]
    assert client.call("prune_memory", scope="vault", key="lasting")["isError"]


def test_over_http_an_idle_session_ends(tmp_path: Path, notes: Notes) -> None:
    server, store = vault_server(str(tmp_path / "memory.db"))
    message = json.dumps(commit(1, "mine")).encode()

    async def rest_too_long() -> tuple[int, int]:
        sessions = HttpSessions(limit=10, idle_s=-1)
        opened = sessions.open(server, Caller(workspace="default"))
        opened.session.handle(message)
        before = len(notes())
        sessions.expire()
        return before, len(notes())

    assert asyncio.run(rest_too_long()) == (1, 0)
    store.close()


def web_token(directory: Path, name: str, can: str) -> str:
    """A token for the default file, as the command prints it."""
    command = (*POLYMNIA[:3], "token", "create", name, "--can", can, "--store", "memory.db")
    made = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    (token,) = re.findall(r"^(\S{30,})$", made.stdout, re.MULTILINE)
    return str(token)
