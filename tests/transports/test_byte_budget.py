"""Bodies and the byte budget.

Bodies beyond it are refused, and too many responses cost slow clients theirs.
"""

import asyncio
import threading
from contextlib import AbstractContextManager, closing
from typing import Any

import pytest
from starlette.types import Message

from polymnia.errors import Refused
from polymnia.mcp.methods import MAX_INLINE_BYTES
from polymnia.mcp.session import parse
from polymnia.transports.http import context
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import (
    CONNECTION,
    RECORD,
    ByteBudget,
    HttpRequest,
    is_json,
)
from polymnia.transports.http.workers import Workers
from polymnia.transports.request_log import RequestRecord


class FakeConnection:
    """A connection that remembers whether it was ended."""

    def __init__(self) -> None:
        self.peer = ("127.0.0.1", 1)
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


class Caller:
    """A request with a body and its connection."""

    def __init__(self, body: bytes = b"") -> None:
        self._body = body
        self.connection = FakeConnection()
        scope: dict[str, object] = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "query_string": b"",
            "headers": [],
        }
        scope |= {CONNECTION: self.connection, RECORD: RequestRecord(client="")}
        self.request = HttpRequest(scope, self._receive, self._send)

    @property
    def is_disconnected(self) -> bool:
        return self.connection.is_aborted

    async def _receive(self) -> Message:
        return {"type": "http.request", "body": self._body}

    async def _send(self, message: Message) -> None:
        return None


def test_bodies_are_taken_until_the_budget_is_used() -> None:
    budget = ByteBudget(100)
    budget.take(60)
    budget.take(40)
    with pytest.raises(Refused) as refusal:
        budget.take(1)
    assert refusal.value.status == 503
    assert refusal.value.headers["retry-after"] == "1"
    budget.used -= 60
    budget.take(60)


def test_an_empty_body_is_always_taken() -> None:
    budget = ByteBudget(10)
    budget.take(10)
    budget.take(0)


def sending(
    budget: ByteBudget, caller: Caller, size: int, progress_at: float
) -> AbstractContextManager[None]:
    caller.request.progress_at = progress_at
    return budget.hold_response(caller.request, size)


def test_beyond_the_budget_clients_that_read_nothing_are_disconnected() -> None:
    budget = ByteBudget(100)
    stuck, moving = Caller(), Caller()
    with sending(budget, stuck, 60, 10.0), sending(budget, moving, 60, 15.0):
        budget.disconnect_stuck(16.0)
        assert (stuck.is_disconnected, moving.is_disconnected) == (True, False)


def test_no_more_clients_are_disconnected_than_necessary() -> None:
    budget = ByteBudget(100)
    callers = [Caller(), Caller(), Caller()]
    first, second, third = callers
    with (
        sending(budget, first, 40, 1.0),
        sending(budget, second, 40, 1.0),
        sending(budget, third, 40, 1.0),
    ):
        budget.disconnect_stuck(100.0)
        assert [caller.is_disconnected for caller in callers] == [True, False, False]


def test_within_the_budget_nobody_is_disconnected() -> None:
    budget = ByteBudget(100)
    stuck = Caller()
    with sending(budget, stuck, 100, 1.0):
        budget.disconnect_stuck(100.0)
    with sending(budget, Caller(), 100, 1.0):
        budget.disconnect_stuck(100.0)
    assert not stuck.is_disconnected


@pytest.mark.parametrize(
    ("body", "is_on_loop"),
    [(b"{}", True), (b"{}" + b" " * MAX_INLINE_BYTES, False)],
    ids=["short", "long"],
)
def test_a_long_message_is_not_decoded_on_the_event_loop(
    body: bytes, is_on_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def parse_and_note(data: bytes) -> Any:
        threads.append(threading.current_thread())
        return parse(data)

    monkeypatch.setattr(context, "parse", parse_and_note)
    workers = Workers("test", usual=1, limit=1)
    with closing(workers):
        shared: Any = HttpContext(
            guard=None,  # type: ignore[arg-type]  # only the pool and the bounds are used
            sessions=None,  # type: ignore[arg-type]
            connections=None,  # type: ignore[arg-type]
            readers=workers,
            writers=workers,
            pool=None,  # type: ignore[arg-type]
            max_message_bytes=len(body),
            budget=ByteBudget(len(body)),
        )
        asyncio.run(shared.read(Caller(body).request))
    assert [thread is threading.current_thread() for thread in threads] == [is_on_loop]


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"application/json", True),
        (b" Application/JSON ; charset=utf-8", True),
        (b"application/jsonfoo", False),
        (b"application/json-patch+json", False),
        (b"text/plain", False),
        (b"", False),
    ],
)
def test_only_json_is_taken_for_json(content_type: bytes, expected: bool) -> None:
    assert is_json(content_type) is expected
