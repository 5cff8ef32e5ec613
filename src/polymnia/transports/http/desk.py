"""What all endpoints of a server share: the gate, the seats, the threads and the bounds."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct, field

from polymnia.errors import Refused
from polymnia.transports.http.gate import Gate
from polymnia.transports.http.sessions import Sessions
from polymnia.transports.http.stream import Stream

T = TypeVar("T")

# How often a server that stops looks whether it can, in seconds.
_GLANCE = 0.02


class Desk(Struct, kw_only=True):
    """One per process."""

    gate: Gate
    sessions: Sessions
    pool: Executor
    # How long a message may be, in bytes.
    limit: int
    # Open streams of clients without a session; a server that stops ends them.
    streams: set[Stream] = field(default_factory=set)
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

    async def run(self, work: Callable[[], T]) -> T:
        """Do it on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    def check_open(self) -> None:
        """Raises Refused when the server is about to stop."""
        if self.is_stopping:
            raise Refused(503, "the server is stopping", code=-32000, headers={"connection": "close"})

    async def stop(self) -> None:
        """Take nothing new, finish the work in hand, then end what would never end by itself."""
        self.is_stopping = True
        while self.in_hand:
            await asyncio.sleep(_GLANCE)
        self.sessions.close()
        for stream in list(self.streams):
            stream.end()
