"""The event loop stays free: only bounded work runs on it, so a call that takes long delays nobody else."""

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import Struct
from msgspec.json import encode

from polymnia.dialects.base import Call, Dialect, Reply, catalogue, tool
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import OneWorkspace
from polymnia.mcp.jsonrpc import Answer
from polymnia.mcp.server import Server
from polymnia.mcp.session import parse
from polymnia.model import OWNER
from polymnia.stores.memory import MemoryStore
from polymnia.transports.http.connection import Connections
from polymnia.transports.http.context import MAX_INLINE_ANSWER_BYTES, MAX_INLINE_BYTES, HttpContext
from polymnia.transports.http.guard import RequestGuard
from polymnia.transports.http.request import ByteBudget
from polymnia.transports.http.sessions import Sessions
from tests.mcp.raw import request
from tests.transports.running import Legacy, Talk, call, initialize, stateless

BATCHES = "2025-03-26"


@pytest.fixture
def port() -> Iterator[int]:
    """A server whose calls block until they are released."""
    command = [sys.executable, "-m", "tests.transports.blocking_server"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r":(\d+)/mcp", server.stderr.readline())
        assert found
        yield int(found[1])
        server.terminate()


def release(port: int) -> Any:
    """Release the blocking call from another client, which only a free event loop can answer."""
    talk = Talk(port)
    result = talk.call("release")
    talk.close()
    return result["content"][0]["text"]


def test_a_batch_leaves_the_event_loop_free(port: int) -> None:
    talk = Talk(port, revision=BATCHES)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(talk.post, [call("block", 1), request("ping", 2)])
        assert release(port) == "begun"
        replies = answer.result().json
    assert [each["id"] for each in replies] == [1, 2]
    assert replies[0]["result"]["content"][0]["text"] == "released"
    talk.close()


def test_a_batch_over_sse_leaves_the_event_loop_free(port: int) -> None:
    with Legacy(port) as legacy:
        legacy.ask(initialize(BATCHES))
        assert legacy.post([call("block", 1)]).status == 202
        assert release(port) == "begun"
        assert legacy.events.message()[0]["result"]["content"][0]["text"] == "released"


def test_a_quick_tool_that_turns_out_slow_leaves_the_event_loop_free(port: int) -> None:
    talk = Talk(port)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(talk.call, "block_quickly")
        assert release(port) == "begun"
        assert result.result()["content"][0]["text"] == "released"
    talk.close()


def test_a_quick_tool_over_sse_leaves_the_event_loop_free(port: int) -> None:
    with Legacy(port) as legacy:
        legacy.ask(initialize())
        assert legacy.post(call("block_quickly")).status == 202
        assert release(port) == "begun"
        assert "released" in str(legacy.events.message())


def test_a_stateless_quick_tool_leaves_the_event_loop_free(port: int) -> None:
    talk = Talk(port)
    message, headers = stateless(call("block_quickly"))
    del talk.headers["Mcp-Session-Id"], talk.headers["Mcp-Protocol-Version"]
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(talk.post, message, **headers)
        assert release(port) == "begun"
        assert "released" in str(answer.result().json)
    talk.close()


class Names(Struct, frozen=True):
    names: list[str] = []


@tool(Names, needs="read", quick=True)
def read(call: Call, arguments: Names) -> Reply:
    """Read a few names."""
    return Reply("")


@tool(Names, needs="read")
def search(call: Call, arguments: Names) -> Reply:
    """Search everything."""
    return Reply("")


DIALECT = Dialect(name="d", server_name="d", server_version="1", instructions="", tools=catalogue(read, search))
SMALL, LARGE = Answer(b"{}"), Answer(b" " * (MAX_INLINE_ANSWER_BYTES + 1))


@pytest.fixture
def server() -> Server:
    return Server(DIALECT, OneWorkspace(Memory(MemoryStore())))


@pytest.fixture
def context() -> Iterator[HttpContext]:
    with ThreadPoolExecutor(1) as pool:
        yield HttpContext(
            guard=RequestGuard(admit=lambda token, peer: OWNER),
            sessions=Sessions(limit=1, idle_s=1),
            connections=Connections(),
            pool=pool,
            max_message_bytes=1,
            budget=ByteBudget(1),
        )


def is_inline(context: HttpContext, server: Server, body: bytes) -> bool:
    return context.place(server, parse(body), len(body)).is_inline


def encode_call(name: str, *names: str) -> bytes:
    return encode(call(name, names=list(names)))


def note(context: HttpContext, server: Server, body: bytes, answer: Answer) -> None:
    context.small_calls.note(context.place(server, parse(body), len(body)), answer)


def test_a_point_read_runs_inline_once_its_answer_is_known_to_be_small(context: HttpContext, server: Server) -> None:
    ada, bob = encode_call("read", "Ada"), encode_call("read", "Bob")
    assert not is_inline(context, server, ada)
    note(context, server, ada, SMALL)
    assert is_inline(context, server, ada)
    assert not is_inline(context, server, bob)


def test_a_point_read_with_a_large_answer_never_runs_inline(context: HttpContext, server: Server) -> None:
    ada = encode_call("read", "Ada")
    note(context, server, ada, LARGE)
    assert not is_inline(context, server, ada)
    note(context, server, ada, SMALL)
    note(context, server, ada, LARGE)
    assert not is_inline(context, server, ada)


def test_after_a_change_no_answer_is_known_to_be_small(context: HttpContext, server: Server) -> None:
    ada = encode_call("read", "Ada")
    note(context, server, ada, SMALL)
    placement = context.place(server, parse(ada), len(ada))
    context.small_calls.forget()
    assert not is_inline(context, server, ada)
    context.small_calls.note(placement, SMALL)  # it began before the change
    assert not is_inline(context, server, ada)


def test_other_tools_never_run_inline(context: HttpContext, server: Server) -> None:
    note(context, server, encode_call("search"), SMALL)
    assert not is_inline(context, server, encode_call("search"))


def test_a_long_message_never_runs_inline(context: HttpContext, server: Server) -> None:
    names = ["x" * 100] * (MAX_INLINE_BYTES // 100)
    body = encode_call("read", *names)
    note(context, server, body, SMALL)
    assert not is_inline(context, server, body)
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert is_inline(context, server, ping)
    assert not is_inline(context, server, ping + b" " * MAX_INLINE_BYTES)


@pytest.mark.parametrize("body", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
def test_a_batch_never_runs_inline(context: HttpContext, server: Server, body: bytes) -> None:
    assert not is_inline(context, server, body)
