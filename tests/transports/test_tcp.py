"""TCP with the real process.

Many clients at once, slow ones among them, and the same replies as over stdio.
"""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command

COMMAND = polymnia_command("serve", "--dialect", "graph", "--store")


class Peer:
    """A client on a socket."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._lines = self.socket.makefile("rb")

    def send(self, message: object) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> Any:
        return json.loads(self._lines.readline())

    def ask(self, number: int, tool: str, arguments: object) -> Any:
        self.send(call(number, tool, arguments))
        return self.receive()

    def close(self) -> None:
        self._lines.close()
        self.socket.close()


def call(number: int, tool: str, arguments: object) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def start(store: Path, **environment: str) -> tuple[subprocess.Popen[str], int]:
    arguments = [*COMMAND, str(store), "--transport", "tcp", "--bind", "127.0.0.1:0"]
    server = subprocess.Popen(
        arguments,
        stderr=subprocess.PIPE,
        text=True,
        env=environment or None,
        preexec_fn=end_with_parent,
    )
    assert server.stderr is not None
    said = server.stderr.readline()
    found = re.search(r"listening on 127\.0\.0\.1:(\d+)", said)
    assert found, said
    return server, int(found[1])


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    server, port = start(tmp_path / "memory.db")
    yield port
    server.send_signal(signal.SIGTERM)
    assert server.wait(TIMEOUT_S) == 0
    assert server.stderr is not None
    server.stderr.close()


def conversation(prefix: str) -> list[dict[str, Any]]:
    entity = {"name": prefix, "entityType": "x", "observations": ["one", "two"]}
    return [
        call(1, "create_entities", {"entities": [entity]}),
        call(
            2,
            "create_relations",
            {"relations": [{"from": prefix, "to": prefix + "'", "relationType": "r"}]},
        ),
        call(3, "describe_entity", {"name": prefix}),
        call(4, "search_nodes", {"query": prefix}),
        call(5, "get_entity", {"name": "nobody"}),
        {"jsonrpc": "2.0", "id": 6, "method": "nonsense"},
        call(7, "delete_entities", {"entityNames": [prefix]}),
    ]


def over_tcp(port: int, messages: list[dict[str, Any]]) -> list[Any]:
    peer = Peer(port)
    try:
        replies = []
        for message in messages:
            peer.send(message)
            replies.append(peer.receive())
        return replies
    finally:
        peer.close()


def over_stdio(store: Path, messages: list[dict[str, Any]]) -> list[Any]:
    text = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run(
        [*COMMAND, str(store)],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.matrix
def test_fifty_clients_at_once_hear_what_stdio_would_say(port: int, tmp_path: Path) -> None:
    conversations = [conversation(f"client-{number:02}") for number in range(50)]
    with ThreadPoolExecutor(50) as pool:
        heard = list(pool.map(lambda messages: over_tcp(port, messages), conversations))
    spoken = [message for messages in conversations for message in messages]
    expected = over_stdio(tmp_path / "other.db", spoken)
    assert [reply for replies in heard for reply in replies] == expected


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    peer = Peer(port)
    for number in range(100):
        peer.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
    assert [peer.receive()["id"] for _ in range(100)] == list(range(100))
    peer.close()


def test_a_client_that_reads_nothing_delays_nobody(port: int) -> None:
    fast, slow = Peer(port), Peer(port)
    entities = [
        {"name": f"e{number}", "entityType": "x", "observations": ["y" * 1000]}
        for number in range(500)
    ]
    fast.ask(1, "create_entities", {"entities": entities})
    for number in range(100):
        slow.send(call(number, "read_graph", {}))
    assert fast.ask(2, "get_entity", {"name": "e1"})["id"] == 2
    fast.close()
    slow.close()


def test_a_client_that_sends_half_a_message_delays_nobody(port: int) -> None:
    silent, other = Peer(port), Peer(port)
    silent.socket.sendall(b'{"jsonrpc":"2.0","id":1,')
    other.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert other.receive()["id"] == 2
    silent.socket.sendall(b'"method":"ping"}\n')
    assert silent.receive()["id"] == 1
    silent.close()
    other.close()


def test_a_message_that_is_too_long_is_answered_and_the_next_one_works(tmp_path: Path) -> None:
    server, port = start(tmp_path / "memory.db", POLYMNIA_MAX_MESSAGE_BYTES="1000", PATH="")
    peer = Peer(port)
    peer.socket.sendall(b" " * 5000 + b"\n")
    assert "at most 1000 bytes" in peer.receive()["error"]["message"]
    peer.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert peer.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    peer.close()
    server.terminate()
    assert server.wait(TIMEOUT_S) == 0
    assert server.stderr is not None
    server.stderr.close()


def test_a_client_that_disconnects_early_affects_nobody_else(port: int) -> None:
    for _ in range(20):
        peer = Peer(port)
        peer.send(call(1, "read_graph", {}))
        peer.close()
    other = Peer(port)
    other.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert other.receive()["id"] == 2
    other.close()


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_binding_to_other_machines_needs_a_flag(bind: str, tmp_path: Path) -> None:
    arguments = [*COMMAND, str(tmp_path / "m.db"), "--transport", "tcp", "--bind", bind]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    assert "--insecure" in done.stderr
