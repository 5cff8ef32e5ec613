"""A TCP proxy between a store and its database that loses connections and answers on demand."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

# How the end of a transaction looks on the wire: the statement, and PostgreSQL's answer.
_COMMIT, _COMMITTED = b"COMMIT\x00", b"COMMIT\x00"
# The code of the message that starts a connection, after those that ask for encryption.
_PROTOCOL_3 = 3 << 16


class Requests:
    """The messages of one client, to count how often it waits for an answer.

    Packets would not do: a busy machine cuts one request into several.
    """

    def __init__(self) -> None:
        self._pending = b""
        self._has_started = False
        self._expects_answer = False

    def count_waits(self, data: bytes) -> int:
        """Return how many of the messages that this data completes ask for an answer at once.

        Query and Sync always do. Flush does if the client has sent something since.
        """
        self._pending += data
        waits = 0
        while True:
            header = 1 if self._has_started else 0  # the first messages have no type
            if len(self._pending) < header + 4:
                return waits
            (length,) = struct.unpack_from("!i", self._pending, header)
            if len(self._pending) < header + length:
                return waits
            kind = self._pending[:header]
            if not self._has_started:
                (code,) = struct.unpack_from("!i", self._pending, 4)
                self._has_started = code == _PROTOCOL_3
            elif kind in (b"Q", b"S") or (kind == b"H" and self._expects_answer):
                waits += 1
                self._expects_answer = False
            else:
                self._expects_answer = kind != b"H"
            self._pending = self._pending[header + length :]


class Proxy:
    """Forwards connections to a server. Every method may be called at any time."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._flows = Event()
        self._flows.set()
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._is_closed = False
        self.lose_request = (
            False  # lose the next connection that commits, before the server hears of it
        )
        self.lose_answer = False  # the same, after the server has committed
        self.trips = 0  # how often a client waited for an answer
        Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Keep connections open and forward nothing, as a network that loses every packet."""
        self._flows.clear()

    def resume(self) -> None:
        """Forward again."""
        self._flows.set()

    def cut(self) -> None:
        """End all connections."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for item in sockets:
            _end(item)

    def close(self) -> None:
        """End all connections and accept no more."""
        self._is_closed = True
        _end(self._listener)
        self._flows.set()
        self.cut()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
            except OSError:
                continue
            with self._lock:
                self._sockets += [client, server]
            Thread(target=self._forward, args=(client, server), daemon=True).start()
            Thread(target=self._forward_answers, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        requests = Requests()
        with suppress(OSError):
            while data := client.recv(65536):
                self._flows.wait()
                with self._lock:
                    self.trips += requests.count_waits(data)
                if self.lose_request and _COMMIT in data:
                    self.lose_request = False
                    break
                server.sendall(data)
        _end(client)
        _end(server)

    def _forward_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                self._flows.wait()
                if self.lose_answer and _COMMITTED in data:
                    self.lose_answer = False
                    break
                client.sendall(data)
        _end(client)
        _end(server)


@contextmanager
def proxied(url: str) -> Iterator[tuple[Proxy, str]]:
    """Yield a proxy to the server of a URL, and the URL that goes through it."""
    _, _, port = url.partition("@127.0.0.1:")
    number = port.partition("/")[0]
    proxy = Proxy(int(number))
    try:
        yield proxy, url.replace(f":{number}/", f":{proxy.port}/")
    finally:
        proxy.close()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
