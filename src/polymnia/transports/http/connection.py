"""The HTTP connection itself: bounds on what comes before there is a request."""

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# A head must come whole within so many seconds and have no more bytes than that.
_HEAD_PATIENCE = 20
_MOST_HEAD = 64 * 1024


class Connection(HttpToolsProtocol):
    """uvicorn's, with a bound on the size of a head and on the time it takes."""

    _waiting: TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as the class above has it
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._expect_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _MOST_HEAD:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
            self.transport.close()

    def _expect_head(self) -> None:
        self._head_is_here()
        self._waiting = self.loop.call_later(_HEAD_PATIENCE, self._give_up)

    def _head_is_here(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self.transport.abort()
