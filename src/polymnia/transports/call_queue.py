"""Messages that may take long: answered in order on a thread, while the client keeps sending."""

import threading
from collections import deque
from collections.abc import Callable

from polymnia.mcp.jsonrpc import Message

# Nothing more is read from a client with this many bytes queued until some of them are answered.
MAX_QUEUED_BYTES = 1 << 20
# A shorter message counts as this many bytes.
_MIN_MESSAGE_BYTES = 1024


class CallQueue:
    """The waiting messages of one client and the thread that answers them, which starts with the first."""

    def __init__(self, answer: Callable[[Message], None]) -> None:
        self._answer = answer
        self._waiting: deque[tuple[Message, int]] = deque()
        self._changed = threading.Condition()
        self._queued_bytes = 0
        self._thread: threading.Thread | None = None
        self._is_closed = False
        # True while nothing runs or waits.
        self.is_idle = True

    def put(self, message: Message, size: int) -> None:
        """Queue a message. Wait while too much is queued already."""
        size = max(size, _MIN_MESSAGE_BYTES)
        with self._changed:
            self._changed.wait_for(
                lambda: self.is_idle or self._queued_bytes + size <= MAX_QUEUED_BYTES
            )
            self._waiting.append((message, size))
            self._queued_bytes += size
            self.is_idle = False
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="polymnia-calls", daemon=True
                )
                self._thread.start()

    def drop(self, is_unwanted: Callable[[Message], bool]) -> None:
        """Forget the waiting messages that are no longer wanted."""
        with self._changed:
            kept = [each for each in self._waiting if not is_unwanted(each[0])]
            self._queued_bytes -= sum(size for _, size in self._waiting) - sum(
                size for _, size in kept
            )
            self._waiting = deque(kept)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until every message is answered. Return False if that takes longer than the timeout, in seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_idle, timeout)

    def close(self) -> None:
        """Forget the waiting messages, and end the thread after the current one."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            message, size = taken
            try:
                self._answer(message)
            finally:
                self._finish(size)

    def _take(self) -> tuple[Message, int] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return self._waiting.popleft() if self._waiting else None

    def _finish(self, size: int) -> None:
        with self._changed:
            self._queued_bytes -= size
            self.is_idle = not self._waiting
            self._changed.notify_all()
