"""MCP over standard input and output: one loop, each message answered where it is read."""

import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from polymnia.mcp.server import Server
from polymnia.model import OWNER, Principal
from polymnia.transports.link import Link

logger = logging.getLogger(__name__)

_CHUNK = 1 << 16
# How long nothing comes, in seconds, before there is time for housekeeping.
_PAUSE = 0.3


def serve_stdio(server: Server, *, limit: int, principal: Principal = OWNER, session: str = "") -> None:
    """Answer until the input ends or a signal asks to stop; what was read by then is still answered.

    `session` is the one that the client continues.
    """
    with _private_output() as output, _stop_signals():
        link = Link(server, partial(_write, output), limit=limit, principal=principal, session=session)
        try:
            while chunk := os.read(0, _CHUNK):
                link.take(chunk)
                if server.untidy:
                    _use_pauses(server)
            link.finish()
        except ConnectionError as exc:
            logger.info("the client is gone: %s", exc)
        except OSError as exc:
            logger.error("the client cannot be reached: %s", exc)
        finally:
            link.session.close()


def _use_pauses(server: Server) -> None:
    """After writes, when nothing comes for a moment, do housekeeping until something does."""
    if sys.platform == "win32":
        return  # pipes cannot be waited for there
    pause = _PAUSE
    while server.untidy and not select.select([0], [], [], pause)[0]:
        server.rest()
        pause = 0


def _write(output: int, data: bytes) -> None:
    sent = 0
    while sent < len(data):
        try:
            sent += os.write(output, memoryview(data)[sent:] if sent else data)
        except BlockingIOError:  # somebody has made our output one that does not wait
            select.select([], [output], [])


@contextmanager
def _private_output() -> Iterator[int]:
    """The protocol's own way out; whatever else in the process prints goes to standard error."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield output
    finally:
        sys.stdout.flush()
        os.dup2(output, 1)
        os.close(output)


@contextmanager
def _stop_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the input instead of the process.

    A thread that hears of them puts an empty file in the input's place and interrupts the loop. A read that waits is
    then begun again by Python, on the empty file; one that has returned is worked on, and the next finds the end. So
    nothing that was read is lost, and the loop needs no other wait than its read.
    """
    if sys.platform == "win32":
        yield  # a signal ends the process there, as it always does
        return
    awake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    over = threading.Event()
    heard: list[int] = []
    before = {number: signal.signal(number, lambda *_: heard.append(1)) for number in (signal.SIGTERM, signal.SIGINT)}
    wakeup = signal.set_wakeup_fd(alarm)
    threading.Thread(target=_end_input, args=(awake, threading.get_ident(), over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():  # who was asked to stop is stopping: asking again changes nothing
            signal.signal(number, signal.SIG_IGN if heard else handler)
        os.close(alarm)


def _end_input(awake: int, loop: int, over: threading.Event) -> None:
    """Wait for a signal, then see to it that the loop finds the end of its input."""
    if os.read(awake, 1):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        while not over.wait(0.05):  # again, should the loop have been just about to read
            signal.pthread_kill(loop, signal.SIGTERM)
    os.close(awake)
