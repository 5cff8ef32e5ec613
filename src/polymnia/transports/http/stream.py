"""Server-sent events: messages from any thread to one client, in order."""

import asyncio
from collections import deque

from polymnia.transports.http.request import EVENTS, Request

# A comment is sent this often, so that no proxy takes the silence for an end.
PULSE_S = 15.0
# A client that lets more messages or bytes pile up is disconnected.
MAX_QUEUED_MESSAGES = 1000
MAX_QUEUED_BYTES = 16 * 1024 * 1024

HEADERS = {"content-type": EVENTS, "cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


class EventStream:
    """Messages on their way to one client."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._news = asyncio.Event()
        self._is_ended = False
        self._is_overrun = False

    def put(self, message: bytes) -> None:
        """Queue a message. Safe from any thread."""
        if self._is_ended:
            return
        self._queue.append(message)
        self._queued_bytes += len(message)
        too_large = len(self._queue) > 1 and self._queued_bytes > MAX_QUEUED_BYTES
        if too_large or len(self._queue) > MAX_QUEUED_MESSAGES:
            self._is_ended = self._is_overrun = True
        self._loop.call_soon_threadsafe(self._news.set)

    def put_last(self, message: bytes | None) -> None:
        """Queue the last message, if there is one, and end the stream after it. Safe from any thread."""
        if message is not None:
            self.put(message)
        self.end()

    def end(self) -> None:
        """End the stream after the queued messages. Safe from any thread."""
        self._is_ended = True
        self._loop.call_soon_threadsafe(self._news.set)

    async def next(self) -> bytes | None:
        """Return the next message; None if it is time for a pulse or the stream has ended."""
        try:
            async with asyncio.timeout(PULSE_S):
                while not self._queue and not self._is_ended:
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            return None
        if not self._queue or self._is_overrun:
            return None
        message = self._queue.popleft()
        self._queued_bytes -= len(message)
        return message

    @property
    def is_over(self) -> bool:
        return self._is_ended and (self._is_overrun or not self._queue)

    async def send_until_gone(self, request: Request) -> None:
        """Send every message until the stream ends or the client leaves."""
        watch = self._loop.create_task(self._end_with(request))
        try:
            await self.send(request)
        finally:
            watch.cancel()

    async def _end_with(self, request: Request) -> None:
        await request.connection.lost.wait()
        self.end()

    async def send(self, request: Request) -> None:
        """Send every message until the stream ends, with a pulse while there is none."""
        while not self.is_over:
            message = await self.next()
            if message is not None:
                await request.write(encode_event(message), more=True)
            elif not self.is_over:
                await request.write(b": still here\n\n", more=True)


def encode_event(message: bytes, name: str = "message") -> bytes:
    """Return one event. JSON has no unescaped line breaks inside its strings, and ours has none outside."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), message)
