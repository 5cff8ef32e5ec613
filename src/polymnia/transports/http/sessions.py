"""HTTP sessions: found by their id, ended when idle, bounded in number."""

import asyncio
import itertools
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from polymnia.dialects.base import Client
from polymnia.errors import Refused
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import Principal
from polymnia.transports.http.stream import EventStream

# When all sessions are taken, one that was idle for this long may be ended for another. One that
# was never used may be ended sooner: clients use a session as soon as they have it.
USED_IDLE_S = 60
UNUSED_IDLE_S = 2


GroupKey = tuple[str, str]


class HttpSession:
    """One client's session and the stream that takes its notifications."""

    def __init__(self, identifier: str, server: Server, client: Client, peer: str) -> None:
        self.id = identifier
        self.principal = client.principal
        self.path = ""
        # Sessions with the same token and address share a quota.
        self.group: GroupKey = (client.principal.id, peer)
        self.used_at = time.monotonic()
        self.requests = 1
        # The requests that are being answered.
        self.running = 0
        self.stream: EventStream | None = None
        # The last stream that took the notifications, which a client may resume.
        self.own_stream: EventStream | None = None
        self.is_closed = False
        self._numbers = itertools.count(1)
        self._resumable: dict[int, EventStream] = {}
        self._loop = asyncio.get_running_loop()
        self.session = Session(server, client=client, wake=self._wake, is_remote=True)

    def attach(self, stream: EventStream) -> None:
        """Send notifications to the stream. An earlier stream ends."""
        self.own_stream = stream
        if self.stream is not None and self.stream is not stream:
            self.stream.end()
        self.stream = stream
        self._forward()

    def keep(self, stream: EventStream) -> None:
        """Number a stream, so that the client can resume it.

        At the limit, forget a finished one.
        """
        stream.number = next(self._numbers)
        self._resumable[stream.number] = stream
        # A client can resume four streams. A further one replaces a finished one; if there is
        # none, it cannot be resumed.
        if len(self._resumable) > 4:
            finished = [number for number, kept in self._resumable.items() if kept.is_over]
            del self._resumable[finished[0] if finished else stream.number]

    def resumable(self, number: int) -> EventStream | None:
        """Return the stream with that number, if it is kept."""
        return self._resumable.get(number)

    def detach(self, stream: EventStream) -> None:
        """Keep notifications until another stream is attached."""
        if self.stream is stream:
            self.stream = None

    def send(self, reply: bytes | None) -> None:
        """Send a reply on the stream, after the notifications before it."""
        if reply is not None:
            self.session.outbox.append(reply)
            self._forward()

    def may_be_ended(self, now: float) -> bool:
        """Return True if the session was idle long enough to make room for another."""
        timeout = USED_IDLE_S if self.is_used else UNUSED_IDLE_S
        return self.is_idle and now - self.used_at > timeout

    @property
    def is_used(self) -> bool:
        return self.requests > 2  # the first two are the handshake

    @property
    def is_idle(self) -> bool:
        return self.stream is None and not self.running

    def close(self) -> None:
        """End the session. Queued messages are still sent."""
        self.is_closed = True
        self.session.close()
        self._forward()
        if self.stream is not None:
            self.stream.end()

    def _wake(self) -> None:
        """Forward a notification. Called from any thread."""
        self._loop.call_soon_threadsafe(self._forward)

    def _forward(self) -> None:
        outbox = self.session.outbox
        # Notifications that are kept while a client has no stream open.
        while outbox and (self.stream is not None or len(outbox) > 1000):
            message = outbox.popleft()
            if self.stream is not None:
                self.stream.put(message)


class HttpSessions:
    """All sessions, the least recently used first."""

    def __init__(self, *, limit: int, idle_s: float) -> None:
        """`idle_s` is how long a session may be idle."""
        self._limit = limit
        self._idle_s = idle_s
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, server: Server, client: Client, *, peer: str = "", path: str = ""
    ) -> HttpSession:
        """Return a new session, which is valid on one path. Raise Refused if all are taken."""
        self.expire()
        if len(self._sessions) >= self._limit:
            self._make_room((client.principal.id, peer))
        identifier = secrets.token_urlsafe(24)
        client.session = client.session or identifier
        session = HttpSession(identifier, server, client, peer)
        session.path = path
        self._sessions[identifier] = session
        return session

    def find(self, identifier: str, principal: Principal, path: str) -> HttpSession:
        """Return the principal's session with that id, opened on the path. Raise Refused."""
        session = self._sessions.get(identifier)
        if session is None or session.path != path or not session.principal.is_same(principal):
            raise Refused(404, "there is no such session; initialize again", code=-32001)
        # A renewed token expires later, and its limits may have changed.
        session.principal = session.session.client.principal = principal
        session.requests += 1
        self.touch(session)
        return session

    def touch(self, session: HttpSession) -> None:
        """Make a session the most recently used."""
        if session.id in self._sessions:
            session.used_at = time.monotonic()
            self._sessions.move_to_end(session.id)

    def end(self, session: HttpSession) -> None:
        """End a session."""
        if self._sessions.pop(session.id, None) is not None:
            session.close()

    def expire(self) -> None:
        """End the sessions that were idle for too long."""
        latest = time.monotonic() - self._idle_s
        for session in list(self._sessions.values()):
            if session.used_at >= latest:
                return  # the rest was used later still
            if session.is_idle:
                self.end(session)

    def end_unadmitted(self, holds: Callable[[Principal], bool]) -> None:
        """End the sessions of principals that are no longer admitted."""
        for session in list(self._sessions.values()):
            if not holds(session.principal):
                self.end(session)

    def close(self) -> None:
        """End every session."""
        for session in list(self._sessions.values()):
            self.end(session)

    def _make_room(self, newcomer: GroupKey) -> None:
        """End a session of the largest group: a client that opens very many loses its own."""
        groups = Counter(session.group for session in self._sessions.values())
        largest, _ = groups.most_common(1)[0]
        idle = []
        for session in self._sessions.values():  # the longest idle first
            if session.group == largest and session.is_idle:
                idle.append(session)
        idle.sort(key=lambda session: session.is_used)
        now = time.monotonic()
        for session in idle:
            if largest != newcomer or session.may_be_ended(now):
                self.end(session)
                return
        message = f"all {self._limit} sessions are in use; try again later"
        raise Refused(503, message, code=-32000, headers={"retry-after": str(UNUSED_IDLE_S)})
