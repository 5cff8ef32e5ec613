"""What all endpoints of a server share: the gate, the seats, the threads and the bounds."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct, field

from polymnia.errors import Refused
from polymnia.model import Principal
from polymnia.transports.http.gate import Gate
from polymnia.transports.http.sessions import Sessions
from polymnia.transports.http.stream import Stream
from polymnia.transports.http.visit import Room, Visit

T = TypeVar("T")

# How often a server that stops looks whether it can, in seconds.
_GLANCE = 0.02


class Desk(Struct, kw_only=True):
    """One per process."""

    gate: Gate
    sessions: Sessions
    pool: Executor
    # How long a message may be, in bytes, and how much all that are in hand.
    limit: int
    room: Room
    # Open streams of clients without a session, and whose they are; a server that stops ends them.
    streams: dict[Stream, Principal] = field(default_factory=dict)
    is_stopping: bool = False
    in_hand: int = 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """While a message is in hand: a server that stops waits for it."""
        self.in_hand += 1
        try:
            yield
        finally:
            self.in_hand -= 1

    async def body(self, visit: Visit) -> bytes:
        """The whole body of a request, within the bounds. Raises Refused."""
        return await visit.body(limit=self.limit, room=self.room)

    async def run(self, work: Callable[[], T]) -> T:
        """Do it on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    def check_open(self) -> None:
        """Raises Refused when the server is about to stop."""
        if self.is_stopping:
            raise Refused(503, "the server is stopping", code=-32000, headers={"connection": "close"})

    def dismiss(self) -> None:
        """End the sessions and streams of those who would not be let in any more."""
        known: dict[tuple[str, int | None], bool] = {}

        def holds(principal: Principal) -> bool:
            key = (principal.id, principal.until)
            if key not in known:
                known[key] = self.gate.holds(principal)
            return known[key]

        self.sessions.dismiss(holds)
        for stream, principal in list(self.streams.items()):
            if not holds(principal):
                stream.end()

    async def stop(self) -> None:
        """Take nothing new, finish the work in hand, then end what would never end by itself."""
        self.is_stopping = True
        while self.in_hand:
            await asyncio.sleep(_GLANCE)
        self.end_all()

    def end_all(self) -> None:
        """End every session and stream, each with its last words."""
        self.sessions.close()
        for stream in list(self.streams):
            stream.end()
