"""The HTTP connection itself: bounds on what comes before there is a request, and on clients that dawdle."""

import socket
from asyncio import Transport
from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# A request must come whole within so many seconds, its head have no more bytes than that.
_REQUEST_PATIENCE = 30
_MOST_HEAD = 64 * 1024
# A client that takes nothing of its answer for so many seconds is given up.
_ANSWER_PATIENCE = 60


class Connection(HttpToolsProtocol):
    """uvicorn's, with its times noted; `drop_dawdlers` looks at them, so that no request needs a timer."""

    _head = 0
    # Since when a request is coming in, and since when the client takes nothing.
    _coming_since: float | None = None
    _stuck_since: float | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as the class above has it
        super().connection_made(transport)
        self._coming_since = self.loop.time()
        own = transport.get_extra_info("socket")
        if own is not None and own.family in (socket.AF_INET, socket.AF_INET6):
            # Head and body are two writes: the second is not to wait until the first is acknowledged.
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._coming_since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_message_complete(self) -> None:
        self._coming_since = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stuck_since = None
        super().resume_writing()

    def drop_if_dawdling(self, now: float) -> None:
        """Hang up on a client whose request does not come or that does not take its answer."""
        if self._stuck_since is not None and now - self._stuck_since > _ANSWER_PATIENCE:
            self.transport.abort()
        elif self._coming_since is not None and now - self._coming_since > _REQUEST_PATIENCE:
            if self.cycle is None or not self.cycle.response_started:
                self._say("408 Request Timeout")
            self.transport.close()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _MOST_HEAD:
            self._say("431 Request Header Fields Too Large")
            self.transport.close()

    def _say(self, status: str) -> None:
        self.transport.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())


def drop_dawdlers(connections: Iterable[object], now: float) -> None:
    """Hang up on all that take too long."""
    for each in list(connections):
        if isinstance(each, Connection):
            each.drop_if_dawdling(now)
