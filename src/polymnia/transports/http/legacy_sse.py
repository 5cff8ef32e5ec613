"""The older HTTP transport: a stream that stays open, and a path to post messages to."""

from functools import partial

from starlette.types import Receive, Scope, Send

from polymnia.dialects.base import Client
from polymnia.errors import Refused
from polymnia.mcp.message import Answer, Channel
from polymnia.mcp.server import Server
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.guard import named_workspace
from polymnia.transports.http.request import JSON, HttpRequest, is_json
from polymnia.transports.http.sessions import HttpSession
from polymnia.transports.http.stream import HEADERS, EventStream, encode_event
from polymnia.transports.request_log import RequestRecord

# Messages of one session that may run or wait. A POST is answered before its message runs, so
# clients could send any number.
MAX_RUNNING_MESSAGES = 32


class LegacySse:
    """The endpoints `/sse` and `/sse/messages/` of one dialect."""

    def __init__(self, server: Server, context: HttpContext, path: str) -> None:
        self._server = server
        self._context = context
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        is_post = request.path.rstrip("/") == f"{self._path}/messages"
        try:
            self._context.guard.check(request)
            self._context.check_open()
            if is_post and request.method == "POST":
                await self._post(request)
            elif not is_post and request.method == "GET":
                await self._listen(request)
            else:
                allowed = {"allow": "POST" if is_post else "GET"}
                raise Refused(405, f"{request.method} is not supported here", headers=allowed)
        except Refused as refusal:
            await request.refuse(refusal)
        finally:
            request.release()

    async def _listen(self, request: HttpRequest) -> None:
        """Send the replies and notifications of the session, which lasts as long as the stream."""
        request.require_streams()
        guard = self._context.guard
        principal = guard.authenticate(request)
        workspace = guard.workspace(request, principal, self._server)
        client = Client(principal=principal, workspace=workspace)
        session = self._context.sessions.open(
            self._server, client, peer=request.peer, path=self._path
        )
        stream = EventStream()
        try:
            await request.start(200, HEADERS)
            endpoint = f"{self._context.public_path}{self._path}/messages/?session_id={session.id}"
            await request.write(encode_event(endpoint.encode(), "endpoint"), more=True)
            session.attach(stream)
            await stream.send(request)
            await request.write(b"", more=False)
        finally:
            session.detach(stream)
            self._context.sessions.end(session)

    async def _post(self, request: HttpRequest) -> None:
        """Take a message. Its answer is sent on the stream."""
        principal = self._context.guard.authenticate(request)
        if not is_json(request.fields.get(b"content-type", JSON.encode())):
            raise Refused(415, f"send the message as {JSON}")
        identifier = request.query_params.get("session_id", "")
        session = self._context.sessions.find(identifier, principal, self._path)
        if session.running >= MAX_RUNNING_MESSAGES:
            text = f"{MAX_RUNNING_MESSAGES} messages of this session are waiting"
            text += "; read their answers first"
            raise Refused(429, text, code=-32000, headers={"retry-after": "1"})
        session.running += 1
        try:
            body, message = await self._context.read(request)
            await request.respond(202, b"Accepted", {"content-type": "text/plain"})
            channel = _LegacyChannel(session, named_workspace(request), request.record)
            handle = partial(session.session.handle, message, channel)
            if session.session.is_inline(message, len(body)):
                answer = handle()
            else:
                with self._context.running_request():
                    answer = await self._context.run(handle)
            session.send(answer.body)
        finally:
            session.running -= 1


class _LegacyChannel(Channel):
    """A message that was posted for a stream. What belongs to it goes there with the rest."""

    def __init__(self, session: HttpSession, workspace: str | None, record: RequestRecord) -> None:
        self.session = session
        self.workspace = workspace
        self._record = record

    def notify(self, message: bytes) -> None:
        self.session.session.notify(message)

    def reply(self, body: bytes | None) -> None:
        self.session.session.reply(body)

    def is_gone(self) -> bool:
        return self.session.is_closed

    def observe(self, answer: Answer) -> None:
        self._record.observe(answer)
