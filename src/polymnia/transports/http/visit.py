"""One HTTP request as the endpoints see it: its head, its body within bounds, and the answers it may get."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from polymnia.errors import ProtocolError, Refused
from polymnia.mcp.jsonrpc import NO_ID, error_reply

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON = "application/json"
EVENTS = "text/event-stream"
# What may stand around a header's value without being part of it.
BLANK = " \t"
# Where a connection leaves, in a request's scope, the function that ends it at once.
ABORT = "polymnia.abort"
# A long answer goes out in pieces of so many bytes, the next when the last was taken.
_PIECE = 1 << 18
# A client that is refused may still be sending: it is heard out for so many seconds, lest it misses the answer.
_LAST_HEARING = 5
# How long a client may take nothing of its answer, in seconds, when answers take too much room.
_PATIENCE_IN_NEED = 5
_CLOSE = {"connection": "close"}


class Room:
    """How many bytes a process holds at once, and how many it may: of bodies that came, and of answers that go out."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._leaving: dict[Visit, int] = {}
        self._total = 0

    @contextmanager
    def leaving(self, visit: "Visit", size: int) -> Iterator[None]:
        """While a large answer goes out."""
        self._leaving[visit] = size
        self._total += size
        try:
            yield
        finally:
            self._forget(visit)

    def relieve(self, now: float) -> None:
        """Where answers that go out take too much room, let go of clients that have taken nothing for a while."""
        stuck = [each for each in self._leaving if now - each.moved_at > _PATIENCE_IN_NEED]
        for visit in stuck:
            if self._total <= self.most:
                return
            self._forget(visit)
            visit.cut_off()

    def _forget(self, visit: "Visit") -> None:
        self._total -= self._leaving.pop(visit, 0)

    def take(self, size: int) -> None:
        """Raises Refused where there is no room for so much more."""
        if size and self.taken + size > self.most:
            message = "the server holds as much as it can just now; try again"
            raise Refused(503, message, code=-32000, headers={"retry-after": "1", **_CLOSE})
        self.taken += size


class Visit:
    """A request in hand."""

    __slots__ = (
        "_abort",
        "_held",
        "_is_heard_out",
        "_receive",
        "_room",
        "_send",
        "headers",
        "is_old",
        "method",
        "moved_at",
        "path",
        "peer",
        "query",
        "raw_headers",
        "started",
    )

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.peer: str = (scope.get("client") or ("",))[0]
        self.raw_headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers = dict(self.raw_headers)
        # HTTP/1.0 has no way to tell where a piece of a stream ends.
        self.is_old = scope.get("http_version") == "1.0"
        self.started = False
        self._is_heard_out = False
        # When a piece of a large answer last went out.
        self.moved_at = 0.0
        self._room: Room | None = None
        self._held = 0
        self._abort: Callable[[], None] = scope.get(ABORT, _nothing)
        self._receive = receive
        self._send = send

    def header(self, name: bytes) -> str | None:
        """A header's value by its lower-case name."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip(BLANK)

    def accepts(self, kind: str) -> bool:
        """Whether the client takes an answer of that media type; one that does not say takes anything."""
        if kind == EVENTS and self.is_old:
            return False
        accept = self.header(b"accept")
        if accept is None:
            return True
        wanted = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
        return kind in wanted or "*/*" in wanted or f"{kind.partition('/')[0]}/*" in wanted

    async def body(self, *, limit: int, room: Room) -> bytes:
        """The whole body, which takes room until `leave`. Raises Refused for one that is too large."""
        length = self.headers.get(b"content-length", b"0")
        if len(length) > 15 or int(length) > limit:
            raise _too_large(limit)
        self._room, whole = room, bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the request ended before its body did")
            part: bytes = message.get("body", b"")
            if len(whole) + len(part) > limit:
                raise _too_large(limit)
            room.take(len(part))
            self._held += len(part)
            if not message.get("more_body"):
                self._is_heard_out = True
                return bytes(whole + part) if whole else part
            whole += part

    def leave(self) -> None:
        """Nothing of it is needed any more."""
        if self._room is not None:
            self._room.taken -= self._held
            self._held = 0

    async def gone(self) -> None:
        """Wait until the client is no longer there."""
        while (await self._receive())["type"] != "http.disconnect":
            continue

    async def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; JSON unless the headers say otherwise."""
        head = {"content-length": str(len(body)), **({"content-type": JSON} if body else {}), **(headers or {})}
        await self.start(status, head)
        if len(body) <= _PIECE or self._room is None:
            await self.write(body, more=False)
            return
        with self._room.leaving(self, len(body)):
            for at in range(0, len(body), _PIECE):
                self.moved_at = time.monotonic()
                await self.write(body[at : at + _PIECE], more=at + _PIECE < len(body))

    async def refuse(self, refusal: Refused) -> None:
        """Say why not, in the form the protocol has for it."""
        body = error_reply(NO_ID, ProtocolError(refusal.code, str(refusal)))
        if self._is_heard_out or not self._has_body:
            await self.answer(refusal.status, body, refusal.headers)
            return
        head = {"content-length": str(len(body)), "content-type": JSON, **refusal.headers, **_CLOSE}
        await self.start(refusal.status, head)
        await self.write(body, more=True)
        await self._hear_out()
        await self.write(b"", more=False)

    @property
    def _has_body(self) -> bool:
        return b"transfer-encoding" in self.headers or self.headers.get(b"content-length", b"0") != b"0"

    async def _hear_out(self) -> None:
        """Take what is still coming, for a while: closed upon unread data, a connection loses the answer as well."""
        try:
            async with asyncio.timeout(_LAST_HEARING):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect" or not message.get("more_body"):
                        return
        except TimeoutError:
            return

    def require_streams(self) -> None:
        """Raises Refused where an answer cannot come in pieces."""
        if self.is_old:
            raise Refused(505, "a stream of events needs HTTP/1.1")

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, body: bytes, *, more: bool) -> None:
        """A piece of the answer; waits while the client takes nothing."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def cut_off(self) -> None:
        """End the connection, with what is still to be sent, to make room for others."""
        logger.info("a client that was slow to take its answer was let go")
        self._abort()

    async def abort(self) -> None:
        """End the connection, with what is still to be sent."""
        self._abort()
        await asyncio.sleep(0)  # so that the connection has heard of it


def _nothing() -> None:
    """There is no connection to end."""


def _too_large(limit: int) -> Refused:
    return Refused(413, f"a message may have {limit} bytes at most", headers=_CLOSE)
