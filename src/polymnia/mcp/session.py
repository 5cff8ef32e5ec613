"""One client's session: messages in, at most one answer out for each, notifications queued.

A message goes `parse` -> `Session.handle` -> `_run` -> a function in `methods.py`, and its result
or error comes back the same way as an `Answer`.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

from msgspec import UNSET, Raw
from msgspec.json import Decoder

from polymnia.dialects.base import Client
from polymnia.engine.workspaces import USED_WORKSPACES
from polymnia.errors import (
    BadInput,
    Cancelled,
    InputRequired,
    InvalidParams,
    NotAdmitted,
    NotAllowed,
    PolymniaError,
    ProtocolError,
)
from polymnia.mcp import message as jsonrpc
from polymnia.mcp import methods, params
from polymnia.mcp.asking import Asking
from polymnia.mcp.message import Answer, Channel, Message, RequestId, error_answer
from polymnia.mcp.methods import MAX_INLINE_BYTES, METHODS
from polymnia.mcp.push import Push
from polymnia.mcp.request import Request
from polymnia.mcp.server import Server
from polymnia.mcp.tools import ToolResult, error_text
from polymnia.model import NOBODY, Change, Principal
from polymnia.stores.contract import CANCELLED

logger = logging.getLogger(__name__)

# Replies to a batch are collected in memory. Beyond this size its further requests are refused.
MAX_BATCH_REPLY_BYTES = 16 * 1024 * 1024
# Logged in place of a method or tool that does not exist, whose name may be any text.
UNKNOWN = "(unknown)"
BATCH = "batch"
_CANCELLED = "notifications/cancelled"
_DECODERS: dict[str, Decoder[Any]] = {
    _CANCELLED: Decoder(params.Cancellation),
    **{name: method.decoder for name, method in METHODS.items()},
}


def parse(data: bytes) -> Message:
    """Return the message in the bytes. A malformed one carries its problem."""
    try:
        return jsonrpc.parse_message(data, _DECODERS)
    except ProtocolError as exc:
        return Message(id=Raw(jsonrpc.salvage_id(data)), problem=exc)


def cancelled_request(message: Message) -> RequestId | None:
    """Return the id of the request that a notification cancels; None for every other message."""
    if message.method != _CANCELLED or message.id is not UNSET:
        return None
    if message.problem is not None:
        logger.info("a cancellation was not understood: %s", message.problem)
        return None
    identifier: RequestId = message.params.request_id
    return identifier


class Session(Channel):
    """What a transport talks to. Several threads may use it, one message each.

    It is the channel of messages that come without one: what belongs to them goes to the outbox.
    """

    def __init__(
        self,
        server: Server,
        *,
        client: Client | None = None,
        admit: Callable[[str | None], Principal] | None = None,
        wake: Callable[[], None] | None = None,
        is_remote: bool = False,
    ) -> None:
        """Open a session.

        `wake` is called when a notification is queued. `admit` returns the principal of a token,
        where messages carry theirs, and raises NotAdmitted. A remote client gets no log messages
        of the server and no details of the server's machine.
        """
        self.server = server
        self.client = client or Client(workspace=server.workspace)
        self.is_remote = is_remote
        self.outbox: deque[bytes] = deque()
        self.push = Push(server.dialect, self.client, self.notify)
        self.actor = "unknown client"
        self.revision = params.LATEST_HANDSHAKE
        self._running: dict[RequestId, Request] = {}
        self._asking = Asking(server.deadlines, notify=self.notify, answer=self._answer)
        self._wake = wake
        self._admit = admit
        self._token: str | None = None
        self._closing = Lock()
        self._is_closed = False

    @property
    def is_initialized(self) -> bool:
        """Return True once `initialize` was answered with a result."""
        return self.push.is_initialized

    def is_inline(self, message: Message, size: int) -> bool:
        """Return True if a transport may handle a message of `size` bytes where it reads messages.

        Such a message needs no store, so its work is bounded. All others run on a thread.
        """
        if message.batch is not None:
            return self.revision != params.BATCHES  # it is refused unread
        if size > MAX_INLINE_BYTES or message.is_response:
            return False
        if not message.is_request or message.problem is not None:
            return True
        method = methods.find_method(message)
        return method is None or method.is_inline

    def handle(self, message: Message | bytes, channel: Channel | None = None) -> Answer:
        """Answer a message. What belongs to it goes through its channel."""
        if isinstance(message, bytes):
            message = parse(message)
        channel = channel or self
        if message.batch is not None:
            return self._handle_batch(message.batch, channel)
        if message.id is UNSET or message.is_response or message.is_blank:
            answer = self._take(message)
        elif message.problem is not None and message.method is UNSET:
            answer = error_answer(message.id, message.problem)  # malformed
        else:
            try:
                identifier = jsonrpc.request_id(message.id)
            except ProtocolError as exc:
                answer = error_answer(jsonrpc.NO_ID, exc)
            else:
                request = Request(
                    workspaces=self.server.workspaces,
                    client=self.client,
                    by=self.actor,
                    session=self,
                    message=message,
                    channel=channel,
                    id=identifier,
                    raw_id=message.id,
                )
                return self._answer(request)
        if answer.body is not None:
            self._name(answer, message)
            channel.observe(answer)
        return answer

    def _take(self, message: Message) -> Answer:
        """Handle a notification or a response. Only malformed ones get a reply."""
        if message.is_response:
            self._asking.take_answer(message)
        elif message.is_blank or (message.method is UNSET and message.error is not UNSET):
            pass  # the client could not read one of our replies
        elif not isinstance(message.method, str):
            error = ProtocolError(jsonrpc.INVALID_REQUEST, "a message needs a method")
            return error_answer(jsonrpc.NO_ID, error)
        elif (identifier := cancelled_request(message)) is not None:
            # The request streams, waits for an answer or runs.
            if self.push.streams.pop(identifier, None) is not None:
                self.follow_changes()
            if waiting := self._asking.cancel(identifier):
                waiting.channel.reply(None)
            if running := self._running.get(identifier):
                running.is_cancelled = True
        return Answer()

    def _answer(self, request: Request) -> Answer:
        """Run a request, and report it. Every error that it raises becomes one of JSON-RPC here."""
        started = time.perf_counter()
        used: dict[str, None] = {}
        token = USED_WORKSPACES.set(used)
        try:
            answer = self._run(request)
        except Cancelled:
            answer = Answer(outcome="cancelled")
        except ProtocolError as exc:
            answer = error_answer(request.raw_id, exc)
        except BadInput as exc:
            text = error_text(exc, is_remote=self.is_remote)
            answer = error_answer(request.raw_id, InvalidParams(text))
        except (NotAdmitted, NotAllowed) as exc:
            error = ProtocolError(jsonrpc.NOT_ADMITTED, str(exc))
            answer = error_answer(request.raw_id, error)
        except PolymniaError as exc:
            text = error_text(exc, is_remote=self.is_remote)
            error = ProtocolError(jsonrpc.INTERNAL_ERROR, text)
            answer = error_answer(request.raw_id, error)
        except Exception:
            # Only a mistake of ours gets here, never a message: tests/mcp/test_any_input.py.
            method = request.message.method
            logger.exception("%s failed", method)
            text = f"internal error in {method}; the server's log has the details"
            error = ProtocolError(jsonrpc.INTERNAL_ERROR, text)
            answer = error_answer(request.raw_id, error)
        finally:
            USED_WORKSPACES.reset(token)
        if not answer.is_pending:
            answer.seconds = time.perf_counter() - started
            answer.workspace = ",".join(used)
            self._name(answer, request.message)
            request.channel.observe(answer)
        return answer

    def _run(self, request: Request) -> Answer:
        """Return the answer to a request: its method's result, or a question to the client."""
        message = request.message
        method = methods.find_method(message)
        if method is None or message.problem is not None:
            raise methods.refusal(message, method)
        request.begin()
        methods.require_era(method, request)
        # A model reads why a tool did nothing, so tools count their own calls.
        if not method.is_inline and message.method != "tools/call":
            self.server.limiter.take(request.client.principal, "requests")
        self._running[request.id] = request
        token = CANCELLED.set(request.cancelled)
        try:
            result = method.run(request, message.params)
        except InputRequired as exc:
            if not request.is_stateless:
                self._asking.ask(request, exc.questions)
                return Answer(is_pending=True)
            # Questions as a result. The client answers with its next request.
            inputs = {}
            for question in exc.questions:
                inputs[question.key] = {"method": question.method, "params": question.params}
            result = {
                "resultType": "input_required",
                "inputRequests": inputs,
                "requestState": self.server.states.seal(request.subject, request.answers),
            }
        finally:
            CANCELLED.reset(token)
            if self._running.get(request.id) is request:
                del self._running[request.id]
        if request.is_cancelled:
            raise Cancelled("cancelled while it was running")
        if result is None:
            return Answer()
        is_failure = isinstance(result, ToolResult) and result.is_error
        if request.is_stateless:
            # What stateless clients expect on every result.
            if isinstance(result, ToolResult):
                result.result_type, result.meta = "complete", self.server.result_meta
            else:
                result.setdefault("resultType", "complete")
                result["_meta"] = self.server.result_meta
                if method.fresh_ms is not None and result["resultType"] == "complete":
                    result |= {"ttlMs": method.fresh_ms, "cacheScope": "private"}
        body = jsonrpc.encode_reply(request.raw_id, result)
        return Answer(body, outcome="error" if is_failure else "ok")

    def _name(self, answer: Answer, message: Message) -> None:
        """Note which method and tool a message named, if they exist."""
        answer.method = UNKNOWN
        if methods.find_method(message) is not None:
            answer.method = message.method
        if answer.method == "tools/call":
            subject = message.subject
            is_known = isinstance(subject, str) and subject in self.server.dialect.tools
            answer.tool = subject if is_known else UNKNOWN

    def _handle_batch(self, data: bytes, channel: Channel) -> Answer:
        """Handle the messages of a batch in order. Return their replies as one."""
        try:
            if self.revision != params.BATCHES:
                text = f"revision {self.revision} has no batches; send one message at a time"
                raise ProtocolError(jsonrpc.INVALID_REQUEST, text)
            items = jsonrpc.parse_batch(data)
        except ProtocolError as exc:
            answer = error_answer(jsonrpc.NO_ID, exc)
            answer.method = BATCH
            channel.observe(answer)
            return answer
        channel = _BatchChannel(channel)
        replies: list[bytes] = []
        size = 0
        for item in items:
            message = parse(bytes(item))
            refusal = None
            if message.batch is not None:
                text = "a message must be a JSON object"
                refusal = ProtocolError(jsonrpc.INVALID_REQUEST, text)
            elif message.is_request and message.method == "initialize":
                text = "initialize must not be in a batch; send it alone"
                refusal = ProtocolError(jsonrpc.INVALID_REQUEST, text)
            elif message.is_request and size > MAX_BATCH_REPLY_BYTES:
                text = f"the replies to this batch exceed {MAX_BATCH_REPLY_BYTES} bytes"
                text += "; send this request again"
                refusal = ProtocolError(jsonrpc.INTERNAL_ERROR, text)
            if refusal is not None:
                identifier = jsonrpc.NO_ID if message.id is UNSET else message.id
                answer = error_answer(identifier, refusal)
            else:
                answer = self.handle(message, channel)
            if answer.body is not None:
                replies.append(answer.body)
                size += len(answer.body)
        return Answer(b"[" + b",".join(replies) + b"]") if replies else Answer()

    def admit_client(self, token: str | None) -> None:
        """Set the client's principal by the token of this or an earlier request.

        Raise NotAdmitted.
        """
        if self._admit is None:
            return
        self._token = token or self._token
        try:
            principal = self._admit(self._token)
            is_new = self.client.principal.id != principal.id
            if is_new and not self.server.dialect.requires_workspace:
                self.client.workspace = principal.choose_workspace(self.server.workspace)
            self.client.principal = principal
        except NotAdmitted as exc:
            self.client.principal = NOBODY
            if self._token is None:
                message = f"a token is required: send it in params._meta as {params.TOKEN}"
                raise NotAdmitted(message) from exc
            raise

    def follow_changes(self, workspace: str | None = None) -> None:
        """Receive the server's log messages, and its changes if any could lead to a notification.

        A subscription may concern another workspace than the client's own.
        """
        with self._closing:
            if not self._is_closed:
                self.server.join(self)
        if self.push.wants_changes:
            self.server.follow(self, workspace or self.client.workspace)
        else:
            self.server.unfollow(self)

    def notify_change(self, workspace: str, change: Change) -> None:
        """Queue the notifications that a change in a workspace leads to."""
        self.push.notify_change(workspace, change)

    def log(self, level: str, logger: str, text: str) -> None:
        """Queue a log message of the server, for clients on the same machine: it may name files."""
        if not self.is_remote:
            self.push.log(level, logger, text)

    def notify(self, message: bytes) -> None:
        """Queue a message and wake the transport."""
        self.outbox.append(message)
        if self._wake is not None:
            self._wake()

    def reply(self, body: bytes | None) -> None:
        """Queue a reply that comes after `handle` has returned."""
        if body is not None:
            self.notify(body)

    def close(self) -> None:
        """End the session: streams and waiting requests get their reply, then nothing is queued."""
        with self._closing:
            was_closed, self._is_closed = self._is_closed, True
        self.server.leave(self)
        if not was_closed and self.client.lasting:
            self.server.end_session(self.client)
        for identifier, stream in list(self.push.streams.items()):
            meta = {params.SUBSCRIPTION_ID: identifier, params.SERVER_INFO: self.server.info}
            result = {"resultType": "complete", "_meta": meta}
            self.outbox.append(jsonrpc.encode_reply(Raw(stream.raw_id), result))
        self.push.streams.clear()
        text = "the session ended before the client answered"
        for request in self._asking.close():
            error = ProtocolError(jsonrpc.INTERNAL_ERROR, text)
            request.channel.reply(jsonrpc.encode_error(request.raw_id, error))


class _BatchChannel(Channel):
    """The channel of the messages in a batch. All replies come together, so none may be asked."""

    can_ask = False

    def __init__(self, whole: Channel) -> None:
        self.workspace = whole.workspace
        self._whole = whole

    def notify(self, message: bytes) -> None:
        self._whole.notify(message)

    def is_gone(self) -> bool:
        return self._whole.is_gone()

    def observe(self, answer: Answer) -> None:
        self._whole.observe(answer)
