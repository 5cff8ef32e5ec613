"""A server over HTTP with tools that block until another call releases them."""

import sys
from threading import Event

from msgspec import Struct

from polymnia.dialects.base import Call, Dialect, Reply, catalogue, tool
from polymnia.engine.memory import Memory
from polymnia.stores.open import open_store
from tests.interop.serving import serve
from tests.processes import TIMEOUT_S

started = Event()
released = Event()


class Nothing(Struct, frozen=True):
    pass


def wait_for_release() -> Reply:
    started.set()
    return Reply("released" if released.wait(TIMEOUT_S) else "timed out")


@tool(Nothing, needs="read")
def block(call: Call, arguments: Nothing) -> Reply:
    """Wait until released."""
    return wait_for_release()


@tool(Nothing, needs="read")
def block_with_news(call: Call, arguments: Nothing) -> Reply:
    """Say something, wait until released, and say something more"""
    call.log("error", "begun")
    reply = wait_for_release()
    call.log("error", "ended")
    return reply


@tool(Nothing, needs="read")
def release(call: Call, arguments: Nothing) -> Reply:
    """Release the call that blocks, once it has begun."""
    begun = started.wait(TIMEOUT_S)
    released.set()
    return Reply("begun" if begun else "nothing had begun")


if __name__ == "__main__":
    serve(
        Dialect(
            name="blocking",
            server_name="blocking",
            server_version="1",
            instructions="",
            tools=catalogue(block, block_with_news, release),
        ),
        Memory(open_store(sys.argv[1])),
    )
