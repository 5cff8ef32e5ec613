"""One HTTP request as the endpoints see it: its head, its bounded body, and its responses."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from polymnia.errors import ProtocolError, Refused
from polymnia.mcp.message import NO_ID, encode_error
from polymnia.transports.http.connection import HttpConnection
from polymnia.transports.request_log import RequestRecord

logger = logging.getLogger(__name__)

JSON = "application/json"
EVENTS = "text/event-stream"
# Whitespace around a header's value that is not part of it.
BLANK = " \t"
# The keys in a request's scope that hold its connection and what the log will say about it.
CONNECTION = "polymnia.connection"
RECORD = "polymnia.record"
REQUEST_ID = b"x-request-id"
# A long response is sent in pieces of this size, each when the last one was taken.
_PIECE_BYTES = 1 << 18
CLOSE = {"connection": "close"}


class ByteBudget:
    """How many bytes of request bodies and of responses the process may hold at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._responses: dict[HttpRequest, int] = {}
        self._response_bytes = 0

    def take(self, size: int) -> None:
        """Count bytes of a body. Raise Refused if there are too many."""
        if size and self.used + size > self.limit:
            message = "server memory limit reached; retry in a second"
            raise Refused(503, message, code=-32000, headers={"retry-after": "1", **CLOSE})
        self.used += size

    @contextmanager
    def hold_response(self, request: "HttpRequest", size: int) -> Iterator[None]:
        """Count a large response while it is being sent."""
        self._responses[request] = size
        self._response_bytes += size
        try:
            yield
        finally:
            self._forget(request)

    def disconnect_stuck(self, now: float) -> None:
        """While responses exceed the limit, disconnect clients that read nothing for 5 seconds."""
        for request in list(self._responses):
            if self._response_bytes <= self.limit:
                return
            if now - request.progress_at > 5:
                self._forget(request)
                logger.info("disconnected a client that was slow to read its response")
                request.connection.abort()

    def _forget(self, request: "HttpRequest") -> None:
        self._response_bytes -= self._responses.pop(request, 0)


class HttpRequest(Request):
    """A request that is being answered: Starlette's, with bounds on what it reads and sends."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        # By lower-case name; of a repeated header, the last value.
        self.fields: dict[bytes, bytes] = dict(scope["headers"])
        self.path: str = scope["path"]
        self.connection: HttpConnection = scope[CONNECTION]
        self.record: RequestRecord = scope[RECORD]
        # The client's address, as a trusted proxy gives it.
        self.peer = self.record.client
        # HTTP/1.0 cannot mark where a piece of a stream ends.
        self.is_http_1_0 = scope.get("http_version") == "1.0"
        # When a piece of a large response was last sent.
        self.progress_at = 0.0
        self._is_body_read = False
        self._body_bytes = 0
        self._budget: ByteBudget | None = None
        self._held_bytes = 0
        self.send = send

    def header(self, name: bytes) -> str | None:
        """Return a header's value by its lower-case name."""
        value = self.fields.get(name)
        return None if value is None else value.decode("latin-1").strip(BLANK)

    def accepts(self, kind: str) -> bool:
        """Return True if the client takes responses of that media type.

        Without an Accept header it takes any.
        """
        if kind == EVENTS and self.is_http_1_0:
            return False
        accept = self.fields.get(b"accept")
        return accept is None or _accepts(accept, kind)

    async def read(self, *, limit: int, budget: ByteBudget) -> bytes:
        """Return the whole body, which counts against the budget until `release`. Raise Refused."""
        self._budget = budget
        parts = []
        while (part := await self._next_part(limit)) is not None:
            budget.take(len(part))
            self._held_bytes += len(part)
            parts.append(part)
        return b"".join(parts)

    async def pieces(self, *, limit: int, size: int) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, in pieces of about that size. Raise Refused."""
        piece = bytearray()
        while (part := await self._next_part(limit)) is not None:
            piece += part
            if len(piece) >= size:
                yield bytes(piece)
                piece.clear()
        if piece:
            yield bytes(piece)

    async def _next_part(self, limit: int) -> bytes | None:
        """Return what the connection gives next of the body; None after its end.

        Raise Refused if the body exceeds the limit.
        """
        if self._is_body_read:
            return None
        if not self._body_bytes:
            length = self.fields.get(b"content-length", b"0")
            if len(length) > 15 or int(length) > limit:
                raise _too_large(limit)
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the request ended before its body did")
        part: bytes = message.get("body", b"")
        self._body_bytes += len(part)
        if self._body_bytes > limit:
            raise _too_large(limit)
        self._is_body_read = not message.get("more_body")
        return part

    def release(self) -> None:
        """Give the bytes of the body back to the budget."""
        if self._budget is not None:
            self._budget.used -= self._held_bytes
            self._held_bytes = 0

    def is_abandoned(self) -> bool:
        """Return True once the client has gone."""
        return self.connection.lost.is_set()

    async def respond(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response, as JSON unless the headers say otherwise."""
        head = {"content-length": str(len(body))}
        if body:
            head["content-type"] = JSON
        if len(body) <= _PIECE_BYTES or self._budget is None:
            self.connection.socket.hold()
            try:
                await self.start(status, {**head, **(headers or {})})
                await self.write(body, more=False)
            finally:
                self.connection.socket.release()
            return
        await self.start(status, {**head, **(headers or {})})
        with self._budget.hold_response(self, len(body)):
            for at in range(0, len(body), _PIECE_BYTES):
                self.progress_at = time.monotonic()
                await self.write(body[at : at + _PIECE_BYTES], more=at + _PIECE_BYTES < len(body))

    async def refuse(self, refusal: Refused, body: bytes = b"") -> None:
        """Send the reason as a JSON-RPC error, or as a body that the refusal's headers describe."""
        if not body:
            body = encode_error(NO_ID, ProtocolError(refusal.code, str(refusal)))
        has_length = self.fields.get(b"content-length", b"0") != b"0"
        if self._is_body_read or not (has_length or b"transfer-encoding" in self.fields):
            await self.respond(refusal.status, body, refusal.headers)
            return
        head = {"content-length": str(len(body)), "content-type": JSON, **refusal.headers, **CLOSE}
        await self.start(refusal.status, head)
        await self.write(body, more=True)
        # Closing a connection with unread data would lose the response: read the rest for a while.
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                while (await self.receive()).get("more_body"):
                    continue
        await self.write(b"", more=False)

    def require_streams(self) -> None:
        """Raise Refused if a response cannot be a stream."""
        if self.is_http_1_0:
            raise Refused(505, "a stream of events needs HTTP/1.1")

    def start(self, status: int, headers: Mapping[str, str]) -> Awaitable[None]:
        """Send the head of a response."""
        head = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
        return self.send({"type": "http.response.start", "status": status, "headers": head})

    def write(self, body: bytes, *, more: bool) -> Awaitable[None]:
        """Send a piece of the response. Wait while the client reads nothing."""
        return self.send({"type": "http.response.body", "body": body, "more_body": more})


@lru_cache(maxsize=256)
def is_json(content_type: bytes) -> bool:
    """Return True if a header says that the body is JSON."""
    media_type = content_type.decode("latin-1").partition(";")[0]
    return media_type.strip(BLANK).lower() == JSON


@lru_cache(maxsize=256)
def _accepts(accept: bytes, kind: str) -> bool:
    family = kind.partition("/")[0]
    for media_range in accept.decode("latin-1").split(","):
        if media_range.partition(";")[0].strip().lower() in (kind, f"{family}/*", "*/*"):
            return True
    return False


def _too_large(limit: int) -> Refused:
    return Refused(413, f"message too large: at most {limit} bytes", headers=CLOSE)
