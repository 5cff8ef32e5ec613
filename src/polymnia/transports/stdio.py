"""MCP over standard input and output: one loop, each message answered where it is read."""

import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from polymnia.mcp.server import Server
from polymnia.transports.link import Link

logger = logging.getLogger(__name__)

_CHUNK = 1 << 16
# How long nothing comes, in milliseconds, before there is time for housekeeping.
_PAUSE = 300


def serve_stdio(server: Server, *, limit: int) -> None:
    """Answer until the input ends or a signal asks to stop; what was read by then is still answered."""
    with _private_output() as output, _input(server) as wait:
        link = Link(server, partial(_write, output), limit=limit)
        try:
            while wait() and (chunk := os.read(0, _CHUNK)):
                link.take(chunk)
            link.finish()
        except BrokenPipeError:
            logger.info("the client closed the pipe")


def _write(output: int, data: bytes) -> None:
    sent = os.write(output, data)
    while sent < len(data):
        sent += os.write(output, memoryview(data)[sent:])


@contextmanager
def _private_output() -> Iterator[int]:
    """The protocol's own way out; whatever else in the process prints goes to standard error."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield output
    finally:
        os.dup2(output, 1)
        os.close(output)


@contextmanager
def _input(server: Server) -> Iterator[Callable[[], bool]]:
    """A function that waits for input, and rests meanwhile; it gives False once a signal has asked to stop."""
    if not hasattr(select, "poll"):
        yield lambda: True  # no polling of pipes here: a signal ends the process as it always does
        return
    awake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(awake, select.POLLIN)
    before = {number: signal.signal(number, _noted) for number in (signal.SIGTERM, signal.SIGINT)}
    wakeup = signal.set_wakeup_fd(alarm)
    try:
        yield lambda: awake not in _ready(poll, server)
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(awake)
        os.close(alarm)


def _ready(poll: "select.poll", server: Server) -> set[int]:
    """The descriptors with something to read. After writes, a pause is used for housekeeping."""
    pause = _PAUSE
    while server.untidy:
        if ready := poll.poll(pause):
            return {descriptor for descriptor, _ in ready}
        server.rest()
        pause = 0
    return {descriptor for descriptor, _ in poll.poll()}


def _noted(number: int, frame: object) -> None:
    """The wake-up pipe has what the loop needs to know."""
