"""Streamable HTTP: one path for both eras of the protocol, with and without sessions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import UNSET, Struct

from polymnia.dialects.base import Client
from polymnia.errors import InvalidParams, MissingCapability, ProtocolError, Refused
from polymnia.mcp.exchange import Delivery
from polymnia.mcp.jsonrpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_ID,
    Answer,
    Message,
    encode_error,
)
from polymnia.mcp.params import RESUMABLE_SINCE, UNSUPPORTED_VERSION
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import Principal
from polymnia.transports.http import guard
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import EVENTS, JSON, Request, is_json
from polymnia.transports.http.sessions import HttpSession
from polymnia.transports.http.stream import HEADERS, EventStream, encode_event, parse_event_id

_SESSION = b"mcp-session-id"
_LAST_EVENT = b"last-event-id"
_LISTEN = "subscriptions/listen"
# Errors of the protocol itself have a status. The reply of a tool is always 200.
_STATUS = {INVALID_REQUEST: 400}
_STATELESS_STATUS = {
    **_STATUS,
    InvalidParams.CODE: 400,
    guard.HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    MissingCapability.CODE: 400,
    METHOD_NOT_FOUND: 404,
}


class PendingMessage(Struct, frozen=True, kw_only=True):
    """A message to be handled, where it came from and where its answer goes."""

    request: Request
    message: Message
    size: int
    session: Session
    workspace: str | None = None
    headers: Mapping[str, str] = {}
    is_stateless: bool = False
    # The session that keeps the response if it becomes a stream.
    http_session: HttpSession | None = None

    def delivery(
        self,
        notify: Callable[[bytes], None],
        *,
        is_gone: Callable[[], bool] | None = None,
        reply: Callable[[bytes | None], None] | None = None,
    ) -> Delivery:
        """Return what the session needs to know of the message besides its bytes."""
        return Delivery(
            workspace=self.workspace,
            notify=notify,
            is_gone=is_gone,
            reply=reply,
            can_ask=self.request.accepts(EVENTS),
            observe=self.request.record.observe,
        )


class Streamable:
    """The endpoint of one dialect."""

    def __init__(self, server: Server, context: HttpContext) -> None:
        self._server = server
        self._context = context

    async def __call__(self, request: Request) -> None:
        context = self._context
        try:
            context.guard.check(request)
            context.check_open()
            principal = context.guard.authenticate(request)
            await self._answer_method(request, principal)
        except Refused as refusal:
            await request.refuse(refusal)
        finally:
            request.release()

    async def _answer_method(self, request: Request, principal: Principal) -> None:
        if request.method == "POST":
            await self._post(request, principal)
            return
        if request.method not in ("GET", "DELETE") or guard.names_stateless(request):
            text = f"{request.method} is not supported here"
            raise Refused(405, text, headers={"allow": "GET, POST, DELETE"})
        session = self._find_session(request, principal)
        if request.method == "GET":
            await self._listen(request, session)
        else:
            await self._end(request, session)

    async def _post(self, request: Request, principal: Principal) -> None:
        if not is_json(request.headers.get(b"content-type", b"")):
            raise Refused(415, f"send the message as {JSON}")
        if not request.accepts(JSON):
            raise Refused(406, f"the response is {JSON} or {EVENTS}; accept both")
        body, message = await self._context.read(request)
        if guard.is_stateless(request, message):
            await self._post_stateless(request, principal, message, len(body))
        else:
            await self._post_in_session(request, principal, message, len(body))

    async def _post_stateless(
        self, request: Request, principal: Principal, message: Message, size: int
    ) -> None:
        """Answer a request without a session."""
        if message.is_request:
            try:
                guard.check_headers(request, message)
            except ProtocolError as exc:
                identifier = NO_ID if message.id is UNSET else message.id
                await request.respond(400, encode_error(identifier, exc))
                return
        workspace = self._context.guard.workspace(request, principal, self._server)
        client = Client(principal=principal, workspace=workspace, lasting=False, id="")
        session = Session(self._server, client=client, is_remote=True)
        pending = PendingMessage(
            request=request, message=message, size=size, session=session, is_stateless=True
        )
        try:
            await self._answer(pending)
        finally:
            session.close()

    async def _post_in_session(
        self, request: Request, principal: Principal, message: Message, size: int
    ) -> None:
        is_initialize = message.method == "initialize"
        is_new = is_initialize and _SESSION not in request.headers
        if is_new:
            session = self._open_session(request, principal)
        else:
            session = self._find_session(request, principal)
        pending = PendingMessage(
            request=request,
            message=message,
            size=size,
            session=session.session,
            workspace=guard.named_workspace(request),
            headers={"mcp-session-id": session.id} if is_initialize else {},
            http_session=session,
        )
        with session.running_request():
            await self._answer(pending)
        if is_new and not session.session.is_initialized:
            self._context.sessions.end(session)

    def _open_session(self, request: Request, principal: Principal) -> HttpSession:
        guard.check_revision(request)
        client = self._context.guard.client(request, principal, self._server)
        return self._context.sessions.open(
            self._server, client, peer=request.peer, path=_path(request)
        )

    def _find_session(self, request: Request, principal: Principal) -> HttpSession:
        identifier = request.header(_SESSION)
        if identifier is None:
            text = "send initialize first and use the id it returns"
            raise Refused(400, f"the header Mcp-Session-Id is missing; {text}")
        guard.check_revision(request)
        return self._context.sessions.find(identifier, principal, _path(request))

    async def _listen(self, request: Request, session: HttpSession) -> None:
        """Send the notifications of a session."""
        if not request.accepts(EVENTS):
            raise Refused(406, f"notifications are {EVENTS}; accept it")
        stream = _find_resumed(request, session)
        if is_new := stream is None:
            stream = EventStream()
            session.keep(stream)
        await request.start(200, HEADERS)
        if is_new and session.session.revision >= RESUMABLE_SINCE:
            await request.write(stream.opening_event(), more=True)
        # A resumed stream may be that of a request, which has an end, or the session's own.
        is_own = is_new or stream is session.own_stream
        if is_own:
            session.attach(stream)
        try:
            if await stream.send(request):
                await stream.send_last(request)
        finally:
            if is_own:
                session.detach(stream)
            self._context.sessions.touch(session)

    async def _end(self, request: Request, session: HttpSession) -> None:
        await self._context.run(session.session.close)  # it may delete notes from the store
        self._context.sessions.end(session)
        await request.respond(204)

    async def _answer(self, pending: PendingMessage) -> None:
        """Handle the message and send its answer."""
        if pending.message.method == _LISTEN:
            await self._answer_with_stream(pending)
        elif pending.session.is_inline(pending.message, pending.size):
            notifications: list[bytes] = []
            delivery = pending.delivery(notifications.append)
            answer = pending.session.handle(pending.message, delivery)
            await _respond(pending, answer, notifications)
        else:
            await self._answer_from_thread(pending)

    async def _answer_with_stream(self, pending: PendingMessage) -> None:
        """Answer with a stream of notifications that ends when the client or the server does."""
        request, session, stream = pending.request, pending.session, EventStream()
        if not request.accepts(EVENTS):
            raise Refused(406, f"notifications are {EVENTS}; accept it")
        delivery = pending.delivery(stream.put)
        answer = await self._context.run(lambda: session.handle(pending.message, delivery))
        if answer.body is not None:
            await _respond(pending, answer)
            return
        await request.start(200, HEADERS)
        self._context.streams[stream] = session.client.principal
        try:
            await stream.send(request)
            session.close()
            await request.write(b"".join(map(encode_event, session.outbox)), more=False)
        finally:
            self._context.streams.pop(stream, None)

    async def _answer_from_thread(self, pending: PendingMessage) -> None:
        """Handle the message on a thread.

        Notifications turn the response into a stream; without any it is JSON.
        """
        context, request, stream = self._context, pending.request, EventStream()
        # With a handshake, a client that leaves has not cancelled its request.
        is_gone = request.is_abandoned if pending.is_stateless else None
        delivery = pending.delivery(stream.put, is_gone=is_gone, reply=stream.end)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(context.pool, pending.session.handle, pending.message, delivery)
        context.running += 1
        work.add_done_callback(partial(_finish, context, stream))
        is_stream = request.accepts(EVENTS) and (await stream.wait(request) or not work.done())
        if not is_stream:
            await _respond(pending, await work)
            return
        await request.start(200, {**HEADERS, **pending.headers})
        if pending.http_session is not None:
            pending.http_session.keep(stream)
            if pending.session.revision >= RESUMABLE_SINCE:
                await request.write(stream.opening_event(), more=True)
        if await stream.send(request):
            await stream.send_last(request)


def _path(request: Request) -> str:
    return request.path.rstrip("/")


def _finish(context: HttpContext, stream: EventStream, work: asyncio.Future[Answer]) -> None:
    """Count a request as done, even if its client still reads or has a question to answer."""
    context.running -= 1
    if work.cancelled() or work.exception() is not None:
        stream.end()
    elif not work.result().is_pending:
        stream.end(work.result().body)


def _find_resumed(request: Request, session: HttpSession) -> EventStream | None:
    """Return the stream that the client resumes, positioned after the last event it received."""
    event = parse_event_id(request.header(_LAST_EVENT) or "")
    if event is None:
        return None
    number, received = event
    stream = session.resumable(number)
    if stream is not None:
        stream.rewind(received)
    return stream


async def _respond(
    pending: PendingMessage, answer: Answer, notifications: Sequence[bytes] = ()
) -> None:
    request, body = pending.request, answer.body
    if notifications and request.accepts(EVENTS):
        events = b"".join(map(encode_event, notifications))
        if body is not None:
            events += encode_event(body)
        await request.respond(200, events, {**HEADERS, **pending.headers})
    elif body is None:
        await request.respond(202, b"", pending.headers)
    else:
        statuses = _STATELESS_STATUS if pending.is_stateless else _STATUS
        status = 200 if answer.error_code is None else statuses.get(answer.error_code, 200)
        await request.respond(status, body, pending.headers)
