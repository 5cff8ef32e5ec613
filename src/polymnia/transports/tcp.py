"""MCP over TCP: one message per line. A slow client delays no other: each has a thread."""

import logging
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from polymnia.auth.authenticator import Authenticator
from polymnia.errors import ProtocolError
from polymnia.mcp.message import INTERNAL_ERROR, NO_ID, encode_error
from polymnia.mcp.server import Server
from polymnia.model import NOBODY, Principal
from polymnia.transports.address import listen, parse_bind, require_protection
from polymnia.transports.lines import LineSession

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 16
# Polling has no bound on descriptor numbers, and needs no descriptor of its own.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
MAX_CLIENTS = 250
# A client that reads nothing for this long, or lets this many notifications pile up, is
# disconnected.
SEND_TIMEOUT_S = 60
# How long running requests may take when the server stops.
STOP_TIMEOUT_S = 30
# How often the server looks for clients that are no longer admitted.
CHECK_INTERVAL_S = 1.0
# Failed accepts are retried this often: the listener stays ready, so the loop would spin.
ACCEPT_RETRY_S = 5.0


def serve_tcp(
    server: Server, bind: str, *, limit: int, guard: Authenticator, insecure: bool = False
) -> None:
    """Listen until a signal asks to stop, then finish the running requests. Raise SettingsError.

    Clients send their token in the `_meta` of a request.
    """
    host, port = parse_bind(bind)
    require_protection(bind, host, protected=guard.requires_token, insecure=insecure)
    with listen(host, port) as listener, _stop_signal() as stop:
        logger.warning("listening on %s:%d", *listener.getsockname()[:2])
        clients = _Clients(server, limit, guard)
        try:
            wait = _ready_function(listener, stop, timeout=CHECK_INTERVAL_S)
            while stop not in (ready := wait()):
                if listener in ready:
                    try:
                        connection, address = listener.accept()
                        clients.add(connection, address[0])
                    except OSError as exc:  # the system is out of descriptors or threads
                        retry = f"trying again in {ACCEPT_RETRY_S:.0f} s"
                        logger.warning("cannot accept a connection: %s; %s", exc, retry)
                        _ready_function(stop, timeout=ACCEPT_RETRY_S)()
                clients.drop_unadmitted()
        finally:
            clients.close()


class _Clients:
    """Every connected client, the oldest first."""

    def __init__(self, server: Server, limit: int, guard: Authenticator) -> None:
        self._server = server
        self._limit = limit
        self._guard = guard
        self._threads: dict[_Client, threading.Thread] = {}

    def add(self, connection: socket.socket, address: str) -> None:
        """Serve a connection. At the limit, drop the oldest silent one or refuse the new one."""
        if len(self._threads) >= MAX_CLIENTS:
            silent = next((client for client in list(self._threads) if client.is_silent), None)
            if silent is None:
                text = f"too many clients: {MAX_CLIENTS} are connected; try again later"
                with suppress(OSError), connection:
                    connection.settimeout(1)
                    refusal = ProtocolError(INTERNAL_ERROR, text)
                    connection.sendall(encode_error(NO_ID, refusal) + b"\n")
                return
            self._threads.pop(silent, None)
            silent.hang_up()
        client = _Client(self._server, connection, address, limit=self._limit, guard=self._guard)

        def serve() -> None:
            try:
                client.serve()
            finally:
                self._threads.pop(client, None)

        self._threads[client] = threading.Thread(target=serve, daemon=True)
        self._threads[client].start()

    def drop_unadmitted(self) -> None:
        """Hang up on clients whose token no longer holds, or who send none for 20 seconds."""
        latest_start = time.monotonic() - 20
        for client in list(self._threads):
            has_no_token = (
                client.principal is NOBODY
                and client.started_at < latest_start
                and self._guard.requires_token
            )
            if has_no_token or not self._guard.holds(client.principal):
                client.hang_up()

    def close(self) -> None:
        """Let every client finish its running request, then end."""
        present = list(self._threads.items())
        for client, _ in present:
            client.stop()
        end = time.monotonic() + STOP_TIMEOUT_S
        for _, thread in present:
            thread.join(max(0.0, end - time.monotonic()))


class _Client:
    """One connection, served by one thread. Other threads only wake it."""

    def __init__(
        self,
        server: Server,
        connection: socket.socket,
        address: str,
        *,
        limit: int,
        guard: Authenticator,
    ) -> None:
        connection.settimeout(SEND_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        self._wakeup_write.setblocking(False)
        self._is_stopping = False
        self.started_at = time.monotonic()
        self.is_silent = True
        self._wait = _ready_function(connection, self._wakeup_read)
        self._lines = LineSession(
            server,
            connection.sendall,
            limit=limit,
            principal=NOBODY,
            admit=partial(guard.admit, peer=address),
            wake=self._wake,
            remote_address=address,
            on_lost=self.hang_up,
        )

    @property
    def principal(self) -> Principal:
        """Return the principal of the last token."""
        return self._lines.session.client.principal

    def serve(self) -> None:
        """Answer until the client or the server ends."""
        try:
            is_open = True
            while is_open and not self._is_stopping:
                ready = self._wait()
                if self._wakeup_read in ready:
                    self._wakeup_read.recv(_CHUNK_BYTES)
                    self._lines.flush()
                if self._connection in ready:
                    chunk = self._connection.recv(_CHUNK_BYTES)
                    is_open = bool(chunk)
                    if chunk:
                        self.is_silent = False
                        self._lines.receive(chunk)
            self._lines.finish(is_cut=self._is_stopping)
        except OSError as exc:
            logger.info("a client is gone: %s", exc)
        finally:
            self._lines.close()
            self._connection.close()
            self._wakeup_read.close()
            self._wakeup_write.close()

    def stop(self) -> None:
        """End after the running request."""
        self._is_stopping = True
        self._wake_thread()

    def hang_up(self) -> None:
        """End the connection at once."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _wake(self) -> None:
        """Have the client's thread write a notification, so that this thread need not wait."""
        if len(self._lines.session.outbox) > 1000:
            self.hang_up()
        self._wake_thread()

    def _wake_thread(self) -> None:
        with suppress(OSError):  # full: it is being woken already; closed: it has ended
            self._wakeup_write.send(b"!")


def _ready_function(
    *sockets: socket.socket, timeout: float | None = None
) -> Callable[[], list[socket.socket]]:
    """Return a function that waits for readable sockets and returns them; none on timeout."""
    selector = _Selector()
    for sock in sockets:
        selector.register(sock, selectors.EVENT_READ)
    return lambda: [
        key.fileobj for key, _ in selector.select(timeout) if isinstance(key.fileobj, socket.socket)
    ]


@contextmanager
def _stop_signal() -> Iterator[socket.socket]:
    """Yield a socket that becomes readable when SIGTERM or SIGINT asks to stop."""
    wakeup_read, wakeup_write = socket.socketpair()
    wakeup_write.setblocking(False)
    before = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)
    }
    previous_fd = signal.set_wakeup_fd(wakeup_write.fileno())
    try:
        yield wakeup_read
    finally:
        signal.set_wakeup_fd(previous_fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        wakeup_read.close()
        wakeup_write.close()
