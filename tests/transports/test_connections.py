"""Very many connections.

Silent ones are bounded and dropped, health checks always work, and the log stays short.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from polymnia.transports.http.connection import MAX_ANONYMOUS_PER_ADDRESS, MAX_CONNECTIONS
from polymnia.transports.http.serve import _LoopLog
from tests.processes import TIMEOUT_S
from tests.transports.running import Line, Running, Talk, Web, creation, initialize

FEW_DESCRIPTORS_SERVER = "tests.transports.few_descriptors_server"


def connect(port: int, count: int, stack: ExitStack) -> list[socket.socket]:
    """Open connections that say nothing."""
    connections = []
    for _ in range(count):
        connections.append(
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S))
        )
    return connections


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_more_silent_connections_than_allowed_keep_nobody_out(
    tmp_path: Path, stack: ExitStack
) -> None:
    with Running(tmp_path / "memory.db") as server:
        connect(server.port, MAX_CONNECTIONS + 50, stack)
        with Web(server.port) as web:
            assert web.send("GET", "/healthz").status == 200
            assert web.send("GET", "/readyz").status == 200
        talk = Talk(server.port)
        assert not talk.call("create_entities", **creation("x")).get("isError")
        talk.close()


def test_the_oldest_silent_connection_of_an_address_makes_room(
    tmp_path: Path, stack: ExitStack
) -> None:
    with Running(tmp_path / "memory.db") as server:
        used = Talk(server.port)
        first = connect(server.port, MAX_ANONYMOUS_PER_ADDRESS + 1, stack)[0]
        assert first.recv(1) == b""
        assert not used.call("read_graph").get("isError")
        used.close()


@pytest.mark.parametrize(
    ("clients", "is_closed"), [(MAX_ANONYMOUS_PER_ADDRESS + 1, False), (1, True)]
)
def test_connections_of_a_trusted_proxy_count_for_its_clients(
    clients: int, is_closed: bool, tmp_path: Path, stack: ExitStack
) -> None:
    with Running(tmp_path / "memory.db", "--trusted-proxy", "127.0.0.1") as server:
        opened = []
        for number in range(MAX_ANONYMOUS_PER_ADDRESS + 1):
            (connection,) = connect(server.port, 1, stack)
            address = f"198.51.{number % clients // 100}.{number % clients % 100}"
            ask_health(connection, address)
            opened.append(connection)
        first = opened[0]
        if is_closed:
            assert first.recv(1) == b""
        else:
            ask_health(first, "198.51.0.0")


def ask_health(connection: socket.socket, client: str) -> None:
    """Ask as a proxy does in the name of a client, and read the answer."""
    head = f"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: {client}\r\n\r\n"
    connection.sendall(head.encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\nok\n"):
        answer += connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_silent_connection_is_dropped_with_a_408(tmp_path: Path, stack: ExitStack) -> None:
    with Running(tmp_path / "memory.db", program="tests.transports.impatient_server") as server:
        (silent,) = connect(server.port, 1, stack)
        assert silent.recv(100).startswith(b"HTTP/1.1 408")


def test_few_descriptors_bound_the_connections_and_the_log_stays_short(
    tmp_path: Path, stack: ExitStack
) -> None:
    settings = {"POLYMNIA_TEST_DESCRIPTORS": "200"}
    with Running(
        tmp_path / "memory.db", program=FEW_DESCRIPTORS_SERVER, settings=settings
    ) as server:
        connect(server.port, 400, stack)
        with Web(server.port) as web:
            assert web.send("GET", "/healthz").status == 200
            assert web.post(initialize()).status == 200
        assert server.stop() == 0
    assert len(server.log.splitlines()) < 10


def test_a_tcp_server_without_descriptors_tries_again_and_its_log_stays_short(
    tmp_path: Path,
) -> None:
    settings = {"POLYMNIA_TEST_DESCRIPTORS": "60"}
    with Running(
        tmp_path / "memory.db", program=FEW_DESCRIPTORS_SERVER, settings=settings, transport="tcp"
    ) as server:
        with ExitStack() as stack:
            connect(server.port, 100, stack)
            server.wait_for("cannot accept a connection")
        with Line(server.port) as line:
            assert "result" in line.ask(initialize())
        assert server.stop() == 0
    assert len(server.log.splitlines()) < 10


def test_failures_to_accept_are_logged_once_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    log = _LoopLog()
    loop = asyncio.new_event_loop()
    with caplog.at_level(logging.ERROR):
        for _ in range(1000):
            failure = {
                "message": "socket.accept() out of system resource",
                "exception": OSError(24, "Too many"),
            }
            log.handle(loop, failure)
    loop.close()
    assert len(caplog.records) == 1


def test_a_full_tcp_server_drops_silent_clients(tmp_path: Path, stack: ExitStack) -> None:
    with Running(tmp_path / "memory.db", transport="tcp") as server:
        connect(server.port, 260, stack)
        with Line(server.port) as line:
            assert "result" in line.ask(initialize())
