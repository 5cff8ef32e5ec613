"""What all endpoints of a server share: the guard, the sessions, the threads and the bounds."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from msgspec import Struct, field

from polymnia.errors import Refused
from polymnia.mcp.message import PARSE_ERROR, Message
from polymnia.mcp.methods import MAX_INLINE_BYTES
from polymnia.mcp.session import parse
from polymnia.model import Principal
from polymnia.transports.address import TrustedProxies
from polymnia.transports.http.connection import Connections
from polymnia.transports.http.guard import RequestGuard
from polymnia.transports.http.request import ByteBudget, HttpRequest
from polymnia.transports.http.sessions import HttpSessions
from polymnia.transports.http.stream import EventStream
from polymnia.transports.http.workers import Workers

T = TypeVar("T")


class HttpContext(Struct, kw_only=True):
    """The shared state of one process."""

    guard: RequestGuard
    sessions: HttpSessions
    connections: Connections
    # Tools that only read, and everything else: writes that wait for the disk share a commit.
    readers: Workers
    writers: Workers
    # For work that pages of the web interface start in the background.
    pool: Executor
    # The limit for one message, and the budget for all that are being handled.
    max_message_bytes: int
    budget: ByteBudget
    # Open streams of clients without a session, with their principals. A stopping server ends them.
    streams: dict[EventStream, Principal] = field(default_factory=dict)
    # The path of the public URL, under which a proxy serves everything; empty if there is none.
    public_path: str = ""
    proxies: TrustedProxies = TrustedProxies()
    # How late the event loop was at the last measurement.
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

    async def read(self, request: HttpRequest) -> tuple[bytes, Message]:
        """Return the body of a request and the message in it. Raise Refused."""
        body = await request.read(limit=self.max_message_bytes, budget=self.budget)
        if len(body) <= MAX_INLINE_BYTES:
            message = parse(body)
        else:
            message = await self.run(partial(parse, body))
        if message.problem is not None and message.problem.code == PARSE_ERROR:
            raise Refused(400, str(message.problem), code=PARSE_ERROR)
        return body, message

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on a worker thread."""
        return await self.writers.run(work)

    def check_open(self) -> None:
        """Raise Refused if the server is stopping."""
        if self.is_stopping:
            raise Refused(
                503, "the server is stopping", code=-32000, headers={"connection": "close"}
            )

    def end_unadmitted(self) -> None:
        """End the sessions and streams of principals that are no longer admitted."""
        verdicts: dict[Principal, bool] = {}

        def holds(principal: Principal) -> bool:
            """Ask the guard once for all sessions of a principal."""
            if principal not in verdicts:
                verdicts[principal] = self.guard.holds(principal)
            return verdicts[principal]

        self.sessions.end_unadmitted(holds)
        for stream, principal in list(self.streams.items()):
            if not holds(principal):
                stream.end()

    async def stop(self) -> None:
        """Refuse new requests, wait for the running ones, then end the streams."""
        self.is_stopping = True
        while self.running:
            await asyncio.sleep(0.02)
        self.end_all()

    def end_all(self) -> None:
        """End every session and stream, each with its last messages."""
        self.sessions.close()
        for stream in list(self.streams):
            stream.end()
