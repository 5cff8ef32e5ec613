"""The HTTP connection itself: bounds on what comes before there is a request, and on clients that dawdle."""

import socket
from asyncio import Transport
from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from polymnia.transports.http.visit import ABORT

# A request must come whole within so many seconds, its head have no more bytes than that.
_REQUEST_PATIENCE = 30
_MOST_HEAD = 64 * 1024
# So many requests may come before the one ahead of them is answered.
_MOST_AHEAD = 16
# A client that takes nothing of its answer for so many seconds is given up.
_ANSWER_PATIENCE = 60


class Connection(HttpToolsProtocol):
    """uvicorn's, with its times noted; `drop_dawdlers` looks at them, so that no request needs a timer."""

    # How much of a head has come, as the parser tells and as bytes; and how many heads have begun.
    _head = 0
    _bytes = 0
    _heads = 0
    _is_in_head = True
    _is_refused = False
    # Since when a request is coming in, since when the client takes nothing, and since when only its end is missing.
    _coming_since: float | None = None
    _stuck_since: float | None = None
    _closing_since: float | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as the class above has it
        super().connection_made(transport)
        self._unfinished: list[RequestResponseCycle] = []
        self._coming_since = self.loop.time()
        own = transport.get_extra_info("socket")
        if own is not None and own.family in (socket.AF_INET, socket.AF_INET6):
            # Head and body are two writes: the second is not to wait until the first is acknowledged.
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        # The class above tells only the last of several requests that came one behind the other.
        for cycle in self._unfinished:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._coming_since = self.loop.time()  # blank lines are no request, but the beginning of one
        heads, was_in_head = self._heads, self._is_in_head
        super().data_received(data)
        # The parser does not tell of a header before its end, so what belongs to one head alone is counted here.
        if was_in_head and self._is_in_head and heads == self._heads:
            self._bytes += len(data)
            self._refuse_if_large(self._bytes)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = self._bytes = 0
        self._heads += 1
        self._is_in_head = True
        self._coming_since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._is_refused:
            return
        self.scope[ABORT] = self.transport.abort  # type: ignore[literal-required]  # ours
        super().on_headers_complete()
        self._unfinished = [each for each in self._unfinished if not each.response_complete]
        self._unfinished.append(self.cycle)
        if len(self.pipeline) <= _MOST_AHEAD:
            self.flow.resume_reading()  # who does not read does not hear that the client has left

    def on_body(self, body: bytes) -> None:
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._coming_since = None
        if not self._is_refused:
            super().on_message_complete()

    def pause_writing(self) -> None:
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stuck_since = None
        super().resume_writing()

    def drop_if_dawdling(self, now: float) -> None:
        """Hang up on a client whose request does not come or that does not take its answer."""
        if self._closing_since is None and self.transport.is_closing():
            self._closing_since = now
        if _is_over(self._stuck_since, now, _ANSWER_PATIENCE) or _is_over(self._closing_since, now, _ANSWER_PATIENCE):
            self.transport.abort()
        elif _is_over(self._coming_since, now, _REQUEST_PATIENCE) and not self._is_working:
            if not any(cycle.response_started for cycle in self._unfinished):
                self._say("408 Request Timeout")
            self.transport.close()

    @property
    def _is_working(self) -> bool:
        """Whether it is for us that the client waits: a request of its has come whole, or we do not read on."""
        waiting = any(not (cycle.more_body or cycle.response_complete) for cycle in self._unfinished)
        return waiting or self.flow.read_paused

    def _count(self, size: int) -> None:
        self._head += size
        self._refuse_if_large(self._head)

    def _refuse_if_large(self, size: int) -> None:
        if size > _MOST_HEAD and not self._is_refused:
            self._is_refused = True
            self._say("431 Request Header Fields Too Large")
            self.transport.close()

    def _say(self, status: str) -> None:
        self.transport.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())


def _is_over(since: float | None, now: float, patience: float) -> bool:
    return since is not None and now - since > patience


def drop_dawdlers(connections: Iterable[object], now: float) -> None:
    """Hang up on all that take too long."""
    for each in list(connections):
        if isinstance(each, Connection):
            each.drop_if_dawdling(now)
