"""Streamable HTTP: one path for both eras of the protocol, with and without sessions."""

import asyncio
from collections.abc import Mapping
from functools import partial

from msgspec import UNSET
from starlette.types import Receive, Scope, Send

from polymnia.dialects.base import Client
from polymnia.errors import InvalidParams, MissingCapability, ProtocolError, Refused
from polymnia.mcp.message import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_ID,
    Answer,
    Channel,
    Message,
    encode_error,
)
from polymnia.mcp.params import RESUMABLE_SINCE, UNSUPPORTED_VERSION
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import Principal
from polymnia.transports.http import guard
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.request import EVENTS, JSON, HttpRequest, is_json
from polymnia.transports.http.sessions import HttpSession
from polymnia.transports.http.stream import HEADERS, EventStream, encode_event, parse_event_id
from polymnia.transports.http.workers import Job, Workers

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


class Post(Channel):
    """A message that was posted, and the way back: JSON, or a stream if there is more to say."""

    def __init__(
        self,
        request: HttpRequest,
        session: Session,
        *,
        workspace: str | None = None,
        headers: Mapping[str, str] | None = None,
        is_stateless: bool = False,
        http_session: HttpSession | None = None,
    ) -> None:
        """`http_session` keeps the response if it becomes a stream."""
        self.request = request
        self.session = session
        self.workspace = workspace
        self.headers = headers or {}
        self.is_stateless = is_stateless
        self.http_session = http_session
        self.can_ask = request.accepts(EVENTS)
        self.stream = EventStream()
        # Set when the thread has handled the message.
        self.job: Job | None = None
        self.handled = asyncio.Event()

    def notify(self, message: bytes) -> None:
        self.stream.put(message)

    def reply(self, body: bytes | None) -> None:
        self.stream.end(body)

    def is_gone(self) -> bool:
        # With a handshake, a client that leaves has not cancelled its request.
        return self.is_stateless and self.request.is_abandoned()

    def observe(self, answer: Answer) -> None:
        self.request.record.observe(answer)

    def finish(self, job: Job) -> None:
        """Take the answer from the thread."""
        self.job = job
        self.handled.set()
        if job.result is None:
            self.stream.end(is_on_loop=True)
        elif not job.result.is_pending:
            self.stream.end(job.result.body, is_on_loop=True)


class Streamable:
    """The endpoint of one dialect."""

    def __init__(self, server: Server, context: HttpContext) -> None:
        self._server = server
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
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

    async def _answer_method(self, request: HttpRequest, principal: Principal) -> None:
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

    async def _post(self, request: HttpRequest, principal: Principal) -> None:
        if not is_json(request.fields.get(b"content-type", b"")):
            raise Refused(415, f"send the message as {JSON}")
        if not request.accepts(JSON):
            raise Refused(406, f"the response is {JSON} or {EVENTS}; accept both")
        body, message = await self._context.read(request)
        if guard.is_stateless(request, message):
            await self._post_stateless(request, principal, message, len(body))
        else:
            await self._post_in_session(request, principal, message, len(body))

    async def _post_stateless(
        self, request: HttpRequest, principal: Principal, message: Message, size: int
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
        try:
            await self._answer(Post(request, session, is_stateless=True), message, size)
        finally:
            session.close()

    async def _post_in_session(
        self, request: HttpRequest, principal: Principal, message: Message, size: int
    ) -> None:
        is_initialize = message.method == "initialize"
        is_new = is_initialize and _SESSION not in request.fields
        if is_new:
            session = self._open_session(request, principal)
        else:
            session = self._find_session(request, principal)
        post = Post(
            request,
            session.session,
            workspace=guard.named_workspace(request),
            headers={"mcp-session-id": session.id} if is_initialize else None,
            http_session=session,
        )
        with session.running_request():
            await self._answer(post, message, size)
        if is_new and not session.session.is_initialized:
            self._context.sessions.end(session)

    def _open_session(self, request: HttpRequest, principal: Principal) -> HttpSession:
        guard.check_revision(request)
        client = self._context.guard.client(request, principal, self._server)
        return self._context.sessions.open(
            self._server, client, peer=request.peer, path=_path(request)
        )

    def _find_session(self, request: HttpRequest, principal: Principal) -> HttpSession:
        identifier = request.header(_SESSION)
        if identifier is None:
            text = "send initialize first and use the id it returns"
            raise Refused(400, f"the header Mcp-Session-Id is missing; {text}")
        guard.check_revision(request)
        return self._context.sessions.find(identifier, principal, _path(request))

    async def _listen(self, request: HttpRequest, session: HttpSession) -> None:
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

    async def _end(self, request: HttpRequest, session: HttpSession) -> None:
        await self._context.run(session.session.close)  # it may delete notes from the store
        self._context.sessions.end(session)
        await request.respond(204)

    async def _answer(self, post: Post, message: Message, size: int) -> None:
        """Handle the message and send its answer."""
        if message.method == _LISTEN:
            await self._answer_with_stream(post, message)
        elif post.session.is_inline(message, size):
            answer = post.session.handle(message, post)
            post.stream.end(answer.body, is_on_loop=True)
            if post.stream.has_messages and post.can_ask:
                await self._send_stream(post)
            else:
                await _respond(post, answer)
        else:
            await self._answer_from_thread(post, message)

    async def _answer_with_stream(self, post: Post, message: Message) -> None:
        """Answer with a stream of notifications that ends when the client or the server does."""
        request, session, stream = post.request, post.session, post.stream
        if not request.accepts(EVENTS):
            raise Refused(406, f"notifications are {EVENTS}; accept it")
        answer = await self._context.run(partial(session.handle, message, post))
        if answer.body is not None:
            await _respond(post, answer)
            return
        await request.start(200, HEADERS)
        self._context.streams[stream] = session.client.principal
        try:
            await stream.send(request)
            session.close()
            await request.write(b"".join(map(encode_event, session.outbox)), more=False)
        finally:
            self._context.streams.pop(stream, None)

    async def _answer_from_thread(self, post: Post, message: Message) -> None:
        """Handle the message on a thread.

        Notifications turn the response into a stream; without any it is JSON.
        """
        context = self._context
        context.running += 1

        def finish(job: Job) -> None:
            """Count it as done, even if its client still reads or has a question to answer."""
            context.running -= 1
            post.finish(job)

        self._lane(message).submit(partial(post.session.handle, message, post), finish)
        if post.can_ask and (await post.stream.wait(post.request) or not post.handled.is_set()):
            await self._send_stream(post)
            return
        await post.handled.wait()
        assert post.job is not None
        if post.job.failure is not None:
            raise post.job.failure
        await _respond(post, post.job.result)

    def _lane(self, message: Message) -> Workers:
        """Return the threads for a message: tools that only read have their own."""
        tool = None
        if message.method == "tools/call":
            tool = self._server.dialect.tools.get(message.subject)
        is_read = tool is not None and tool.needs == "read"
        return self._context.readers if is_read else self._context.writers

    async def _send_stream(self, post: Post) -> None:
        """Send notifications as they come, and then the answer."""
        request, stream = post.request, post.stream
        await request.start(200, {**HEADERS, **post.headers})
        if post.http_session is not None:
            post.http_session.keep(stream)
            if post.session.revision >= RESUMABLE_SINCE:
                await request.write(stream.opening_event(), more=True)
        if await stream.send(request):
            await stream.send_last(request)


def _path(request: HttpRequest) -> str:
    return request.path.rstrip("/")


def _find_resumed(request: HttpRequest, session: HttpSession) -> EventStream | None:
    """Return the stream that the client resumes, positioned after the last event it received."""
    event = parse_event_id(request.header(_LAST_EVENT) or "")
    if event is None:
        return None
    number, received = event
    stream = session.resumable(number)
    if stream is not None:
        stream.rewind(received)
    return stream


async def _respond(post: Post, answer: Answer) -> None:
    if answer.body is None:
        await post.request.respond(202, b"", post.headers)
        return
    statuses = _STATELESS_STATUS if post.is_stateless else _STATUS
    status = 200 if answer.error_code is None else statuses.get(answer.error_code, 200)
    await post.request.respond(status, answer.body, post.headers)
