"""Very many sessions and slow readers of one client cost little and push no other client out."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from polymnia.auth.tokens import file_tokens
from tests.processes import TIMEOUT_S
from tests.transports.raw_http import head, resident, status_of, wait_until
from tests.transports.running import (
    Legacy,
    Running,
    Talk,
    Web,
    call,
    creation,
    initialize,
    listening,
    rest_of,
)

# Fewer than the default of 10,000; the server's bound is set to match.
SESSIONS = 500
LARGE = "x" * 1000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """A server with few sessions and short timeouts."""
    few = {"POLYMNIA_MAX_SESSIONS": str(SESSIONS)}
    with Running(
        tmp_path / "memory.db",
        "--metrics",
        program="tests.transports.impatient_server",
        settings=few,
    ) as running:
        yield running
        assert "Traceback" not in running.log
        assert running.stop() == 0


def test_a_client_that_opens_very_many_sessions_pushes_out_only_its_own(
    server: Running, tmp_path: Path
) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    quiet = Talk(server.port, tokens.create("quiet", can="write"))
    with Web(server.port, tokens.create("greedy", can="write")) as greedy:
        statuses = [greedy.post(initialize()).status for _ in range(3 * SESSIONS)]
    assert set(statuses) <= {200, 503}
    assert not quiet.call("read_graph").get("isError")
    late = Talk(server.port, tokens.create("late", can="write"))
    assert late.greeting.status == 200
    assert not late.call("read_graph").get("isError")
    wait_until(server.port, lambda metrics: f"polymnia_sessions {SESSIONS}\n" in metrics)
    quiet.close()
    late.close()


def test_without_tokens_a_session_in_use_outlives_very_many_that_are_not(server: Running) -> None:
    used = Talk(server.port)
    for _ in range(3):
        used.call("read_graph")
    with Web(server.port) as greedy:
        for _ in range(3 * SESSIONS):
            greedy.post(initialize())
    assert not used.call("read_graph").get("isError")
    assert Talk(server.port).greeting.status == 200
    used.close()


def test_when_every_session_is_in_use_a_newcomer_is_told_when_to_retry(tmp_path: Path) -> None:
    with (
        Running(tmp_path / "memory.db", settings={"POLYMNIA_MAX_SESSIONS": "2"}) as server,
        ExitStack() as streams,
    ):
        talks = [Talk(server.port) for _ in range(2)]
        for talk in talks:
            streams.enter_context(listening(talk))
        with Web(server.port) as web:
            answer = web.post(initialize())
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "sessions are in use" in answer.json["error"]["message"]
        for talk in talks:
            assert not talk.call("read_graph").get("isError")
            talk.close()


def test_an_ended_session_makes_room(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", settings={"POLYMNIA_MAX_SESSIONS": "1"}) as server:
        for _ in range(5):
            talk = Talk(server.port)
            assert talk.greeting.status == 200
            assert talk.send("DELETE", "/mcp").status == 204
            assert talk.post(call("read_graph")).status == 404
            talk.close()


def test_many_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server, ExitStack() as idle:
        for _ in range(500):
            idle.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S)
            )
        talk = Talk(server.port)
        assert not talk.call("create_entities", **creation("x")).get("isError")
        talk.close()
        assert server.stop() == 0


def fill(port: int, megabytes: int) -> Talk:
    """A session in a memory of that size."""
    talk = Talk(port)
    for part in range(megabytes):
        talk.call(
            "create_entities",
            **creation(*(f"{part}-{number}" for number in range(900)), text=LARGE),
        )
    return talk


def slow_reader(port: int, session: str) -> socket.socket:
    """A client that asks for everything and reads next to nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(TIMEOUT_S)
    connection.connect(("127.0.0.1", port))
    body = json.dumps(call("read_graph")).encode()
    connection.sendall(
        head("/mcp", f"Mcp-Session-Id: {session}", f"Content-Length: {len(body)}") + body
    )
    return connection


def test_a_client_that_does_not_read_is_disconnected_and_delays_nobody(server: Running) -> None:
    talk = fill(server.port, 8)
    before = resident(server.popen.pid)
    with ExitStack() as stack:
        slow = [stack.enter_context(slow_reader(server.port, talk.id)) for _ in range(10)]
        for item in slow:
            assert status_of(item.recv(100)) == 200
        for _ in range(20):
            assert not talk.call("open_nodes", names=["0-1"]).get("isError")
        wait_until(server.port, lambda metrics: "polymnia_http_requests_open 0\n" in metrics)
        cut = [len(rest_of(item)) for item in slow]
    whole = len(json.dumps(talk.call("read_graph")))
    assert all(size < whole for size in cut)
    assert resident(server.popen.pid) - before < 500 << 20
    talk.close()


def test_a_stream_that_is_not_read_is_disconnected(server: Running) -> None:
    talk = fill(server.port, 4)
    legacy = Legacy(server.port)
    legacy.ask(initialize())
    for number in range(20):
        assert legacy.post(call("read_graph", number)).status in (202, 429, 404)
    assert not talk.call("open_nodes", names=["0-1"]).get("isError")
    # The SSE session ends with its stream, so only the other client's is left.
    wait_until(server.port, lambda metrics: "polymnia_sessions 1\n" in metrics)
    assert not talk.call("open_nodes", names=["0-1"]).get("isError")
    legacy.close()
    talk.close()
