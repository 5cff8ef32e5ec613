"""The server as clients start it.

One process, its standard input and output, its signals and its end.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.groups import mostly_matrix
from tests.transports.process import JSON, POLYMNIA, Process, call, creation, request

GRAPH_URI = "memory://knowledge-graph"
HANDSHAKE = request("hello", "initialize", protocolVersion="2025-11-25")
SUBSCRIPTION = request("tell me", "resources/subscribe", uri=GRAPH_URI)
PREFIX = "io.modelcontextprotocol/"
LISTENING = request(
    "stream",
    "subscriptions/listen",
    notifications={"resourceSubscriptions": [GRAPH_URI]},
    _meta={f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}},
)
NOISY = (sys.executable, str(Path(__file__).with_name("noisy_server.py")))

Start = Callable[..., Process]


needs_posix = pytest.mark.skipif(
    os.name != "posix", reason="signals and terminals are other things here"
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a server; all are gone when the test ends."""
    started: list[Process] = []

    def start(*command: str, **options: Any) -> Process:
        started.append(Process(command or (*POLYMNIA, "memory:"), tmp_path, **options))
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.fixture
def server(start: Start) -> Process:
    return start()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def ids(replies: list[JSON]) -> list[Any]:
    return [reply["id"] for reply in replies]


def names(database: Path) -> list[str]:
    """The entities on disk."""
    connection = apsw.Connection(str(database))
    try:
        return [
            name
            for (name,) in connection.execute(
                "SELECT name FROM cards WHERE until IS NULL ORDER BY id"
            )
        ]
    finally:
        connection.close()


def test_requests_sent_at_once_are_answered_in_order(server: Process) -> None:
    server.send(*[request(number, "ping" if number % 3 else "tools/list") for number in range(100)])
    server.end_input()
    assert ids(server.rest()) == list(range(100))


def test_a_reply_comes_before_more_is_sent(server: Process) -> None:
    for number in range(3):
        assert server.ask(request(number)) == {"jsonrpc": "2.0", "id": number, "result": {}}


def test_a_message_may_come_byte_by_byte(server: Process) -> None:
    server.ask(request("first"))
    for byte in b'{"jsonrpc":"2.0","id":"slow","method":"ping"}\n':
        server.send(bytes([byte]))
    assert server.receive()["id"] == "slow"


@pytest.mark.parametrize("blank", [b"\n", b"\n\n\n", b"  \n", b"\t\r\n"])
def test_blank_lines_are_ignored(server: Process, blank: bytes) -> None:
    server.send(blank, request(1), blank, request(2), blank)
    server.end_input()
    assert sorted(ids(server.rest())) == [1, 2]


def test_lines_may_end_as_on_windows(server: Process) -> None:
    server.send(
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n{"jsonrpc":"2.0","id":2,"method":"ping"}\r\n'
    )
    assert [server.receive()["id"], server.receive()["id"]] == [1, 2]


def test_after_nonsense_the_next_request_is_answered(server: Process) -> None:
    for nonsense in (b"hello", b"\xff\xfe", b'{"jsonrpc":"2.0","id":NaN}', b"\x00", b"[[[["):
        server.send(nonsense + b"\n", request(1))
        assert "error" in server.receive()
        assert server.receive()["id"] == 1


@pytest.mark.parametrize("length", mostly_matrix([100_000, 1_000_000, 8_000_000], [1_000_000]))
def test_a_long_message_is_stored_and_returned(server: Process, length: int) -> None:
    # One fact has at most a million bytes.
    texts = ["é" * 49_999 + str(number) for number in range(length // 100_000)]
    entity = {"name": "Ada", "entityType": "person", "observations": texts}
    server.ask(call(1, "create_entities", entities=[entity]))
    reply = server.ask(call(2, "open_nodes", names=["Ada"]))
    assert reply["result"]["structuredContent"]["entities"] == [entity]


def padded(identifier: int, length: int) -> bytes:
    """A request as a line of exactly `length` bytes."""
    return (b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % identifier).ljust(length) + b"\n"


@pytest.mark.parametrize("length", [201, 5_000, 300_000])
def test_a_line_beyond_the_limit_is_refused_and_the_next_is_answered(
    start: Start, length: int
) -> None:
    server = start(POLYMNIA_MAX_MESSAGE_BYTES="200")
    server.send(padded(1, 200), padded(2, length), padded(3, 200))
    first, second, third = server.receive(), server.receive(), server.receive()
    assert (first["id"], second["id"], third["id"]) == (1, None, 3)
    assert second["error"]["code"] == -32600
    assert "200 bytes" in second["error"]["message"]


def test_input_that_ends_within_a_line_beyond_the_limit_is_refused(start: Start) -> None:
    server = start(POLYMNIA_MAX_MESSAGE_BYTES="200")
    server.send(b"x" * 1000)
    server.end_input()
    (reply,) = server.rest()
    assert (reply["id"], server.wait()) == (None, 0)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_at_the_end_of_input_what_was_read_is_answered(
    start: Start, database: Path, count: int
) -> None:
    server = start(*POLYMNIA, str(database))
    server.send(*[creation(number, f"entity {number}") for number in range(count)])
    server.end_input()
    assert ids(server.rest()) == list(range(count))
    assert (server.wait(), server.stderr) == (0, "")
    assert names(database) == [f"entity {number}" for number in range(count)]


def test_a_last_line_without_a_newline_is_answered(server: Process) -> None:
    server.send(request(1), b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    server.end_input()
    assert (ids(server.rest()), server.wait()) == ([1, 2], 0)


def test_at_the_end_of_input_open_streams_are_answered(server: Process) -> None:
    server.ask(LISTENING)
    server.end_input()
    (reply,) = server.rest()
    assert (reply["id"], reply["result"]["_meta"][f"{PREFIX}subscriptionId"]) == (
        "stream",
        "stream",
    )


STOPS = [pytest.param(number, id=number.name) for number in (signal.SIGTERM, signal.SIGINT)]


@needs_posix
@pytest.mark.parametrize("number", STOPS)
def test_a_signal_ends_an_idle_server(server: Process, number: signal.Signals) -> None:
    server.ask(request(1))
    server.popen.send_signal(number)
    assert (server.rest(), server.wait(), server.stderr) == ([], 0, "")


@needs_posix
@pytest.mark.parametrize("number", STOPS)
def test_after_a_signal_what_was_read_is_still_answered(
    start: Start, database: Path, number: signal.Signals
) -> None:
    server = start(*POLYMNIA, str(database))
    server.ask(request("ready"))
    blocker = apsw.Connection(str(database))
    blocker.execute("BEGIN IMMEDIATE")
    server.send(request("read"), creation("in hand", "Ada"), creation("behind", "Bob"))
    assert server.receive()["id"] == "read"
    server.popen.send_signal(number)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert ids(server.rest()) == ["in hand", "behind"]
    assert (server.wait(), server.stderr) == (0, "")
    assert names(database) == ["Ada", "Bob"]


@needs_posix
def test_signals_may_come_again_and_again(server: Process) -> None:
    server.ask(request(1))
    for _ in range(5):
        server.popen.send_signal(signal.SIGTERM)
        server.popen.send_signal(signal.SIGINT)
    assert (server.wait(), server.stderr) == (0, "")


def test_a_client_that_stopped_listening_ends_the_server_quietly(server: Process) -> None:
    server.ask(request(1))
    server.stop_listening()
    server.send(request(2))
    assert (server.wait(), server.stderr) == (0, "")


@pytest.mark.parametrize(
    "wish", [[HANDSHAKE, SUBSCRIPTION], [LISTENING]], ids=["subscription", "stream"]
)
def test_a_subscriber_that_stopped_listening_ends_the_server_quietly(
    start: Start, database: Path, wish: list[JSON]
) -> None:
    server = start(*POLYMNIA, str(database))
    for message in wish:
        server.ask(message)
    server.stop_listening()
    server.send(creation(2, "Ada"))
    assert (server.wait(), server.stderr) == (0, "")
    assert names(database) == ["Ada"]


def test_a_client_that_has_ended_stops_the_server_quietly(server: Process) -> None:
    server.ask(request(1))
    server.send(request(2))
    server.stop_listening()
    server.end_input()
    assert (server.wait(), server.stderr) == (0, "")


@needs_posix
def test_a_client_on_a_socket_that_leaves_replies_unread_ends_the_server_quietly(
    start: Start,
) -> None:
    ours, theirs = socket.socketpair()
    server = start(stdin=theirs.fileno(), stdout=theirs.fileno())
    theirs.close()
    with ours:
        ours.sendall(padded(1, 100))
        ours.recv(1, socket.MSG_PEEK)
    assert (server.wait(), server.stderr) == (0, "")


@needs_posix
def test_a_non_blocking_output_gets_everything(start: Start) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    server = start(stdout=theirs)
    os.close(theirs)
    server.send(*[request(number, "tools/list") for number in range(100)])
    server.end_input()
    with open(ours, "rb") as output:  # noqa: PTH123 - a descriptor has no path
        assert [json.loads(line)["id"] for line in output] == list(range(100))
    assert (server.wait(), server.stderr) == (0, "")


def test_a_notification_precedes_the_reply_of_the_call_that_caused_it(server: Process) -> None:
    server.ask(HANDSHAKE)
    server.ask(SUBSCRIPTION)
    server.send(creation(2, "Ada"))
    told, reply = server.receive(), server.receive()
    assert (told["method"], told["params"]) == (
        "notifications/resources/updated",
        {"uri": GRAPH_URI},
    )
    assert reply["id"] == 2


@pytest.mark.parametrize("tool", ["printing", "flushing", "descending", "delegating", "logging_"])
def test_whatever_a_tool_writes_to_standard_output_is_not_the_clients(
    start: Start, tool: str
) -> None:
    server = start(*NOISY)
    server.send(call(1, tool), request(2))
    server.end_input()
    assert sorted(ids(server.rest())) == [1, 2]
    assert server.wait() == 0
    assert f"noise from {tool}" in server.stderr


@needs_posix
def test_on_a_terminal_a_greeting_is_printed(start: Start) -> None:
    master, terminal = os.openpty()
    server = start(stdin=terminal)
    os.close(terminal)
    os.write(master, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert server.receive()["id"] == 1
    os.write(master, b"\x04")
    assert server.wait() == 0
    os.close(master)
    assert "polymnia speaks MCP (reference dialect)" in server.stderr
    assert "memory:" in server.stderr


def test_without_a_terminal_no_greeting_is_printed(server: Process) -> None:
    server.ask(request(1))
    server.end_input()
    assert (server.wait(), server.stderr) == (0, "")
