"""MCP over TCP: a message a line, a thread a client, so that a slow or silent one keeps nobody waiting."""

import logging
import selectors
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from polymnia.errors import ProtocolError, SettingsError
from polymnia.mcp.jsonrpc import INTERNAL_ERROR, NO_ID, error_reply
from polymnia.mcp.server import Server
from polymnia.model import Principal
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


Admit = Callable[[str | None], Principal]


def serve_tcp(
    server: Server, bind: str, *, limit: int, admit: Admit, protected: bool = False, insecure: bool = False
) -> None:
    """Listen until a signal asks to stop; then finish the work in hand. Raises SettingsError.

    `admit` says who a token is; a client sends its own in the `_meta` of a request, and `protected` says that it must.
    """
    host, port = parse_bind(bind)
    require_protection(bind, host, protected=protected, insecure=insecure)
    with _listening(host, port) as listener, _stop_signal() as stop:
        logger.warning("listening on %s:%d", *listener.getsockname()[:2])
        clients = _Clients(server, limit, admit)
        try:
            ready = _ready_of(listener, stop)
            while stop not in ready():
                _accept(listener, clients)
        finally:
            clients.dismiss()


class _Clients:
    """Everyone who is connected."""

    def __init__(self, server: Server, limit: int, admit: Admit) -> None:
        self._server = server
        self._limit = limit
        self._admit = admit
        self._present: dict[_Client, threading.Thread] = {}

    def welcome(self, connection: socket.socket) -> None:
        if len(self._present) >= _MOST_CLIENTS:
            _turn_away(connection)
            return
        client = _Client(self._server, connection, self._limit, self._admit)
        thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
        self._present[client] = thread
        thread.start()

    def dismiss(self) -> None:
        """Let every client finish the request it is in, and go."""
        for client, thread in list(self._present.items()):
            client.stop()
            thread.join(_MOST_PATIENCE)

    def _serve(self, client: "_Client") -> None:
        try:
            client.serve()
        finally:
            del self._present[client]


class _Client:
    """One connection, served by one thread; others only wake it."""

    def __init__(self, server: Server, connection: socket.socket, limit: int, admit: Admit) -> None:
        connection.settimeout(_MOST_PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._awake, self._alarm = socket.socketpair()
        self._alarm.setblocking(False)
        self._stopping = False
        self._ready = _ready_of(connection, self._awake)
        self._link = Link(server, connection.sendall, limit=limit, admit=admit, wake=self._wake)

    def serve(self) -> None:
        try:
            while not self._stopping and self._turn():
                continue
            self._link.finish()
        except OSError as exc:
            logger.info("a client is gone: %s", exc)
        finally:
            self._link.session.close()
            for each in (self._connection, self._awake, self._alarm):
                each.close()

    def stop(self) -> None:
        self._stopping = True
        self._ring()

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
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
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


def _ready_of(*sockets: socket.socket) -> Callable[[], list[socket.socket]]:
    """A function that waits until one of the sockets can be read, and gives those that can."""
    selector = _Selector()
    for each in sockets:
        selector.register(each, selectors.EVENT_READ)
    return lambda: [key.fileobj for key, _ in selector.select() if isinstance(key.fileobj, socket.socket)]


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
