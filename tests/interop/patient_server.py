"""A server for tests of long calls.

One reports progress step by step, one ends only when it is cancelled.
"""

from threading import Event

from msgspec import Struct

from polymnia.dialects.base import Call, Dialect, Reply, catalogue, tool
from tests.processes import TIMEOUT_S

from .serving import serve

# Seconds between two checks for a cancellation; a tool can only ask.
CANCEL_CHECK_S = 0.01


class Nothing(Struct, frozen=True):
    pass


class Steps(Struct, frozen=True):
    steps: int


heard = Event()
noticed = Event()


@tool(Steps, needs="read")
def count(call: Call, arguments: Steps) -> Reply:
    """Report each step, and go on when the client has acknowledged it"""
    for step in range(1, arguments.steps + 1):
        heard.clear()
        call.progress(step, arguments.steps, f"step {step}")
        if not heard.wait(TIMEOUT_S):
            return Reply(f"nobody heard of step {step}")
    return Reply("counted")


@tool(Nothing, needs="read")
def go_on(call: Call, arguments: Nothing) -> Reply:
    """Acknowledge a step"""
    heard.set()
    return Reply("gone on")


@tool(Nothing, needs="read")
def wait(call: Call, arguments: Nothing) -> Reply:
    """Report that the call has begun, and wait until it is cancelled"""
    call.progress(1, None, "begun")
    pause = Event()
    while not call.cancelled():
        pause.wait(CANCEL_CHECK_S)
    noticed.set()
    call.check()
    return Reply("nobody cancelled")


@tool(Nothing, needs="read")
def was_cancelled(call: Call, arguments: Nothing) -> Reply:
    """Wait for the cancellation of a call and say whether it came"""
    was = noticed.wait(TIMEOUT_S)
    noticed.clear()
    return Reply("cancelled" if was else "still waiting")


PATIENT = Dialect(
    name="patient",
    server_name="patient",
    server_version="1",
    instructions="",
    tools=catalogue(count, go_on, wait, was_cancelled),
)

if __name__ == "__main__":
    serve(PATIENT)
