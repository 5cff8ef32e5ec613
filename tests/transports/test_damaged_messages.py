"""Messages with damaged bytes over every transport: the server goes on and logs no traceback."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from polymnia.dialects.registry import open_dialect
from tests.mcp.mutations import damaged_messages
from tests.transports.process import POLYMNIA, Process
from tests.transports.running import Line, Running, Talk, initialize

MESSAGES = 400
# Parameters that do not fit beside a byte that is not UTF-8, and a number beyond a double.
KNOWN = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1,"x":"\xff"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open_nodes","arguments":{"names":1e999}}}',
]
ALIVE = {"jsonrpc": "2.0", "id": "alive", "method": "ping"}


@pytest.fixture
def messages() -> Iterator[bytes]:
    return iter([*KNOWN, *islice(damaged_messages(open_dialect("reference"), seed=29), MESSAGES)])


def send_all(
    messages: Iterator[bytes], send: Callable[[bytes], object], hear: Callable[[], object]
) -> None:
    """Send every message and a ping behind it, and wait for the reply to the ping."""
    for message in messages:
        send(message + b"\n" + json.dumps(ALIVE).encode() + b"\n")
        reply: object = {}
        while not (isinstance(reply, dict) and reply.get("id") == "alive"):
            reply = hear()
            assert reply is not None, message


def test_damaged_messages_over_stdio(messages: Iterator[bytes], tmp_path: Path) -> None:
    process = Process([*POLYMNIA, str(tmp_path / "memory.db")], tmp_path)
    try:
        process.ask(initialize())
        send_all(messages, process.send, process.receive)
        process.end_input()
        assert process.wait() == 0
        assert "Traceback" not in process.stderr
    finally:
        process.end()


def test_damaged_messages_over_tcp(messages: Iterator[bytes], tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", transport="tcp") as server:
        with Line(server.port) as line:
            send_all(messages, line.socket.sendall, line.hear)
        assert server.stop() == 0
        assert "Traceback" not in server.log


def test_damaged_messages_over_http(messages: Iterator[bytes], tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db") as server:
        talk = Talk(server.port)
        for message in messages:
            assert talk.send("POST", "/mcp", message).status < 500, message
        talk.close()
        assert server.stop() == 0
        assert "Traceback" not in server.log
