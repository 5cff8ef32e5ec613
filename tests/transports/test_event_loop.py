"""The event loop stays free.

Only messages that need no store run on it, so a call that takes long delays nobody else.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.mcp.raw import request
from tests.transports.running import Legacy, Talk, call, initialize, stateless

BATCHES = "2025-03-26"


def release(blocking_port: int) -> Any:
    """Release the blocking call from another client, which only a free event loop can answer."""
    talk = Talk(blocking_port)
    result = talk.call("release")
    talk.close()
    return result["content"][0]["text"]


def test_a_batch_leaves_the_event_loop_free(blocking_port: int) -> None:
    talk = Talk(blocking_port, revision=BATCHES)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(talk.post, [call("block", 1), request("ping", 2)])
        assert release(blocking_port) == "begun"
        replies = answer.result().json
    assert [reply["id"] for reply in replies] == [1, 2]
    assert replies[0]["result"]["content"][0]["text"] == "released"
    talk.close()


def test_a_batch_over_sse_leaves_the_event_loop_free(blocking_port: int) -> None:
    with Legacy(blocking_port) as legacy:
        legacy.ask(initialize(BATCHES))
        assert legacy.post([call("block", 1)]).status == 202
        assert release(blocking_port) == "begun"
        assert legacy.events.message()[0]["result"]["content"][0]["text"] == "released"


def test_a_call_leaves_the_event_loop_free(blocking_port: int) -> None:
    talk = Talk(blocking_port)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(talk.call, "block")
        assert release(blocking_port) == "begun"
        assert result.result()["content"][0]["text"] == "released"
    talk.close()


def test_a_call_over_sse_leaves_the_event_loop_free(blocking_port: int) -> None:
    with Legacy(blocking_port) as legacy:
        legacy.ask(initialize())
        assert legacy.post(call("block")).status == 202
        assert release(blocking_port) == "begun"
        assert "released" in str(legacy.events.message())


def test_a_stateless_call_leaves_the_event_loop_free(blocking_port: int) -> None:
    talk = Talk(blocking_port)
    message, headers = stateless(call("block"))
    del talk.headers["Mcp-Session-Id"], talk.headers["Mcp-Protocol-Version"]
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(talk.post, message, **headers)
        assert release(blocking_port) == "begun"
        assert "released" in str(answer.result().json)
    talk.close()
