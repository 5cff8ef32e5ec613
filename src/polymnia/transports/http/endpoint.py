"""Streamable HTTP: one path for both eras of the protocol, with and without sessions."""

from contextlib import closing
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
from polymnia.transports.http.workers import Job

_SESSION = b"mcp-session-id"


class Post(Channel):
    """A message that was posted, and the way back: JSON, or a stream if there is more to say."""

    def __init__(
        self,
        request: HttpRequest,
        message: Message,
        session: Session,
        http_session: HttpSession | None = None,
    ) -> None:
        """A stateless request has no `http_session`, which keeps the response if it is a stream."""
        self.request = request
        self.message = message
        self.session = session
        self.http_session = http_session
        self.can_ask = request.accepts(EVENTS)
        self.headers: dict[str, str] = {}
        if http_session is not None:
            self.workspace = guard.named_workspace(request)
            if message.method == "initialize":
                self.headers["mcp-session-id"] = http_session.id
        self.stream = EventStream()
        # The handled message; None until then.
        self.job: Job | None = None

    def notify(self, message: bytes) -> None:
        self.stream.put(message)

    def reply(self, body: bytes | None) -> None:
        self.stream.end(body)

    def is_gone(self) -> bool:
        # With a handshake, a client that leaves has not cancelled its request.
        return self.http_session is None and self.request.is_abandoned()

    def observe(self, answer: Answer) -> None:
        self.request.record.observe(answer)

    def finish(self, job: Job) -> None:
        """Take the answer from the thread."""
        self.job = job
        if job.result is None:
            self.stream.end(is_on_loop=True)
        elif not job.result.is_pending:
            self.stream.end(job.result.body, is_on_loop=True)

    async def respond(self, answer: Answer) -> None:
        """Send the answer alone."""
        if answer.body is None:
            await self.request.respond(202, b"", self.headers)
            return
        # Errors of the protocol itself have a status. The reply of a tool is always 200.
        code, status = answer.error_code, 200
        if code == INVALID_REQUEST:
            status = 400
        elif code is not None and self.http_session is None:
            refused = (InvalidParams.CODE, MissingCapability.CODE, UNSUPPORTED_VERSION)
            if code == METHOD_NOT_FOUND:
                status = 404
            elif code in refused:
                status = 400
        await self.request.respond(status, answer.body, self.headers)

    async def send_stream(self) -> None:
        """Send notifications as they come, and then the answer."""
        request, stream = self.request, self.stream
        await request.start(200, {**HEADERS, **self.headers})
        if self.http_session is not None:
            self.http_session.keep(stream)
            if self.session.revision >= RESUMABLE_SINCE:
                await request.write(stream.opening_event(), more=True)
        if await stream.send(request):
            await stream.send_last(request)


class Streamable:
    """The endpoint of one dialect."""

    def __init__(self, server: Server, context: HttpContext) -> None:
        self._server = server
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        context, method = self._context, request.method
        try:
            context.guard.check(request)
            context.check_open()
            principal = context.guard.authenticate(request)
            if method == "POST":
                await self._post(request, principal)
            elif method not in ("GET", "DELETE") or guard.names_stateless(request):
                text = f"{method} is not supported here"
                raise Refused(405, text, headers={"allow": "GET, POST, DELETE"})
            elif method == "GET":
                await self._listen(request, self._find_session(request, principal))
            else:
                session = self._find_session(request, principal)
                await context.run(session.session.close)  # it may delete notes from the store
                context.sessions.end(session)
                await request.respond(204)
        except Refused as refusal:
            await request.refuse(refusal)
        finally:
            request.release()

    async def _post(self, request: HttpRequest, principal: Principal) -> None:
        if not is_json(request.fields.get(b"content-type", b"")):
            raise Refused(415, f"send the message as {JSON}")
        if not request.accepts(JSON):
            raise Refused(406, f"the response is {JSON} or {EVENTS}; accept both")
        context, server = self._context, self._server
        body, message = await context.read(request)
        if message.method == "tools/call":
            tool = server.dialect.tools.get(message.subject)
            context.guard.check_scope(request, principal, tool)
        if guard.is_stateless(request, message):
            if message.is_request:
                try:
                    guard.check_headers(request, message)
                except ProtocolError as exc:
                    identifier = NO_ID if message.id is UNSET else message.id
                    await request.respond(400, encode_error(identifier, exc))
                    return
            workspace = context.guard.workspace(request, principal, server)
            client = Client(principal=principal, workspace=workspace, lasting=False, id="")
            with closing(Session(server, client=client, is_remote=True)) as session:
                await self._answer(Post(request, message, session), len(body))
            return
        is_new = message.method == "initialize" and _SESSION not in request.fields
        if is_new:
            guard.check_revision(request)
            workspace = context.guard.workspace(request, principal, server)
            client = Client(principal=principal, workspace=workspace)
            path = request.path.rstrip("/")
            kept = context.sessions.open(server, client, peer=request.peer, path=path)
        else:
            kept = self._find_session(request, principal)
        kept.running += 1  # it is not idle
        try:
            await self._answer(Post(request, message, kept.session, kept), len(body))
        finally:
            kept.running -= 1
        if is_new and not kept.session.is_initialized:
            context.sessions.end(kept)

    def _find_session(self, request: HttpRequest, principal: Principal) -> HttpSession:
        identifier = request.header(_SESSION)
        if identifier is None:
            text = "send initialize first and use the id it returns"
            raise Refused(400, f"the header Mcp-Session-Id is missing; {text}")
        guard.check_revision(request)
        return self._context.sessions.find(identifier, principal, request.path.rstrip("/"))

    async def _listen(self, request: HttpRequest, session: HttpSession) -> None:
        """Send the notifications of a session, or go on with a stream that was interrupted."""
        if not request.accepts(EVENTS):
            raise Refused(406, f"notifications are {EVENTS}; accept it")
        stream = None
        event = parse_event_id(request.header(b"last-event-id") or "")
        if event is not None:
            number, received = event
            stream = session.resumable(number)
            if stream is not None:
                stream.rewind(received)
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

    async def _answer(self, post: Post, size: int) -> None:
        """Handle a message of `size` bytes, here or on a thread, and send its answer.

        Notifications turn the response into a stream; without any it is JSON.
        """
        context, session, message = self._context, post.session, post.message
        if message.method == "subscriptions/listen":
            await self._answer_with_stream(post)
            return
        if session.is_inline(message, size):
            answer = session.handle(message, post)
            post.stream.end(answer.body, is_on_loop=True)
            if post.can_ask and post.stream.has_messages:
                await post.send_stream()
            else:
                await post.respond(answer)
            return

        def finish(job: Job) -> None:
            """Count it as done, even if its client still reads or has a question to answer."""
            context.running -= 1
            post.finish(job)

        # Tools that only read have threads of their own.
        lane = context.writers
        if message.method == "tools/call":
            tool = self._server.dialect.tools.get(message.subject)
            if tool is not None and tool.needs == "read":
                lane = context.readers
        context.running += 1
        lane.submit(partial(session.handle, message, post), finish)
        if post.can_ask and (await post.stream.wait(post.request) or post.job is None):
            await post.send_stream()
            return
        while post.job is None:
            await post.stream.wait_for_news()
        if post.job.failure is not None:
            raise post.job.failure
        await post.respond(post.job.result)

    async def _answer_with_stream(self, post: Post) -> None:
        """Answer with a stream of notifications that ends when the client or the server does."""
        request, session, stream = post.request, post.session, post.stream
        if not request.accepts(EVENTS):
            raise Refused(406, f"notifications are {EVENTS}; accept it")
        answer = await self._context.run(partial(session.handle, post.message, post))
        if answer.body is not None:
            await post.respond(answer)
            return
        await request.start(200, HEADERS)
        self._context.streams[stream] = session.client.principal
        try:
            await stream.send(request)
            session.close()
            await request.write(b"".join(map(encode_event, session.outbox)), more=False)
        finally:
            self._context.streams.pop(stream, None)
