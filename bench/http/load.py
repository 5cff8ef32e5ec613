"""The load: connections that each send the next request as soon as they have the last response."""

import selectors
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from bench.errors import BenchError

CHUNK = 1 << 16
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(slots=True)
class Connection:
    """One connection and the part of its response that has arrived."""

    socket: socket.socket
    sent_at: float = 0.0
    received: bytes = b""


class Load:
    """Open connections, to each port equally many, and an endless supply of requests."""

    def __init__(self, ports: Sequence[int], connections: int, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._connections = [
            Connection(connect(ports[at % len(ports)])) for at in range(connections)
        ]
        for connection in self._connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def run(self, seconds: float) -> list[float]:
        """Send requests for that long.

        Return the seconds each response took. Raise BenchError on anything but 200.
        """
        taken: list[float] = []
        end = perf_counter() + seconds
        for item in self._connections:
            self._send(item)
        pending = len(self._connections)
        while pending:
            for key, _ in self._selector.select(10):
                connection: Connection = key.data
                if not self._receive(connection):
                    continue
                now = perf_counter()
                taken.append(now - connection.sent_at)
                if now < end:
                    self._send(connection)
                else:
                    pending -= 1
        return taken

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.socket.close()
        self._selector.close()

    def _send(self, connection: Connection) -> None:
        connection.received = b""
        connection.sent_at = perf_counter()
        connection.socket.sendall(next(self._requests))

    def _receive(self, connection: Connection) -> bool:
        """Read what has arrived. Return True once the response is complete."""
        chunk = connection.socket.recv(CHUNK)
        if not chunk:
            raise BenchError("the server hung up")
        connection.received += chunk
        return is_complete(connection.received)


def connect(port: int) -> socket.socket:
    """Return a connection to a port of this machine."""
    found = socket.create_connection(("127.0.0.1", port), timeout=30)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def is_complete(answer: bytes) -> bool:
    """Return True if head and body are there. Raise BenchError for an error status."""
    end = answer.find(HEAD_END)
    if end < 0:
        return False
    if not answer.startswith(b"HTTP/1.1 200"):
        raise BenchError(f"answered {answer[:300]!r}")
    head = answer[:end].lower()
    at = head.find(LENGTH) + len(LENGTH)
    return len(answer) >= end + len(HEAD_END) + int(head[at:].split(b"\r\n", 1)[0])


def http_request(body: bytes, headers: dict[str, str]) -> bytes:
    """Return the bytes of one POST."""
    lines = {
        "host": "127.0.0.1:8765",  # the SDK wants a port, any port
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body
