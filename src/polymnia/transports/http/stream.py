"""Server-sent events: messages to one client in order, and again after a lost connection."""

import asyncio
import re
import time
from collections import deque
from threading import Lock

from polymnia.transports.http.request import EVENTS, HttpRequest

# A comment is sent this often, so that no proxy closes a silent stream.
PULSE_S = 15.0
# A client that lets more messages or bytes pile up is disconnected.
MAX_QUEUED_MESSAGES = 1000
MAX_QUEUED_BYTES = 16 * 1024 * 1024
# How much of a stream is kept for a client that reconnects. A longer last message is not kept.
MAX_REPLAY_MESSAGES = 100
MAX_REPLAY_BYTES = 256 * 1024
_EVENT_ID = re.compile(r"([0-9]{1,19})-([0-9]{1,19})")

HEADERS = {
    "content-type": EVENTS,
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


class EventStream:
    """Messages on their way to one client.

    A stream with a number can be resumed: its events have ids, and the last ones are kept.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queued_bytes = 0
        self._replay: deque[tuple[int, bytes]] = deque()
        self._replay_bytes = 0
        self._count = 0
        self._last: bytes | None = None
        self._news = asyncio.Event()
        # Counts the connections on which the stream was sent: only the latest one is used.
        self._connections = 0
        self._is_ended = False
        self._is_overrun = False

    def put(self, message: bytes) -> None:
        """Queue a message. Safe from any thread."""
        with self._lock:
            if self._is_ended:
                return
            self._count += 1
            self._queue.append((self._count, message))
            self._queued_bytes += len(message)
            too_large = len(self._queue) > 1 and self._queued_bytes > MAX_QUEUED_BYTES
            if too_large or len(self._queue) > MAX_QUEUED_MESSAGES:
                self._is_ended = self._is_overrun = True
        self._loop.call_soon_threadsafe(self._news.set)

    def end(self, last: bytes | None = None, *, is_on_loop: bool = False) -> None:
        """End the stream after the queued messages and a last one. Safe from any thread."""
        with self._lock:
            if not self._is_ended:
                self._last = last
            self._is_ended = True
        if is_on_loop:
            self._news.set()  # without the cost of waking the loop
        else:
            self._loop.call_soon_threadsafe(self._news.set)

    def rewind(self, received: int) -> None:
        """Queue the kept messages after that number again, for the next connection."""
        with self._lock:
            queued = {number for number, _ in self._queue}
            for number, message in reversed(self._replay):
                if number > received and number not in queued:
                    self._queue.appendleft((number, message))
                    self._queued_bytes += len(message)
            self._connections += 1
        self._news.set()

    async def wait(self, request: HttpRequest) -> bool:
        """Wait for a message. Return False if there is none after a while, or something ended."""
        connection = self._connections
        deadline = time.monotonic() + PULSE_S
        # The regular check of the connection rings: a timer for each request would cost more.
        request.connection.alarm = (deadline, self._news.set)
        try:
            while not self._queue and not self._is_ended and connection == self._connections:
                if request.is_abandoned() or time.monotonic() >= deadline:
                    return False
                await self.wait_for_news()
        finally:
            request.connection.alarm = None
        return bool(self._queue) and not self._is_overrun

    async def wait_for_news(self) -> None:
        """Wait until a message was queued, or something ended."""
        await self._news.wait()
        self._news.clear()

    @property
    def has_messages(self) -> bool:
        return bool(self._queue)

    @property
    def is_over(self) -> bool:
        """Return True if nothing but a last message may be left to send."""
        return self._is_ended and (self._is_overrun or not self._queue)

    def opening_event(self) -> bytes:
        """Return an event without a message, from which a client may resume."""
        # A client should wait a second before it reconnects.
        return b"id: %d-0\nretry: 1000\ndata: \n\n" % (self.number or 0)

    async def send(self, request: HttpRequest) -> bool:
        """Send every message, with a pulse while there is none.

        Return True when the stream has ended, and False when the client is gone or has
        reconnected.
        """
        connection = self._connections
        watch = self._loop.create_task(self._wake_with(request))
        try:
            while not self.is_over:
                has_message = await self.wait(request)
                if connection != self._connections or request.is_abandoned():
                    return False
                if has_message:
                    await request.write(self._take(), more=True)
                elif not self.is_over:
                    await request.write(b": still here\n\n", more=True)
            return connection == self._connections
        finally:
            watch.cancel()

    async def send_last(self, request: HttpRequest) -> None:
        """Send the last message and end the response."""
        last = b"" if self._last is None else self._encode(self._count + 1, self._last)
        if self.number is None or len(last) > MAX_REPLAY_BYTES:
            self._last = None
        await request.write(last, more=False)

    async def _wake_with(self, request: HttpRequest) -> None:
        await request.connection.lost.wait()
        self._news.set()

    def _take(self) -> bytes:
        """Return the next event."""
        with self._lock:
            number, message = self._queue.popleft()
            self._queued_bytes -= len(message)
            if self.number is not None and (not self._replay or self._replay[-1][0] < number):
                self._replay.append((number, message))
                self._replay_bytes += len(message)
                while (
                    len(self._replay) > MAX_REPLAY_MESSAGES or self._replay_bytes > MAX_REPLAY_BYTES
                ):
                    _, oldest = self._replay.popleft()
                    self._replay_bytes -= len(oldest)
        return self._encode(number, message)

    def _encode(self, number: int, message: bytes) -> bytes:
        event = encode_event(message)
        return event if self.number is None else b"id: %d-%d\n" % (self.number, number) + event


def encode_event(message: bytes, name: str = "message") -> bytes:
    """Return one event. Our JSON has no line breaks, which would end it."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), message)


def parse_event_id(value: str) -> tuple[int, int] | None:
    """Return the numbers of stream and message in an event's id; None if it is not ours."""
    match = _EVENT_ID.fullmatch(value)
    if match is None:
        return None
    return int(match[1]), int(match[2])
