"""The older way over HTTP: a stream that stays open, and a path of its own to post messages to."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from polymnia.errors import Refused
from polymnia.mcp.exchange import Arrival
from polymnia.mcp.glance import glance
from polymnia.mcp.server import Server
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.gate import named_workspace
from polymnia.transports.http.sessions import Seat
from polymnia.transports.http.stream import HEADERS, Stream, event
from polymnia.transports.http.visit import JSON, Receive, Send, Visit

# Messages of one client that may wait for a thread: the answer to its post comes before they have one.
_MOST_IN_HAND = 32


class Legacy:
    """`/sse` and `/sse/messages/` of one dialect, as an ASGI application."""

    def __init__(self, server: Server, desk: Desk, path: str) -> None:
        self._server = server
        self._desk = desk
        self._path = path

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        visit = Visit(scope, receive, send)
        posts = visit.path.rstrip("/") == f"{self._path}/messages"
        try:
            self._desk.gate.check_place(visit)
            self._desk.check_open()
            if posts and visit.method == "POST":
                await self._post(visit)
            elif not posts and visit.method == "GET":
                await self._listen(visit)
            else:
                raise Refused(405, f"{visit.method} has no meaning here", headers={"allow": "POST" if posts else "GET"})
        except Refused as refusal:
            await visit.refuse(refusal)
        finally:
            visit.leave()

    async def _listen(self, visit: Visit) -> None:
        """The stream; the conversation lasts as long."""
        visit.require_streams()
        principal = self._desk.gate.principal(visit)
        client = self._desk.gate.client(visit, principal, self._server)
        seat = self._desk.sessions.open(self._server, client, peer=visit.peer)
        stream = Stream()
        try:
            await visit.start(200, HEADERS)
            place = f"{self._path}/messages/?session_id={seat.id}"
            await visit.write(event(place.encode(), "endpoint"), more=True)
            seat.attach(stream)
            await stream.pour_until_gone(visit)
            await visit.write(b"", more=False)
        finally:
            seat.detach(stream)
            self._desk.sessions.end(seat)

    async def _post(self, visit: Visit) -> None:
        """A message; its answer comes on the stream."""
        principal = self._desk.gate.principal(visit)
        if not (visit.header(b"content-type") or JSON).lower().startswith(JSON):
            raise Refused(415, f"a message is sent as {JSON}")
        identifier = parse_qs(visit.query.decode("latin-1")).get("session_id", [""])[0]
        seat = self._desk.sessions.find(identifier, principal)
        if seat.in_hand >= _MOST_IN_HAND:
            message = f"{_MOST_IN_HAND} messages of this session wait for their answers; take some first"
            raise Refused(429, message, code=-32000, headers={"retry-after": "1"})
        body = await self._desk.body(visit)
        arrival = Arrival(named_workspace(visit), gone=lambda: seat.is_closed)
        await visit.answer(202, b"Accepted", {"content-type": "text/plain"})
        await self._handle(seat, body, arrival)

    async def _handle(self, seat: Seat, body: bytes, arrival: Arrival) -> None:
        if glance(body).is_short(self._server.dialect) and self._server.workspaces.short_reads:
            seat.say(seat.session.handle(body, arrival))
            return
        with self._desk.working(), seat.working():
            loop = asyncio.get_running_loop()
            seat.say(await loop.run_in_executor(self._desk.pool, seat.session.handle, body, arrival))
