"""Server-sent events: messages from any thread, to one client, in order."""

import asyncio
from collections import deque

from polymnia.transports.http.visit import EVENTS, Visit

# So often something is sent, in seconds, lest somebody on the way takes the silence for an end.
PULSE = 15.0
# A client that lets so many messages pile up, or so many bytes in several of them, is let go.
_MOST_QUEUED = 1000
_MOST_BYTES = 16 * 1024 * 1024

HEADERS = {"content-type": EVENTS, "cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


class Stream:
    """What is on its way to one client."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._ended = False
        self._is_lost = False

    def put(self, message: bytes) -> None:
        """Send a message; safe from any thread."""
        if self._ended:
            return
        self._waiting.append(message)
        self._size += len(message)
        if len(self._waiting) > _MOST_QUEUED or (len(self._waiting) > 1 and self._size > _MOST_BYTES):
            self._ended = self._is_lost = True
        self._loop.call_soon_threadsafe(self._news.set)

    def end(self) -> None:
        """No more will come; what is queued is still sent. Safe from any thread."""
        self._ended = True
        self._loop.call_soon_threadsafe(self._news.set)

    async def next(self, patience: float = PULSE) -> bytes | None:
        """The next message; None when there is none for so long, or the stream has ended."""
        try:
            async with asyncio.timeout(patience):
                while not self._waiting and not self._ended:
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            return None
        if not self._waiting or self._is_lost:
            return None
        message = self._waiting.popleft()
        self._size -= len(message)
        return message

    @property
    def is_over(self) -> bool:
        return self._ended and (self._is_lost or not self._waiting)

    async def pour_until_gone(self, visit: Visit) -> None:
        """Write everything until the end, which is also when the client leaves."""
        watch = self._loop.create_task(self._end_with(visit))
        try:
            await self.pour(visit)
        finally:
            watch.cancel()

    async def _end_with(self, visit: Visit) -> None:
        await visit.gone()
        self.end()

    async def pour(self, visit: Visit) -> None:
        """Write everything until the end; a pulse where nothing comes."""
        while not self.is_over:
            message = await self.next()
            if message is not None:
                await visit.write(event(message), more=True)
            elif not self.is_over:
                await visit.write(b": still here\n\n", more=True)


def event(message: bytes, name: str = "message") -> bytes:
    """One event; JSON has no line breaks outside its strings, and none inside them unescaped."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), message)
