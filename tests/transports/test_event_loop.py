"""The event loop stays free.

Only messages that need no store run on it, so a call that takes long delays nobody else.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.raw import request
from tests.transports.running import Legacy, Talk, call, initialize, stateless

BATCHES = "2025-03-26"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A server whose calls block until they are released."""
    command = [
        sys.executable,
        "-m",
        "tests.transports.blocking_server",
        str(tmp_path / "memory.db"),
    ]
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
    assert [reply["id"] for reply in replies] == [1, 2]
    assert replies[0]["result"]["content"][0]["text"] == "released"
    talk.close()


def test_a_batch_over_sse_leaves_the_event_loop_free(port: int) -> None:
    with Legacy(port) as legacy:
        legacy.ask(initialize(BATCHES))
        assert legacy.post([call("block", 1)]).status == 202
        assert release(port) == "begun"
        assert legacy.events.message()[0]["result"]["content"][0]["text"] == "released"


def test_a_call_leaves_the_event_loop_free(port: int) -> None:
    talk = Talk(port)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(talk.call, "block")
        assert release(port) == "begun"
        assert result.result()["content"][0]["text"] == "released"
    talk.close()


def test_a_call_over_sse_leaves_the_event_loop_free(port: int) -> None:
    with Legacy(port) as legacy:
        legacy.ask(initialize())
        assert legacy.post(call("block")).status == 202
        assert release(port) == "begun"
        assert "released" in str(legacy.events.message())


def test_a_stateless_call_leaves_the_event_loop_free(port: int) -> None:
    talk = Talk(port)
    message, headers = stateless(call("block"))
    del talk.headers["Mcp-Session-Id"], talk.headers["Mcp-Protocol-Version"]
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(talk.post, message, **headers)
        assert release(port) == "begun"
        assert "released" in str(answer.result().json)
    talk.close()
