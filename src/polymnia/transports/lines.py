"""Sessions that exchange one message per line, which stdio and TCP share."""

import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from msgspec import UNSET

from polymnia.dialects.base import Client
from polymnia.errors import ProtocolError
from polymnia.mcp.message import (
    INVALID_REQUEST,
    NO_ID,
    Answer,
    Channel,
    Message,
    RequestId,
    error_answer,
    request_id,
)
from polymnia.mcp.server import Server
from polymnia.mcp.session import UNKNOWN, Session, cancelled_request, parse
from polymnia.model import OWNER, Principal
from polymnia.transports.request_log import RequestRecord, access_logger

# Nothing more is read from a client with this many bytes queued until some are answered.
MAX_QUEUED_BYTES = 1 << 20


class LineSplitter:
    """Whole lines out of chunks of bytes. A line beyond the limit is discarded: it is None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that the chunk completes."""
        *ends, rest = chunk.split(b"\n")
        lines = [self._finish(end) for end in ends]
        self._add(rest)
        return lines

    def rest(self) -> bytes | None:
        """Return the last line of a stream that ends without a newline; empty if there is none."""
        return self._finish(b"")

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._limit:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self, end: bytes) -> bytes | None:
        self._add(end)
        line = None if self._length > self._limit else b"".join(self._parts)
        self._parts, self._length = [], 0
        return line


class CallQueue:
    """The waiting messages of one client and the thread that answers them in order.

    The thread starts with the first message. The client keeps sending meanwhile.
    """

    def __init__(self, answer: Callable[[Message], None]) -> None:
        self._answer = answer
        self._waiting: deque[tuple[Message, int]] = deque()
        self._changed = threading.Condition()
        # Wakes the thread, for half of what waiting for the condition would cost each message.
        self._ready: SimpleQueue[None] = SimpleQueue()
        self._queued_bytes = 0
        self._thread: threading.Thread | None = None
        self._is_closed = False
        # True while nothing runs or waits.
        self.is_idle = True

    def put(self, message: Message, size: int) -> None:
        """Queue a message. Wait while too much is queued already."""
        size = max(size, 1024)  # what a short message takes in memory
        with self._changed:
            self._changed.wait_for(
                lambda: self.is_idle or self._queued_bytes + size <= MAX_QUEUED_BYTES
            )
            self._waiting.append((message, size))
            self._queued_bytes += size
            self.is_idle = False
            self._ready.put(None)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="polymnia-calls", daemon=True
                )
                self._thread.start()

    def drop(self, identifier: RequestId) -> None:
        """Forget the waiting requests with that id."""
        with self._changed:
            for message, size in list(self._waiting):
                if not message.is_request or message.id is UNSET:
                    continue
                with suppress(ProtocolError):
                    if request_id(message.id) == identifier:
                        self._waiting.remove((message, size))
                        self._queued_bytes -= size

    def join(self, timeout: float | None = None) -> bool:
        """Wait until every message is answered. Return False after the timeout, in seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_idle, timeout)

    def close(self) -> None:
        """Forget the waiting messages, and end the thread after the current one."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._ready.put(None)

    def _run(self) -> None:
        while not self._is_closed:
            self._ready.get()
            with self._changed:
                if not self._waiting:  # it was dropped, or the queue is closed
                    self.is_idle = True
                    self._changed.notify_all()
                    continue
                message, size = self._waiting.popleft()
            try:
                self._answer(message)
            finally:
                with self._changed:
                    self._queued_bytes -= size
                    self.is_idle = not self._waiting
                    self._changed.notify_all()


class LineSession(Channel):
    """One client's session and the function that writes to it: the channel of its messages."""

    def __init__(
        self,
        server: Server,
        write: Callable[[bytes], None],
        *,
        limit: int,
        principal: Principal = OWNER,
        session: str = "",
        admit: Callable[[str | None], Principal] | None = None,
        wake: Callable[[], None] | None = None,
        remote_address: str = "",
        on_lost: Callable[[], None],
    ) -> None:
        """Open a session for a client.

        `wake` is called when a notification is queued; without it, notifications are written at
        once. `on_lost` is called from a thread when a reply cannot be written: it ends the wait
        for the next message. Requests of a client with a remote address are logged; those of a
        local client are logged for debugging only.
        """
        client = Client(
            principal=principal,
            workspace=server.workspace,
            is_local=not remote_address,
            session=session,
        )
        self.session = Session(
            server,
            client=client,
            admit=admit,
            wake=wake or self._flush_or_ignore,
            is_remote=bool(remote_address),
        )
        self._remote_address = remote_address
        self._is_logged = bool(remote_address) or access_logger.isEnabledFor(logging.DEBUG)
        self._splitter = LineSplitter(limit)
        self._limit = limit
        self._write = write
        # Other threads send notifications while a reply is being written.
        self._writing = threading.Lock()
        self._is_finished = False
        self._calls = CallQueue(self._answer_call)
        self._failure: OSError | None = None
        self._on_lost = on_lost

    def receive(self, chunk: bytes) -> None:
        """Handle the messages that the chunk completes, in order.

        Raise OSError if the client cannot be written to.
        """
        for line in self._splitter.feed(chunk):
            self._take(line)

    def finish(self, *, is_cut: bool = False) -> None:
        """End the session.

        A last line without a newline is answered, unless the server cut the input off.
        """
        if not is_cut:
            self._take(self._splitter.rest())
        self._calls.join()
        self._require_client()
        self.session.close()
        self.flush()
        with self._writing:
            self._is_finished = True

    def flush(self) -> None:
        """Write the queued notifications."""
        outbox = self.session.outbox
        with self._writing:
            while outbox and not self._is_finished:
                self._write(outbox.popleft() + b"\n")

    def _flush_or_ignore(self) -> None:
        """Write notifications during a request. If the client is gone, the next reply shows it."""
        with suppress(OSError):
            self.flush()

    def close(self) -> None:
        """End the session without finishing what is left."""
        self._calls.close()
        self.session.close()

    def _take(self, line: bytes | None) -> None:
        """Answer a message here if it needs no store, or cannot wait for those that run."""
        self._require_client()
        if line is None:
            text = f"message too long: at most {self._limit} bytes; it was discarded"
            answer = error_answer(NO_ID, ProtocolError(INVALID_REQUEST, text))
            answer.method = UNKNOWN
            self.observe(answer)
            self._write_answer(answer)
            return
        message = parse(line)
        if (identifier := cancelled_request(message)) is not None:
            self._calls.drop(identifier)
        is_ping = message.method == "ping"
        # A ping overtakes calls that run for longer than this. Clients that send several requests
        # at once expect replies in order.
        if self._calls.is_idle or (is_ping and self._calls.join(0.2)):
            is_first = self.session.is_inline(message, len(line))
        else:
            # A ping overtakes a long call, and so do cancellations.
            is_single = message.batch is None and not message.is_response
            is_first = is_single and (is_ping or not message.is_request)
        if is_first:
            self._write_answer(self.session.handle(message, self))
        else:
            self._calls.put(message, len(line))

    def _answer_call(self, message: Message) -> None:
        """Answer a message on the thread of the queue, which must survive a lost client."""
        try:
            self._write_answer(self.session.handle(message, self))
        except OSError as exc:
            self._failure = exc
            self._calls.close()
            self._on_lost()

    def _require_client(self) -> None:
        """Raise OSError if a reply could not be written."""
        if self._failure is not None:
            raise self._failure

    def _write_answer(self, answer: Answer) -> None:
        if self.session.outbox:
            self.flush()
        if answer.body is not None:
            with self._writing:
                self._write(answer.body + b"\n")

    def notify(self, message: bytes) -> None:
        self.session.notify(message)

    def reply(self, body: bytes | None) -> None:
        self.session.reply(body)

    def observe(self, answer: Answer) -> None:
        if not self._is_logged:
            return
        record = RequestRecord(
            client=self._remote_address, principal=self.session.client.principal, messages=[answer]
        )
        if self._remote_address:
            record.log("TCP request", answer.seconds, is_failed=record.is_failed)
        else:
            record.log_at(logging.DEBUG, "request", answer.seconds)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything to a file descriptor, also to one that does not block."""
    remaining = memoryview(data)
    while remaining:
        try:
            written = os.write(descriptor, remaining)
        except BlockingIOError:
            select.select([], [descriptor], [])
        else:
            remaining = remaining[written:]
