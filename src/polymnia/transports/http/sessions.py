"""The conversations of clients that keep one: found by their id, let go when idle, bounded in number."""

import asyncio
import itertools
import secrets
import time
from collections import OrderedDict

from polymnia.dialects.base import Client
from polymnia.errors import Refused
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import Principal
from polymnia.transports.http.stream import Stream

# A conversation that was idle for so many seconds makes room for a new one when all places are taken.
_YIELDS_AFTER = 60
# Notifications kept for a client that has no stream open just now.
_MOST_KEPT = 1000


class Seat:
    """One client's conversation and the stream its notifications go to."""

    def __init__(self, identifier: str, server: Server, client: Client) -> None:
        self.id = identifier
        self.principal = client.principal.name
        self.used_at = time.monotonic()
        self.stream: Stream | None = None
        self.is_closed = False
        self._loop = asyncio.get_running_loop()
        self.session = Session(server, client=client, wake=self._wake)

    def attach(self, stream: Stream) -> None:
        """Let the stream take the notifications; one that did before ends."""
        if self.stream is not None:
            self.stream.end()
        self.stream = stream
        self._pass_on()

    def detach(self, stream: Stream) -> None:
        if self.stream is stream:
            self.stream = None

    def say(self, reply: bytes | None) -> None:
        """Put a reply on the stream, after what was told before it."""
        if reply is not None:
            self.session.outbox.append(reply)
            self._pass_on()

    def close(self) -> None:
        """End the conversation, with its last words."""
        self.is_closed = True
        self.session.close()
        self._pass_on()
        if self.stream is not None:
            self.stream.end()

    def _wake(self) -> None:
        """Called from any thread when a notification is queued."""
        self._loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        outbox = self.session.outbox
        while outbox and (self.stream is not None or len(outbox) > _MOST_KEPT):
            message = outbox.popleft()
            if self.stream is not None:
                self.stream.put(message)


class Sessions:
    """Everyone who has a seat, the least recently used first."""

    def __init__(self, *, most: int, idle: float, prefix: str = "") -> None:
        """`prefix` begins every id; `idle` is how many seconds a conversation may rest."""
        self._most = most
        self._idle = idle
        self._prefix = prefix
        self._seats: OrderedDict[str, Seat] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seats)

    def open(self, server: Server, client: Client) -> Seat:
        """A new conversation. Raises Refused when all seats are taken."""
        self.expire()
        if len(self._seats) >= self._most:
            self._make_room()
        identifier = self._prefix + secrets.token_urlsafe(24)
        client.session = client.session or identifier
        seat = Seat(identifier, server, client)
        self._seats[identifier] = seat
        return seat

    def find(self, identifier: str, principal: Principal) -> Seat:
        """The conversation of that id, if it is this principal's. Raises Refused."""
        seat = self._seats.get(identifier)
        if seat is None or seat.principal != principal.name:
            raise Refused(404, "there is no such session, or no longer; initialize again", code=-32001)
        self.touch(seat)
        return seat

    def touch(self, seat: Seat) -> None:
        """It was used just now."""
        if seat.id in self._seats:
            seat.used_at = time.monotonic()
            self._seats.move_to_end(seat.id)

    def end(self, seat: Seat) -> None:
        if self._seats.pop(seat.id, None) is not None:
            seat.close()

    def expire(self) -> None:
        """Let go of those that have rested too long."""
        limit = time.monotonic() - self._idle
        resting = itertools.takewhile(lambda seat: seat.used_at < limit, self._seats.values())
        for seat in [each for each in resting if each.stream is None]:
            self.end(seat)

    def close(self) -> None:
        for seat in list(self._seats.values()):
            self.end(seat)

    def _make_room(self) -> None:
        limit = time.monotonic() - _YIELDS_AFTER
        oldest = next((each for each in self._seats.values() if each.stream is None), None)
        if oldest is None or oldest.used_at > limit:
            message = f"all {self._most} sessions are in use; try again later"
            raise Refused(503, message, code=-32000, headers={"retry-after": str(_YIELDS_AFTER)})
        self.end(oldest)
