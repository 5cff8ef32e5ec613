"""Clients and servers that stop in the middle.

Running requests finish, and a write is whole or absent.
"""

import json
import signal
import socket
from pathlib import Path

import pytest

from polymnia.stores.sqlite.store import SqliteStore
from tests.processes import TIMEOUT_S
from tests.transports.raw_http import head, status_of, wait_until
from tests.transports.running import (
    Events,
    Legacy,
    Line,
    Running,
    Talk,
    Web,
    call,
    creation,
    initialize,
    listening,
    request,
    rest_of,
    stateless,
)

WRITTEN_ENTITIES = 20_000
LISTEN = request(
    "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://knowledge-graph"]}
)
GRAPH = "memory://knowledge-graph"


def large_write() -> bytes:
    return json.dumps(
        call(
            "create_entities",
            **creation(*(f"e{number}" for number in range(WRITTEN_ENTITIES)), text="x"),
        )
    ).encode()


def begin_large_write(server: Running, talk: Talk) -> socket.socket:
    """A connection with a long write under way."""
    body = large_write()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=2 * TIMEOUT_S)
    connection.sendall(
        head("/mcp", f"Mcp-Session-Id: {talk.id}", f"Content-Length: {len(body)}") + body
    )
    wait_until(server.port, lambda metrics: "polymnia_requests_running 1" in metrics)
    return connection


def entities(store: Path) -> int:
    opened = SqliteStore(str(store))
    with opened.reading() as read:
        count = read.counts().entities
    opened.close()
    return count


def test_a_write_whose_client_leaves_is_whole_or_absent(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        talk = Talk(server.port)
        begin_large_write(server, talk).close()
        wait_until(server.port, lambda metrics: "polymnia_requests_running 0" in metrics)
        graph = talk.call("read_graph")["structuredContent"]
        assert len(graph["entities"]) in (0, WRITTEN_ENTITIES)
        assert not talk.call("create_entities", **creation("after")).get("isError")
        talk.close()


def test_a_stopping_server_finishes_the_running_requests(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--metrics") as server:
        talk = Talk(server.port)
        connection = begin_large_write(server, talk)
        server.popen.send_signal(signal.SIGTERM)
        answer = rest_of(connection)
        connection.close()
        talk.close()
        assert server.wait() == 0
    assert status_of(answer) == 200
    assert answer.count(b"entityType") >= WRITTEN_ENTITIES
    assert entities(tmp_path / "memory.db") == WRITTEN_ENTITIES
    assert "requests were running" not in server.log


def test_a_stopping_server_ends_every_stream_with_its_last_messages(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk, web = Talk(server.port), Web(server.port)
        message, headers = stateless(LISTEN)
        with listening(talk) as session_events, Legacy(server.port) as legacy:
            listen_events = Events(
                web.open("POST", "/mcp", json.dumps(message).encode(), **headers)
            )
            assert listen_events.message()["method"] == "notifications/subscriptions/acknowledged"
            server.popen.send_signal(signal.SIGTERM)
            assert session_events.next() is None
            assert legacy.events.next() is None
            assert listen_events.message()["result"]["resultType"] == "complete"
            assert listen_events.next() is None
        web.close()
        talk.close()
        assert server.wait() == 0


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_idle_and_unfinished_connections_do_not_delay_stopping(
    tmp_path: Path, transport: str
) -> None:
    with Running(tmp_path / "memory.db", transport=transport) as server:
        idle = [
            socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S)
            for _ in range(20)
        ]
        for item in idle[:10]:
            item.sendall(b"POST /mcp HTT" if transport == "http" else b'{"jsonrpc"')
        assert server.stop() == 0
        for item in idle:
            item.close()


def test_a_client_that_does_not_read_does_not_delay_stopping(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk = Talk(server.port)
        for part in range(8):
            talk.call(
                "create_entities",
                **creation(*(f"{part}-{number}" for number in range(900)), text="x" * 1000),
            )
        body = json.dumps(call("read_graph")).encode()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(TIMEOUT_S)
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(
                head("/mcp", f"Mcp-Session-Id: {talk.id}", f"Content-Length: {len(body)}") + body
            )
            assert status_of(slow.recv(100)) == 200
            talk.close()
            assert server.stop() == 0


def test_a_stopping_tcp_server_finishes_the_running_requests(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", transport="tcp") as server:
        with Line(server.port) as line:
            line.ask(initialize())
            line.socket.sendall(large_write() + b"\n")
            line.socket.sendall(b"")
            with Line(server.port) as other:
                other.ask(initialize())  # the first message is being read by now
            server.popen.send_signal(signal.SIGTERM)
            reply = line.hear()
        assert server.wait() == 0
    assert entities(tmp_path / "memory.db") == (WRITTEN_ENTITIES if reply is not None else 0)
