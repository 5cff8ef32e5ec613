"""The conversations of clients that keep one: found by their id, let go when idle, bounded in number."""

import asyncio
import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from polymnia.dialects.base import Client
from polymnia.errors import Refused
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import Principal
from polymnia.transports.http.stream import Stream

# A conversation that was idle for so many seconds makes room for a new one when all places are taken; one that was
# only opened, sooner: whoever means to use it does so at once.
_YIELDS_AFTER = 60
_UNUSED_YIELDS_AFTER = 2
# Two uses are those of a client that has only introduced itself.
_INTRODUCED = 2
# Notifications kept for a client that has no stream open just now.
_MOST_KEPT = 1000


class Seat:
    """One client's conversation and the stream its notifications go to."""

    def __init__(self, identifier: str, server: Server, client: Client, peer: str) -> None:
        self.id = identifier
        self.principal = client.principal
        # Those who share a token and an address share their fate when there are too many.
        self.party = (client.principal.id, peer)
        self.used_at = time.monotonic()
        self.uses = 1
        self.in_hand = 0
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

    @contextmanager
    def working(self) -> Iterator[None]:
        """While a message of it is in hand."""
        self.in_hand += 1
        try:
            yield
        finally:
            self.in_hand -= 1

    def may_yield(self, now: float) -> bool:
        """Whether it has rested long enough to make room for another."""
        patience = _UNUSED_YIELDS_AFTER if self.uses <= _INTRODUCED else _YIELDS_AFTER
        return self.is_at_rest and now - self.used_at > patience

    @property
    def is_at_rest(self) -> bool:
        return self.stream is None and not self.in_hand

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


class _Party:
    """The seats of those who share a token and an address, the longest at rest first."""

    def __init__(self) -> None:
        self.introduced: OrderedDict[str, Seat] = OrderedDict()
        self.used: OrderedDict[str, Seat] = OrderedDict()

    def __len__(self) -> int:
        return len(self.introduced) + len(self.used)

    def put(self, seat: Seat) -> None:
        """It was opened, or used just now."""
        self.drop(seat)
        (self.introduced if seat.uses <= _INTRODUCED else self.used)[seat.id] = seat

    def drop(self, seat: Seat) -> None:
        self.introduced.pop(seat.id, None)
        self.used.pop(seat.id, None)

    def yields(self, now: float | None) -> Seat | None:
        """The seat that is missed least; with a time, only one that has rested long enough by then."""
        for seats in (self.introduced, self.used):
            resting = next((each for each in seats.values() if each.is_at_rest), None)
            if resting is not None and (now is None or resting.may_yield(now)):
                return resting
        return None


class Sessions:
    """Everyone who has a seat, the least recently used first."""

    def __init__(self, *, most: int, idle: float, prefix: str = "") -> None:
        """`prefix` begins every id; `idle` is how many seconds a conversation may rest."""
        self._most = most
        self._idle = idle
        self._prefix = prefix
        self._seats: OrderedDict[str, Seat] = OrderedDict()
        self._parties: dict[tuple[str, str], _Party] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def open(self, server: Server, client: Client, *, peer: str = "") -> Seat:
        """A new conversation. Raises Refused when all seats are taken."""
        self.expire()
        if len(self._seats) >= self._most:
            self._make_room((client.principal.id, peer))
        identifier = self._prefix + secrets.token_urlsafe(24)
        client.session = client.session or identifier
        seat = Seat(identifier, server, client, peer)
        self._seats[identifier] = seat
        self._parties.setdefault(seat.party, _Party()).put(seat)
        return seat

    def find(self, identifier: str, principal: Principal) -> Seat:
        """The conversation of that id, if it is this principal's. Raises Refused."""
        seat = self._seats.get(identifier)
        if seat is None or not seat.principal.is_same(principal):
            raise Refused(404, "there is no such session, or no longer; initialize again", code=-32001)
        seat.principal = principal  # a token that was renewed lasts longer
        seat.uses += 1
        self.touch(seat)
        return seat

    def touch(self, seat: Seat) -> None:
        """It was used just now."""
        if seat.id in self._seats:
            seat.used_at = time.monotonic()
            self._seats.move_to_end(seat.id)
            self._parties[seat.party].put(seat)

    def end(self, seat: Seat) -> None:
        if self._seats.pop(seat.id, None) is None:
            return
        party = self._parties[seat.party]
        party.drop(seat)
        if not party:
            del self._parties[seat.party]
        seat.close()

    def expire(self) -> None:
        """Let go of those that have rested too long."""
        limit = time.monotonic() - self._idle
        resting = itertools.takewhile(lambda seat: seat.used_at < limit, self._seats.values())
        for seat in [each for each in resting if each.is_at_rest]:
            self.end(seat)

    def dismiss(self, holds: Callable[[Principal], bool]) -> None:
        """Let go of those who would not be let in any more."""
        for seat in [each for each in self._seats.values() if not holds(each.principal)]:
            self.end(seat)

    def close(self) -> None:
        for seat in list(self._seats.values()):
            self.end(seat)

    def _make_room(self, party: tuple[str, str]) -> None:
        """Let go of one seat: of the party with the most, so that who opens very many pushes out only their own."""
        largest = max(self._parties, key=lambda each: len(self._parties[each]))
        seat = self._parties[largest].yields(time.monotonic() if largest == party else None)
        if seat is None:
            message = f"all {self._most} sessions are in use; try again later"
            raise Refused(503, message, code=-32000, headers={"retry-after": str(_UNUSED_YIELDS_AFTER)})
        self.end(seat)
