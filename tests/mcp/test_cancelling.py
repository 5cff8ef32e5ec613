"""Cancelling a call that runs, and messages that cancel nothing."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.json import encode

from polymnia.mcp.message import Answer
from polymnia.mcp.session import cancelled_request, parse
from tests.mcp.conversation import JSON, LATEST, STATELESS, Client, new_server
from tests.mcp.dialect import Gate, one_of_everything
from tests.mcp.raw import cancellation
from tests.processes import TIMEOUT_S


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def threads(gate: Gate) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads
        gate.may_go_on.set()


def began(
    client: Client, gate: Gate, threads: ThreadPoolExecutor, tool: str
) -> tuple[Any, Future[Answer]]:
    """The id and the coming reply of a call that is now waiting at the gate."""
    message = client.message("tools/call", {"name": tool})
    reply = threads.submit(client.session.handle, encode(message))
    assert gate.begun.wait(TIMEOUT_S)
    return message["id"], reply


@pytest.mark.parametrize("revision", [LATEST, STATELESS])
def test_a_running_call_that_is_cancelled_stops_unanswered(
    gate: Gate, threads: ThreadPoolExecutor, revision: str
) -> None:
    client = Client(new_server(one_of_everything(gate)), revision)
    identifier, reply = began(client, gate, threads, "ponder")
    client.notify("notifications/cancelled", requestId=identifier, reason="enough")
    gate.may_go_on.set()
    assert reply.result(TIMEOUT_S).body is None


def test_a_cancelled_call_is_not_answered_even_if_it_never_checked(
    gate: Gate, threads: ThreadPoolExecutor
) -> None:
    client = Client(new_server(one_of_everything(gate)))
    identifier, reply = began(client, gate, threads, "heed")
    client.notify("notifications/cancelled", requestId=identifier)
    gate.may_go_on.set()
    assert reply.result(TIMEOUT_S).body is None


@pytest.mark.parametrize("other", [99, -1, "2", "nope"])
def test_cancelling_another_request_leaves_a_call_alone(
    gate: Gate, threads: ThreadPoolExecutor, other: Any
) -> None:
    client = Client(new_server(one_of_everything(gate)))
    _, reply = began(client, gate, threads, "ponder")
    client.notify("notifications/cancelled", requestId=other)
    gate.may_go_on.set()
    assert b"pondered" in (reply.result(TIMEOUT_S).body or b"")


def test_while_a_call_runs_others_are_answered(gate: Gate, threads: ThreadPoolExecutor) -> None:
    client = Client(new_server(one_of_everything(gate)))
    _, reply = began(client, gate, threads, "ponder")
    assert client.text("nothing") == "nothing"
    assert not reply.done()


def test_two_calls_with_one_id_at_once_are_both_answered(
    gate: Gate, threads: ThreadPoolExecutor
) -> None:
    client = Client(new_server(one_of_everything(gate)))
    identifier, reply = began(client, gate, threads, "ponder")
    meanwhile = client.say({"jsonrpc": "2.0", "id": identifier, "method": "ping"})
    gate.may_go_on.set()
    assert meanwhile is not None
    assert b"pondered" in (reply.result(TIMEOUT_S).body or b"")


def test_cancelling_what_is_answered_already_changes_nothing(client: Client) -> None:
    client.text("nothing")
    client.notify("notifications/cancelled", requestId=2)
    assert client.text("nothing") == "nothing"


NO_CANCELLATIONS: dict[str, JSON] = {
    "a request": {**cancellation(99), "id": 5},
    "another notification": {**cancellation(99), "method": "notifications/cancelled/nope"},
    "no id to cancel": {**cancellation(99), "params": {}},
    "no params": {"jsonrpc": "2.0", "method": "notifications/cancelled"},
    "an id that cannot be": cancellation([99]),
}


@pytest.mark.parametrize("message", NO_CANCELLATIONS.values(), ids=NO_CANCELLATIONS)
def test_other_messages_cancel_nothing(client: Client, message: JSON) -> None:
    assert cancelled_request(parse(encode(message))) is None
    client.say(message)
    assert client.say({"jsonrpc": "2.0", "id": 99, "method": "ping"}) is not None
