"""What all endpoints of a server share: the guard, the sessions, the worker threads and the bounds."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TypeVar

from msgspec import UNSET, Struct, field

from polymnia.dialects.base import Tool
from polymnia.errors import Refused
from polymnia.mcp.jsonrpc import Answer, Message
from polymnia.mcp.methods import METHODS
from polymnia.mcp.server import Server
from polymnia.mcp.session import parse
from polymnia.model import Principal
from polymnia.transports.http.connection import Connections
from polymnia.transports.http.guard import RequestGuard
from polymnia.transports.http.request import ByteBudget, Request
from polymnia.transports.http.sessions import Sessions
from polymnia.transports.http.stream import EventStream

T = TypeVar("T")

# Longer messages are parsed and answered on a worker thread, whatever they ask.
MAX_INLINE_BYTES = 8 * 1024
# A point read runs on the event loop only if its last answer was no larger.
MAX_INLINE_ANSWER_BYTES = 16 * 1024
_MAX_SMALL_CALLS = 20_000
# How often a stopping server checks whether its requests have finished.
_STOP_INTERVAL_S = 0.02


class Placement(Struct, frozen=True):
    """Where a message runs: on the event loop or on a worker thread."""

    is_inline: bool
    # For point reads: a hash of server, tool and arguments, and the version of the memory before the call.
    key: int | None = None
    version: int = 0


class SmallCalls:
    """Point reads whose answers are known to be small.

    A tool that is declared quick reads a few names, but one entity may hold megabytes. So the first such call runs on
    a worker thread. Repetitions run on the event loop until this process changes something. If another process makes
    an entity large, the next read finds out, once.
    """

    def __init__(self) -> None:
        self._version = 0
        self._known: set[int] = set()

    def place(self, key: int) -> Placement:
        """Return where a point read runs."""
        return Placement(key in self._known, key, self._version)

    def note(self, placement: Placement, answer: Answer) -> None:
        """Remember whether the answer to a point read was small."""
        if placement.key is None:
            return
        if len(answer.body or b"") > MAX_INLINE_ANSWER_BYTES:
            self._known.discard(placement.key)
        elif placement.version == self._version and len(self._known) < _MAX_SMALL_CALLS:
            self._known.add(placement.key)

    def forget(self, *_: object) -> None:
        """Forget every call, because something has changed. Called from any thread."""
        self._version += 1
        self._known = set()


class HttpContext(Struct, kw_only=True):
    """The shared state of one process."""

    guard: RequestGuard
    sessions: Sessions
    connections: Connections
    pool: Executor
    # Bytes of one message, and of all that are being handled.
    max_message_bytes: int
    budget: ByteBudget
    small_calls: SmallCalls = field(default_factory=SmallCalls)
    # Open streams of clients without a session, and whose they are. A stopping server ends them.
    streams: dict[EventStream, Principal] = field(default_factory=dict)
    # The path of the public URL, under which a proxy serves everything; empty if there is none.
    public_path: str = ""
    # By how much the event loop was last late.
    loop_lag_s: float = 0.0
    is_stopping: bool = False
    running: int = 0

    @contextmanager
    def running_request(self) -> Iterator[None]:
        """Make a stopping server wait for a request."""
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

    async def read(self, request: Request) -> tuple[bytes, Message]:
        """Return the body of a request and the message in it. Raise Refused."""
        body = await request.body(limit=self.max_message_bytes, budget=self.budget)
        if len(body) <= MAX_INLINE_BYTES:
            return body, parse(body)
        return body, await self.run(lambda: parse(body))

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on a worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    def place(self, server: Server, message: Message, size: int) -> Placement:
        """Return where a message runs. Only work that is bounded may run on the event loop."""
        if size > MAX_INLINE_BYTES or message.batch is not None:
            return Placement(is_inline=False)
        method = METHODS.get(message.method) if isinstance(message.method, str) else None
        if message.id is UNSET or message.problem is not None or method is None or method.is_short:
            return Placement(is_inline=True)
        tool = _called_tool(server, message)
        if tool is None or not tool.quick or not server.workspaces.short_reads:
            return Placement(is_inline=False)
        return self.small_calls.place(hash((id(server), tool.name, bytes(message.params.arguments))))

    def check_open(self) -> None:
        """Raise Refused if the server is stopping."""
        if self.is_stopping:
            raise Refused(503, "the server is stopping", code=-32000, headers={"connection": "close"})

    def end_unadmitted(self) -> None:
        """End the sessions and streams of principals that are no longer admitted."""
        known: dict[tuple[str, int | None], bool] = {}

        def holds(principal: Principal) -> bool:
            key = (principal.id, principal.until)
            if key not in known:
                known[key] = self.guard.holds(principal)
            return known[key]

        self.sessions.end_unadmitted(holds)
        for stream, principal in list(self.streams.items()):
            if not holds(principal):
                stream.end()

    async def stop(self) -> None:
        """Take nothing new, wait for the running requests, then end the streams."""
        self.is_stopping = True
        while self.running:
            await asyncio.sleep(_STOP_INTERVAL_S)
        self.end_all()

    def end_all(self) -> None:
        """End every session and stream, each with its last messages."""
        self.sessions.close()
        for stream in list(self.streams):
            stream.end()


def _called_tool(server: Server, message: Message) -> Tool | None:
    """Return the tool that a message calls, if there is such a tool."""
    subject = message.subject if message.method == "tools/call" else None
    return server.dialect.tools.get(subject) if isinstance(subject, str) else None
