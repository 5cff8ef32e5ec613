"""While a call takes long over stdio.

Pings and cancellations are handled, other calls wait their turn.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores.open import open_store
from tests.mcp.raw import cancellation
from tests.processes import polymnia_command
from tests.transports.process import Process, call, request

WAITING = (sys.executable, str(Path(__file__).with_name("waiting_server.py")))
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    process = Process(WAITING, tmp_path)
    yield process
    process.end()


def test_a_ping_is_answered_while_a_call_runs(server: Process) -> None:
    server.send(call(1, "wait"), request(2))
    assert server.receive()["id"] == 2


def test_a_cancelled_call_ends_unanswered_and_the_next_one_runs(server: Process) -> None:
    server.send(call(1, "wait"), call(2, "echo"), cancellation(1))
    assert server.receive()["id"] == 2


def test_a_call_that_is_cancelled_while_it_waits_never_runs(server: Process) -> None:
    server.send(call(1, "wait"), call(2, "wait"), call(3, "echo"), cancellation(2), cancellation(1))
    assert server.receive()["id"] == 3
    server.end_input()
    assert server.rest() == []


def test_calls_are_answered_in_order(server: Process) -> None:
    server.send(*(call(number, "echo") for number in range(50)))
    assert [server.receive()["id"] for _ in range(50)] == list(range(50))


def test_what_was_read_is_answered_when_the_input_ends(server: Process) -> None:
    server.send(*(call(number, "echo") for number in range(20)))
    server.end_input()
    assert [item["id"] for item in server.rest()] == list(range(20))


@pytest.fixture
def searching(tmp_path: Path) -> Iterator[Process]:
    """A server with a memory in which one query takes long."""
    path = tmp_path / "memory.db"
    store = open_store(str(path))
    rng = Random(0)
    words = ["".join(rng.choices(LETTERS, k=6)) for _ in range(3000)]
    drafts = [
        EntityDraft(f"e{number}", "thing", (" ".join(rng.choices(words, k=200)),))
        for number in range(4000)
    ]
    entities.create(Memory(store), drafts, by="test")
    store.close()
    command = polymnia_command("serve", "--dialect", "project", "--store", str(path))
    process = Process(command, tmp_path)
    yield process
    process.end()


def test_a_search_in_sqlite_is_cancelled(searching: Process) -> None:
    query = " OR ".join(f"{letter}*" for letter in LETTERS * 2)
    searching.ask(request("hello", "initialize", protocolVersion="2025-11-25"))
    searching.send(call(1, "search_nodes", query=query), request(2))
    assert searching.receive()["id"] == 2
    searching.send(cancellation(1), call(3, "open_nodes", names=["e1"]))
    assert searching.receive()["id"] == 3
