"""A session at the end of a line: chunks of bytes in, lines of bytes out. What stdio and TCP share."""

from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from polymnia.dialects.base import Client
from polymnia.errors import ProtocolError
from polymnia.mcp.jsonrpc import INVALID_REQUEST, NO_ID, error_reply
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import OWNER, Principal
from polymnia.transports.lines import Lines

_CANCELLATION = b"notifications/cancelled"


class Link:
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
    ) -> None:
        """`wake` is called when a notification is queued; without it, it is written at once."""
        client = Client(principal=principal, workspace=server.workspace, session=session)
        self.session = Session(server, client=client, admit=admit, wake=wake or self._flush_if_there)
        self._lines = Lines(limit)
        self._limit = limit
        self._write = write
        # Notifications may come from another thread, in the middle of a reply.
        self._writing = Lock()
        self._is_over = False

    def take(self, chunk: bytes) -> None:
        """Answer the messages that the chunk completes, in order, each reply written before the next is begun."""
        lines = self._lines.feed(chunk)
        if len(lines) > 1:  # else nothing waits behind another
            for line in lines:
                if line is not None and _CANCELLATION in line:
                    self.session.foresee(line)
        for line in lines:
            self._answer(line)

    def finish(self, *, cut: bool = False) -> None:
        """The input has ended: answer a last line without its newline, unless it was cut off here, and say goodbye."""
        if not cut:
            self._answer(self._lines.rest())
        self.session.close()
        self.flush()
        with self._writing:
            self._is_over = True

    def flush(self) -> None:
        """Write the notifications that are queued."""
        outbox = self.session.outbox
        with self._writing:
            while outbox and not self._is_over:
                self._write(outbox.popleft() + b"\n")

    def _flush_if_there(self) -> None:
        """Amid a request: that the client is gone is for the next reply to find out, not for the request."""
        with suppress(OSError):
            self.flush()

    def _answer(self, line: bytes | None) -> None:
        reply = self._too_long() if line is None else self.session.handle(line)
        if self.session.outbox:
            self.flush()
        if reply is not None:
            with self._writing:
                self._write(reply + b"\n")

    def _too_long(self) -> bytes:
        message = f"a message may have {self._limit} bytes at most; this one was dropped"
        return error_reply(NO_ID, ProtocolError(INVALID_REQUEST, message))
