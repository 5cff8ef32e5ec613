"""Streamable HTTP: one path for both eras of the protocol, sessions for those that have them."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from polymnia.errors import ProtocolError, Refused
from polymnia.mcp.glance import Glance, glance
from polymnia.mcp.jsonrpc import NO_ID, error_reply
from polymnia.mcp.revisions import STATELESS
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import Principal
from polymnia.transports.http import headers
from polymnia.transports.http.answering import Errand, answer
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.gate import named_workspace
from polymnia.transports.http.mirrors import check_mirrors
from polymnia.transports.http.sessions import Seat
from polymnia.transports.http.stream import HEADERS, Stream
from polymnia.transports.http.visit import EVENTS, JSON, Receive, Send, Visit

_SESSION = b"mcp-session-id"


class Streamable:
    """The path of one dialect, as an ASGI application."""

    def __init__(self, server: Server, desk: Desk) -> None:
        self._server = server
        self._desk = desk

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        visit = Visit(scope, receive, send)
        try:
            self._desk.gate.check_place(visit)
            self._desk.check_open()
            principal = self._desk.gate.principal(visit)
            if visit.method == "POST":
                await self._post(visit, principal)
            elif visit.method in ("GET", "DELETE") and visit.header(headers.VERSION) not in STATELESS:
                seat = self._seat(visit, principal)
                await (self._listen(visit, seat) if visit.method == "GET" else self._end(visit, seat))
            else:
                raise Refused(405, f"{visit.method} has no meaning here", headers={"allow": "GET, POST, DELETE"})
        except Refused as refusal:
            await visit.refuse(refusal)
        finally:
            visit.leave()

    async def _post(self, visit: Visit, principal: Principal) -> None:
        if not (visit.header(b"content-type") or "").lower().startswith(JSON):
            raise Refused(415, f"a message is sent as {JSON}")
        if not visit.accepts(JSON):
            raise Refused(406, f"an answer may come as {JSON} or {EVENTS}; accept both")
        body = await self._desk.body(visit)
        seen = glance(body)
        if headers.is_stateless(visit, seen):
            await self._post_alone(visit, principal, body, seen)
        else:
            await self._post_in_session(visit, principal, body, seen)

    async def _post_alone(self, visit: Visit, principal: Principal, body: bytes, seen: Glance) -> None:
        """A request that speaks for itself."""
        if seen.is_request:
            try:
                headers.check_agreement(visit, seen)
                if tool := seen.tool(self._server.dialect):
                    check_mirrors(visit, tool.arguments, seen.params.arguments if seen.params else UNSET)
            except ProtocolError as exc:
                await visit.answer(400, error_reply(NO_ID if seen.id is UNSET else seen.id, exc))
                return
        client = self._desk.gate.client(visit, principal, self._server)
        client.lasting = False
        session = Session(self._server, client=client)
        try:
            errand = Errand(visit=visit, body=body, seen=seen, session=session, workspace=None, headers={})
            await answer(self._desk, self._server, errand)
        finally:
            session.close()

    async def _post_in_session(self, visit: Visit, principal: Principal, body: bytes, seen: Glance) -> None:
        headers.check_revision(visit)
        if is_new := seen.method == "initialize" and visit.header(_SESSION) is None:
            client = self._desk.gate.client(visit, principal, self._server)
            seat = self._desk.sessions.open(self._server, client, peer=visit.peer)
        else:
            seat = self._seat(visit, principal)
        workspace = named_workspace(visit)
        errand = Errand(
            visit=visit,
            body=body,
            seen=seen,
            session=seat.session,
            workspace=workspace,
            headers={"mcp-session-id": seat.id} if seen.method == "initialize" else {},
        )
        with seat.working():
            await answer(self._desk, self._server, errand)
        if is_new and not seat.session.is_greeted:
            self._desk.sessions.end(seat)

    async def _listen(self, visit: Visit, seat: Seat) -> None:
        """A stream for what the server has to tell."""
        if not visit.accepts(EVENTS):
            raise Refused(406, f"notifications come as {EVENTS}; accept it")
        stream = Stream()
        await visit.start(200, HEADERS)
        seat.attach(stream)
        try:
            await stream.pour_until_gone(visit)
            await visit.write(b"", more=False)
        finally:
            seat.detach(stream)
            self._desk.sessions.touch(seat)

    async def _end(self, visit: Visit, seat: Seat) -> None:
        await self._desk.run(seat.session.close)  # what ends with it is deleted from the store
        self._desk.sessions.end(seat)
        await visit.answer(204)

    def _seat(self, visit: Visit, principal: Principal) -> Seat:
        identifier = visit.header(_SESSION)
        if identifier is None:
            raise Refused(400, "the header Mcp-Session-Id is missing; send initialize first and use the id it gives")
        headers.check_revision(visit)
        return self._desk.sessions.find(identifier, principal)
