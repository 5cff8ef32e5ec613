"""One HTTP request as the endpoints see it: its head, its body within bounds, and the answers it may get."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from polymnia.errors import ProtocolError, Refused
from polymnia.mcp.jsonrpc import NO_ID, error_reply

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON = "application/json"
EVENTS = "text/event-stream"
# What may stand around a header's value without being part of it.
BLANK = " \t"
# A long answer goes out in pieces of so many bytes, the next when the last was taken.
_PIECE = 1 << 18


class Visit:
    """A request in hand."""

    __slots__ = ("_receive", "_send", "headers", "method", "path", "peer", "query", "raw_headers", "started")

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.peer: str = (scope.get("client") or ("",))[0]
        self.raw_headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers = dict(self.raw_headers)
        self.started = False
        self._receive = receive
        self._send = send

    def header(self, name: bytes) -> str | None:
        """A header's value by its lower-case name."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip(BLANK)

    def accepts(self, kind: str) -> bool:
        """Whether the client takes an answer of that media type; one that does not say takes anything."""
        accept = self.header(b"accept")
        if accept is None:
            return True
        wanted = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
        return kind in wanted or "*/*" in wanted or f"{kind.partition('/')[0]}/*" in wanted

    async def body(self, *, limit: int) -> bytes:
        """The whole body. Raises Refused for one that is too large."""
        length = self.headers.get(b"content-length", b"0")
        if len(length) > 15 or int(length) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the request ended before its body did")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def gone(self) -> None:
        """Wait until the client is no longer there."""
        while (await self._receive())["type"] != "http.disconnect":
            continue

    async def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; JSON unless the headers say otherwise."""
        head = {"content-length": str(len(body)), **({"content-type": JSON} if body else {}), **(headers or {})}
        await self.start(status, head)
        for at in range(0, max(len(body), 1), _PIECE):
            await self.write(body[at : at + _PIECE], more=at + _PIECE < len(body))

    async def refuse(self, refusal: Refused) -> None:
        """Say why not, in the form the protocol has for it."""
        body = error_reply(NO_ID, ProtocolError(refusal.code, str(refusal)))
        await self.answer(refusal.status, body, refusal.headers)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, body: bytes, *, more: bool) -> None:
        """A piece of the answer; waits while the client takes nothing."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


_CLOSE = {"connection": "close"}


def _too_large(limit: int) -> Refused:
    return Refused(413, f"a message may have {limit} bytes at most", headers=_CLOSE)
