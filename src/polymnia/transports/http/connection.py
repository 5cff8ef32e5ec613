"""HTTP connections: how many there may be, how large a head, and how long a client may be silent.

`HttpConnection` extends uvicorn's protocol class by overriding callbacks of asyncio
(`connection_made` …) and httptools (`on_headers_complete` …), which are public interfaces. Of
uvicorn's own state it reads the address and the headers of a request.
"""

import time
from asyncio import Event, Transport
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_CONNECTIONS = 2000
# Connections beyond the limit that still get an answer to health checks.
HEALTH_CONNECTIONS = 64
# Connections of one address without an admitted request. Beyond this the oldest of them is closed.
MAX_ANONYMOUS_PER_ADDRESS = 200
MAX_HEAD_BYTES = 64 * 1024
# A request head must arrive within this time after the connection or the first byte.
HEAD_TIMEOUT_S = 10
# Its body must arrive within this time after the head.
BODY_TIMEOUT_S = 30
# A client that reads nothing of its answer for this long is disconnected.
SEND_TIMEOUT_S = 60

Peer = tuple[str, int]


class JoinedWrites:
    """A transport that can send the head of a response together with its body, in one system call.

    uvicorn writes them one by one. Two calls take a tenth more processor time per request.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._is_holding = False
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._is_holding:
            self._held.append(data)
        else:
            self._transport.write(data)

    def hold(self) -> None:
        """Keep what is written until `release`."""
        self._is_holding = True

    def release(self) -> None:
        """Send what was kept."""
        self._is_holding = False
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._transport.write(data)

    def close(self) -> None:
        """Close after everything was sent."""
        self.release()
        self._transport.close()


class HttpConnection(HttpToolsProtocol):
    """One client's connection."""

    def __init__(self, connections: "Connections", **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._connections = connections
        self.socket: JoinedWrites  # from `connection_made` on
        self.peer: Peer = ("", 0)
        # The address it counts for: its peer's, or that of the client a proxy used it for last.
        self.address = ""
        # Set when the connection has ended.
        self.lost = Event()
        # True once a request on it had a valid token.
        self.is_admitted = False
        # Its requests that are being answered.
        self._serving = 0
        self._head_bytes = 0
        # What the head of the current request says so far.
        # Since when the server waits for a request head, for its body, for the client to read, and
        # for the last bytes to be sent.
        self._waiting_since: float | None = None
        self._body_since: float | None = None
        self._stuck_since: float | None = None
        self._closing_since: float | None = None
        # What a stream on this connection waits for: when to ring, and what to call then.
        self.alarm: tuple[float, Callable[[], None]] | None = None

    # uvicorn's class narrows asyncio's type in the same way.
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        self.socket = JoinedWrites(transport)
        super().connection_made(cast(Transport, self.socket))
        self._waiting_since = time.monotonic()
        self.peer = (transport.get_extra_info("peername") or ("", 0))[:2]
        self.address = self.peer[0]
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        self.lost.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._serving and self._waiting_since is None:
            self._waiting_since = time.monotonic()
        if self._body_since is None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse("431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        if not self.url.startswith((b"/", b"*")):
            host = dict(self.headers).get(b"host", b"")
            if urlsplit(self.url).netloc.lower() != host.strip().lower():
                # The guard sees only the header. uvicorn answers an exception here with status 400.
                raise ValueError("the request line and the header name different hosts")
        self._head_bytes, self._body_since = 0, time.monotonic()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head_bytes, self._body_since = 0, None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._stuck_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stuck_since = None
        super().resume_writing()

    def begin_request(self, client: str) -> None:
        """Mark a request as being answered: from now on the client waits for the server."""
        self._serving += 1
        self._waiting_since = None
        if client != self.address:
            # A proxy sends the requests of several clients through one connection. What one of
            # them was admitted to does not hold for the next.
            self._connections.admit(self)
            self.address = client
            self.is_admitted = False
            self._connections.count_anonymous(self)

    def end_request(self) -> None:
        """Mark a request as answered."""
        self._serving -= 1

    @property
    def is_idle(self) -> bool:
        return not self._serving

    def admit(self) -> None:
        """Note that a request on this connection had a valid token."""
        if not self.is_admitted:
            self.is_admitted = True
            self._connections.admit(self)

    def abort(self) -> None:
        """End the connection at once and drop what was not sent."""
        self.socket.abort()

    def check(self, now: float) -> None:
        """Close the connection if its client sends no request or does not read its answer."""
        if self.alarm is not None and now >= self.alarm[0]:
            self.alarm[1]()
        if self._closing_since is None and self.socket.is_closing():
            self._closing_since = now
        is_silent = self.is_idle and _is_over(self._waiting_since, now, HEAD_TIMEOUT_S)
        if _is_over(self._stuck_since, now, SEND_TIMEOUT_S) or _is_over(
            self._closing_since, now, SEND_TIMEOUT_S
        ):
            self.socket.abort()
        elif is_silent or _is_over(self._body_since, now, BODY_TIMEOUT_S):
            self._refuse("408 Request Timeout")

    def _refuse(self, status: str) -> None:
        if not self.socket.is_closing():
            head = f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.socket.write(head.encode())
            self.socket.close()


class Connections:
    """All open connections, and the bounds on them."""

    def __init__(self, limit: int = MAX_CONNECTIONS) -> None:
        self._limit = limit
        self._by_peer: dict[Peer, HttpConnection] = {}
        # Connections without an admitted request by address, the oldest first.
        self._anonymous: dict[str, dict[HttpConnection, None]] = {}

    def __len__(self) -> int:
        return len(self._by_peer)

    def get(self, peer: Peer) -> HttpConnection | None:
        """Return the connection by the client's address and port; None if it has ended."""
        return self._by_peer.get(peer)

    @property
    def is_full(self) -> bool:
        """Return True if only health checks are answered."""
        return len(self._by_peer) > self._limit

    def add(self, connection: HttpConnection) -> None:
        """Count a connection, and make room for it if there are too many."""
        self._by_peer[connection.peer] = connection
        self.count_anonymous(connection)
        if len(self._by_peer) > self._limit + HEALTH_CONNECTIONS:
            connection.abort()

    def count_anonymous(self, connection: HttpConnection) -> None:
        """Count a connection for its address, and close another one beyond the limit."""
        anonymous = self._anonymous.setdefault(connection.address, {})
        anonymous[connection] = None
        if len(anonymous) > MAX_ANONYMOUS_PER_ADDRESS:
            _close_oldest(anonymous, but=connection)
        elif self.is_full:
            _close_oldest(max(self._anonymous.values(), key=len), but=connection)

    def admit(self, connection: HttpConnection) -> None:
        """Stop counting a connection as anonymous."""
        anonymous = self._anonymous.get(connection.address)
        if anonymous is not None:
            anonymous.pop(connection, None)
            if not anonymous:
                del self._anonymous[connection.address]

    def remove(self, connection: HttpConnection) -> None:
        """Forget a connection that has ended."""
        self.admit(connection)
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]

    def check(self, now: float) -> None:
        """Close the connections of clients that send no request or do not read their answers."""
        for connection in list(self._by_peer.values()):
            connection.check(now)


def _close_oldest(anonymous: dict[HttpConnection, None], *, but: HttpConnection) -> None:
    """Close the oldest connection on which no request is being answered, but not the new one."""
    for connection in anonymous:
        if connection.is_idle and connection is not but:
            del anonymous[connection]
            connection.abort()
            return


def _is_over(since: float | None, now: float, timeout: float) -> bool:
    return since is not None and now - since > timeout
