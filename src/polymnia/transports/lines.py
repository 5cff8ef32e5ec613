"""Sessions that exchange one message per line, which stdio and TCP share."""

import logging
import os
import select
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock

from msgspec import UNSET

from polymnia.dialects.base import Client
from polymnia.errors import ProtocolError
from polymnia.mcp.handled import PLAIN, UNKNOWN, Delivery, Handled
from polymnia.mcp.jsonrpc import (
    INVALID_REQUEST,
    NO_ID,
    Answer,
    Message,
    RequestId,
    encode_error,
    request_id,
)
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session, cancelled_request, parse
from polymnia.model import OWNER, Principal
from polymnia.transports.call_queue import CallQueue
from polymnia.transports.request_log import RequestRecord, access_logger

# A ping overtakes calls that run for longer than this. Clients that send several requests at once expect replies in
# order.
OVERTAKE_AFTER_S = 0.2


class LineSplitter:
    """Whole lines out of chunks of bytes. A line beyond the limit is discarded and returned as None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._length = 0
        self._is_discarding = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that the chunk completes."""
        if not self._length and -1 < chunk.find(b"\n") == len(chunk) - 1 <= self._limit:
            return [chunk[:-1]]  # one whole line, as nearly every chunk is
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
            self._is_discarding = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self, end: bytes) -> bytes | None:
        self._add(end)
        line = None if self._is_discarding else b"".join(self._parts)
        self._parts, self._length, self._is_discarding = [], 0, False
        return line


class LineSession:
    """One client's session and the function that writes to it."""

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
        """`wake` is called when a notification is queued; without it, notifications are written at once.
        `on_lost` is called from a thread when a reply cannot be written: it ends the wait for the next message.

        Requests of a client with a remote address are logged. Those of a local client are logged for debugging only.
        """
        client = Client(principal=principal, workspace=server.workspace, session=session)
        self.session = Session(
            server,
            client=client,
            admit=admit,
            wake=wake or self._flush_or_ignore,
            is_remote=bool(remote_address),
        )
        self._remote_address = remote_address
        is_logged = remote_address or access_logger.isEnabledFor(logging.DEBUG)
        self._delivery = Delivery(observe=self._log) if is_logged else PLAIN
        self._splitter = LineSplitter(limit)
        self._limit = limit
        self._write = write
        # Other threads send notifications while a reply is being written.
        self._writing = Lock()
        self._is_finished = False
        self._calls = CallQueue(self._answer_call)
        self._failure: OSError | None = None
        self._on_lost = on_lost

    def receive(self, chunk: bytes) -> None:
        """Answer the messages that the chunk completes, in order. Those that may take long are answered on a thread.

        Raise OSError if the client cannot be written to.
        """
        for line in self._splitter.feed(chunk):
            self._take(line)

    def finish(self, *, is_cut: bool = False) -> None:
        """End the session. A last line without a newline is answered, unless the server cut the input off."""
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
        """Write notifications during a request. If the client is gone, the next reply will find out."""
        with suppress(OSError):
            self.flush()

    def close(self) -> None:
        """End the session without finishing what is left."""
        self._calls.close()
        self.session.close()

    def _take(self, line: bytes | None) -> None:
        """Answer a message here if it is short, or if it cannot wait for those that run."""
        self._require_client()
        if line is None:
            self._reply(self._refuse_long_line())
            return
        message = parse(line)
        if self._calls.is_idle or (message.method == "ping" and self._calls.join(OVERTAKE_AFTER_S)):
            answer = self.session.handle_inline(message, len(line), self._delivery)
        else:
            answer = self._overtake(message)
        if answer is None:
            self._calls.put(message, len(line))
        else:
            self._reply(answer.body)

    def _overtake(self, message: Message) -> Answer | None:
        """Handle a notification or a ping while other messages run. Return None if the message must wait."""
        if (
            (message.is_request and message.method != "ping")
            or message.batch is not None
            or message.is_response
        ):
            return None
        if (cancelled := cancelled_request(message)) is not None:
            self._calls.drop(partial(_has_id, cancelled))
        return self.session.handle(message, self._delivery)

    def _answer_call(self, message: Message) -> None:
        try:
            self._reply(self.session.handle(message, self._delivery).body)
        except OSError as exc:
            self._failure = exc
            self._calls.close()
            self._on_lost()

    def _require_client(self) -> None:
        """Raise OSError if a reply could not be written."""
        if self._failure is not None:
            raise self._failure

    def _reply(self, reply: bytes | None) -> None:
        if self.session.outbox:
            self.flush()
        if reply is not None:
            with self._writing:
                self._write(reply + b"\n")

    def _refuse_long_line(self) -> bytes:
        message = f"message too long: at most {self._limit} bytes; it was discarded"
        if self._delivery.observe is not None:
            self._delivery.observe(
                Handled(method=UNKNOWN, outcome="error", error_code=INVALID_REQUEST)
            )
        return encode_error(NO_ID, ProtocolError(INVALID_REQUEST, message))

    def _log(self, handled: Handled) -> None:
        record = RequestRecord(
            client=self._remote_address, principal=self.session.client.principal, handled=[handled]
        )
        if self._remote_address:
            record.log("TCP request", handled.seconds, is_failed=record.is_failed)
        else:
            record.log_at(logging.DEBUG, "request", handled.seconds)


def _has_id(identifier: RequestId, message: Message) -> bool:
    try:
        return (
            message.is_request and message.id is not UNSET and request_id(message.id) == identifier
        )
    except ProtocolError:
        return False


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything to a file descriptor, also to one that does not block."""
    sent = 0
    while sent < len(data):
        try:
            sent += os.write(descriptor, memoryview(data)[sent:] if sent else data)
        except BlockingIOError:
            select.select([], [descriptor], [])
