"""A server whose calls take as long as their clients like: they report progress, and one ends only when cancelled."""

from threading import Event

from msgspec import Struct

from polymnia.dialects.base import Call, Dialect, Reply, catalogue, tool

from .serving import serve

PATIENCE = 20
# How often a call looks whether it is still wanted, in seconds.
GLANCE = 0.01


class Nothing(Struct, frozen=True):
    pass


class Steps(Struct, frozen=True):
    steps: int


heard = Event()
noticed = Event()


@tool(Steps, needs="read")
def count(call: Call, arguments: Steps) -> Reply:
    """Report each step, and take the next when the client has heard of it"""
    for step in range(1, arguments.steps + 1):
        heard.clear()
        call.progress(step, arguments.steps, f"step {step}")
        if not heard.wait(PATIENCE):
            return Reply(f"nobody heard of step {step}")
    return Reply("counted")


@tool(Nothing, needs="read")
def go_on(call: Call, arguments: Nothing) -> Reply:
    """Let the counting go on"""
    heard.set()
    return Reply("gone on")


@tool(Nothing, needs="read")
def wait(call: Call, arguments: Nothing) -> Reply:
    """Say that it has begun, and wait until nobody wants it any more"""
    call.progress(1, None, "begun")
    pause = Event()
    while not call.cancelled():
        pause.wait(GLANCE)
    noticed.set()
    call.check()
    return Reply("nobody cancelled")


@tool(Nothing, needs="read")
def was_cancelled(call: Call, arguments: Nothing) -> Reply:
    """Say whether a waiting call was cancelled, once it is"""
    was = noticed.wait(PATIENCE)
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
