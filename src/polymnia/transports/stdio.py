"""MCP over standard input and output: one loop, each message answered where it is read."""

import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from polymnia.errors import ProtocolError
from polymnia.mcp.jsonrpc import INVALID_REQUEST, NO_ID, error_reply
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.transports.lines import Lines

logger = logging.getLogger(__name__)

_CHUNK = 1 << 16
# How long nothing comes, in milliseconds, before there is time for housekeeping.
_PAUSE = 300
_CANCELLATION = b"notifications/cancelled"


def serve_stdio(server: Server, *, limit: int) -> None:
    """Answer until the input ends or a signal asks to stop; what was read by then is still answered."""
    with _private_output() as output, _input(server) as wait:
        link = _Link(server, output, limit)
        try:
            while wait() and (chunk := os.read(0, _CHUNK)):
                link.take(chunk)
            link.finish()
        except BrokenPipeError:
            logger.info("the client closed the pipe")


class _Link:
    """The session and the pipe it writes to."""

    def __init__(self, server: Server, output: int, limit: int) -> None:
        self._session = Session(server, wake=self._flush)
        self._lines = Lines(limit)
        self._limit = limit
        self._output = output

    def take(self, chunk: bytes) -> None:
        lines = self._lines.feed(chunk)
        if _CANCELLATION in chunk:
            for line in lines:
                if line is not None and _CANCELLATION in line:
                    self._session.foresee(line)
        for line in lines:
            self._answer(line)

    def finish(self) -> None:
        self._answer(self._lines.rest())
        self._session.close()
        self._flush()

    def _answer(self, line: bytes | None) -> None:
        if line is None:
            message = f"a message may have {self._limit} bytes at most; this one was dropped"
            reply: bytes | None = error_reply(NO_ID, ProtocolError(INVALID_REQUEST, message))
        elif not line or line.isspace():
            return
        else:
            reply = self._session.handle(line)
        if self._session.outbox:
            self._flush()
        if reply is not None:
            _write(self._output, reply + b"\n")

    def _flush(self) -> None:
        while self._session.outbox:
            _write(self._output, self._session.outbox.popleft() + b"\n")


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
