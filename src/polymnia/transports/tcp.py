"""MCP over TCP: a message a line, a thread a client, so that a slow or silent one keeps nobody waiting."""

import logging
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from polymnia.errors import ProtocolError, SettingsError
from polymnia.mcp.jsonrpc import INTERNAL_ERROR, NO_ID, error_reply
from polymnia.mcp.server import Server
from polymnia.model import NOBODY, Principal
from polymnia.transports.address import parse_bind, require_protection
from polymnia.transports.link import Link

logger = logging.getLogger(__name__)

_CHUNK = 1 << 16
# Polling has no bound on descriptor numbers, and needs no descriptor of its own.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
_MOST_CLIENTS = 250
# A client that takes nothing for so many seconds, or lets so many notifications pile up, is let go.
_MOST_PATIENCE = 60
_MOST_QUEUED = 1000


# How long a connection may last without a token where one is needed, and work in hand when the server stops.
_NO_TOKEN_PATIENCE = 20
_LAST_PATIENCE = 30
# How often those who are no longer welcome are looked for, in seconds.
_ROUNDS = 1.0


class Guard(Protocol):
    """Decides on tokens: `polymnia.auth.authenticator.Authenticator` is one."""

    @property
    def requires_token(self) -> bool:
        """Whether a token is needed."""

    def admit(self, token: str | None) -> Principal:
        """Who comes with the token, None standing for none. Raises NotAdmitted."""

    def holds(self, principal: Principal) -> bool:
        """Whether somebody who was admitted would still be."""


def serve_tcp(server: Server, bind: str, *, limit: int, guard: Guard, insecure: bool = False) -> None:
    """Listen until a signal asks to stop; then finish the work in hand. Raises SettingsError.

    A client sends its token in the `_meta` of a request.
    """
    host, port = parse_bind(bind)
    require_protection(bind, host, protected=guard.requires_token, insecure=insecure)
    with _listening(host, port) as listener, _stop_signal() as stop:
        logger.warning("listening on %s:%d", *listener.getsockname()[:2])
        clients = _Clients(server, limit, guard)
        resting = threading.Thread()
        try:
            ready = _ready_of(listener, stop, patience=_ROUNDS)
            while stop not in (found := ready()):
                if listener in found:
                    _accept(listener, clients)
                clients.dismiss_unwelcome()
                if not found and server.untidy and not resting.is_alive():
                    resting = threading.Thread(target=server.rest, name="polymnia-rest")  # it may take its time
                    resting.start()
        finally:
            clients.dismiss()
            if resting.ident is not None:
                resting.join()


class _Clients:
    """Everyone who is connected."""

    def __init__(self, server: Server, limit: int, guard: Guard) -> None:
        self._server = server
        self._limit = limit
        self._guard = guard
        self._present: dict[_Client, threading.Thread] = {}

    def welcome(self, connection: socket.socket) -> None:
        if len(self._present) >= _MOST_CLIENTS:
            _turn_away(connection)
            return
        client = _Client(self._server, connection, self._limit, self._guard)
        thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
        self._present[client] = thread
        thread.start()

    def dismiss_unwelcome(self) -> None:
        """Hang up on those whose token was revoked or has expired, or who show none where one is needed."""
        too_late = time.monotonic() - _NO_TOKEN_PATIENCE
        for client in list(self._present):
            waits = client.principal is NOBODY and client.came_at < too_late and self._guard.requires_token
            if waits or not self._guard.holds(client.principal):
                client.hang_up()

    def dismiss(self) -> None:
        """Let every client finish the request it is in, and go."""
        present = list(self._present.items())
        for client, _ in present:
            client.stop()
        end = time.monotonic() + _LAST_PATIENCE
        for _, thread in present:
            thread.join(max(0.0, end - time.monotonic()))

    def _serve(self, client: "_Client") -> None:
        try:
            client.serve()
        finally:
            del self._present[client]


class _Client:
    """One connection, served by one thread; others only wake it."""

    def __init__(self, server: Server, connection: socket.socket, limit: int, guard: Guard) -> None:
        connection.settimeout(_MOST_PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._awake, self._alarm = socket.socketpair()
        self._alarm.setblocking(False)
        self._stopping = False
        self.came_at = time.monotonic()
        self._ready = _ready_of(connection, self._awake)
        self._link = Link(server, connection.sendall, limit=limit, principal=NOBODY, admit=guard.admit, wake=self._wake)

    @property
    def principal(self) -> Principal:
        """Who it has shown to be."""
        return self._link.session.client.principal

    def serve(self) -> None:
        try:
            while not self._stopping and self._turn():
                continue
            self._link.finish(cut=self._stopping)
        except OSError as exc:
            logger.info("a client is gone: %s", exc)
        finally:
            self._link.session.close()
            for each in (self._connection, self._awake, self._alarm):
                each.close()

    def stop(self) -> None:
        self._stopping = True
        self._ring()

    def hang_up(self) -> None:
        """End the connection, whatever it waits for."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _turn(self) -> bool:
        """Wait for a request or a notification and see to it; False when the client has ended."""
        ready = self._ready()
        if self._awake in ready:
            self._awake.recv(_CHUNK)
            self._link.flush()
        if self._connection not in ready:
            return True
        chunk = self._connection.recv(_CHUNK)
        if chunk:
            self._link.take(chunk)
        return bool(chunk)

    def _wake(self) -> None:
        """Called from any thread when a notification is queued: never wait for this client there."""
        if len(self._link.session.outbox) > _MOST_QUEUED:
            self.hang_up()
        self._ring()

    def _ring(self) -> None:
        with suppress(OSError):  # full means that it rings already, closed that nobody is there
            self._alarm.send(b"!")


def _accept(listener: socket.socket, clients: _Clients) -> None:
    try:
        clients.welcome(listener.accept()[0])
    except OSError as exc:
        logger.warning("a client could not be let in: %s", exc)


def _turn_away(connection: socket.socket) -> None:
    message = f"{_MOST_CLIENTS} clients are connected already; try again later"
    with suppress(OSError), connection:
        connection.settimeout(1)
        connection.sendall(error_reply(NO_ID, ProtocolError(INTERNAL_ERROR, message)) + b"\n")


def _ready_of(*sockets: socket.socket, patience: float | None = None) -> Callable[[], list[socket.socket]]:
    """A function that waits until one of the sockets can be read, and gives those that can; none after so long."""
    selector = _Selector()
    for each in sockets:
        selector.register(each, selectors.EVENT_READ)
    return lambda: [key.fileobj for key, _ in selector.select(patience) if isinstance(key.fileobj, socket.socket)]


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as exc:
        raise SettingsError(f"cannot listen on {host}:{port}: {exc.strerror}") from exc
    with listener:
        yield listener


@contextmanager
def _stop_signal() -> Iterator[socket.socket]:
    """A socket that becomes readable when SIGTERM or SIGINT asks to stop."""
    awake, alarm = socket.socketpair()
    alarm.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    wakeup = signal.set_wakeup_fd(alarm.fileno())
    try:
        yield awake
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        awake.close()
        alarm.close()
