"""MCP over standard input and output: one loop that reads messages."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from polymnia.mcp.server import Server
from polymnia.model import OWNER, Principal
from polymnia.transports.lines import LineSession, write_all

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 16


def serve_stdio(
    server: Server, *, limit: int, principal: Principal = OWNER, session: str = ""
) -> None:
    """Answer until the input ends or a signal asks to stop, and then what was read until then.

    `session` is the id of the session that the client continues.
    """
    with _private_output() as output, _stop_on_signals():
        client = LineSession(
            server,
            partial(write_all, output),
            limit=limit,
            principal=principal,
            session=session,
            # This ends the input, as for any other stop.
            on_lost=partial(os.kill, os.getpid(), signal.SIGTERM),
        )
        is_warm = False
        try:
            while chunk := os.read(0, _CHUNK_BYTES):
                client.receive(chunk)
                if not is_warm:
                    # The first message is `initialize`. Loading a model must not delay its reply.
                    server.workspaces.warm_up()
                    is_warm = True
            client.finish()
        except ConnectionError as exc:
            logger.info("the client is gone: %s", exc)
        except OSError as exc:
            logger.error("cannot reach the client: %s", exc)
        finally:
            client.close()


@contextmanager
def _private_output() -> Iterator[int]:
    """Yield a descriptor for the protocol. Other output goes to standard error."""
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
def _stop_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the input instead of the process.

    A thread that is woken by the signal replaces the input by an empty file and interrupts the
    loop. Python restarts a blocked read, on the empty file; data that was already read is answered
    first. So nothing is lost, and the loop waits for nothing but its read.
    """
    if sys.platform == "win32":
        yield  # a signal ends the process there
        return
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    is_over = threading.Event()
    received: list[int] = []
    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: received.append(1)) for number in signals}
    previous_fd = signal.set_wakeup_fd(wakeup_write)
    threading.Thread(
        target=_end_input, args=(wakeup_read, threading.get_ident(), is_over), daemon=True
    ).start()
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(previous_fd)
        for number, handler in before.items():
            # Once the server is stopping, further signals change nothing.
            signal.signal(number, signal.SIG_IGN if received else handler)
        os.close(wakeup_write)


def _end_input(wakeup: int, loop_thread: int, is_over: threading.Event) -> None:
    """Wait for a signal, then make sure that the loop finds the end of its input."""
    if os.read(wakeup, 1):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # Repeat it in case the loop was just about to read.
        while not is_over.wait(0.05):
            signal.pthread_kill(loop_thread, signal.SIGTERM)
    os.close(wakeup)
