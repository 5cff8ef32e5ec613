"""The load: so many connections that each send a request as soon as they have the answer to the last one."""

import selectors
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from bench.errors import BenchError

CHUNK = 1 << 16
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(slots=True)
class Connection:
    """One of them, and what of its answer has come."""

    socket: socket.socket
    sent_at: float = 0.0
    received: bytes = b""


class Load:
    """Open connections to a server; requests are drawn from an endless supply."""

    def __init__(self, port: int, connections: int, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._connections = [Connection(connected(port)) for _ in range(connections)]
        for each in self._connections:
            self._selector.register(each.socket, selectors.EVENT_READ, each)

    def run(self, seconds: float) -> list[float]:
        """The seconds each answer took, over so long. Raises BenchError on anything but 200."""
        taken: list[float] = []
        end = perf_counter() + seconds
        for each in self._connections:
            self._send(each)
        under_way = len(self._connections)
        while under_way:
            for key, _ in self._selector.select(10):
                connection: Connection = key.data
                if not self._receive(connection):
                    continue
                now = perf_counter()
                taken.append(now - connection.sent_at)
                if now < end:
                    self._send(connection)
                else:
                    under_way -= 1
        return taken

    def close(self) -> None:
        """Hang up."""
        for each in self._connections:
            each.socket.close()
        self._selector.close()

    def _send(self, connection: Connection) -> None:
        connection.received = b""
        connection.sent_at = perf_counter()
        connection.socket.sendall(next(self._requests))

    def _receive(self, connection: Connection) -> bool:
        """Take what is there; True when the answer is whole."""
        chunk = connection.socket.recv(CHUNK)
        if not chunk:
            raise BenchError("the server hung up")
        connection.received += chunk
        return is_whole(connection.received)


def connected(port: int) -> socket.socket:
    """A connection to this machine's port."""
    found = socket.create_connection(("127.0.0.1", port), timeout=30)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def is_whole(answer: bytes) -> bool:
    """Whether head and body are there. Raises BenchError for an answer that is no success."""
    end = answer.find(HEAD_END)
    if end < 0:
        return False
    if not answer.startswith(b"HTTP/1.1 200"):
        raise BenchError(f"answered {answer[:300]!r}")
    head = answer[:end].lower()
    at = head.find(LENGTH) + len(LENGTH)
    return len(answer) >= end + len(HEAD_END) + int(head[at:].split(b"\r\n", 1)[0])


def http_request(body: bytes, headers: dict[str, str]) -> bytes:
    """The bytes of one POST."""
    lines = {
        "host": "127.0.0.1:8765",  # the SDK wants a port, any port
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body
