"""One client's session: messages in, at most one answer out for each, notifications queued.

A message goes `parse` -> `Session.handle` -> `_dispatch` -> `_answer` -> `_run` -> a function in
`methods.py`, and its result or error comes back the same way as an `Answer`.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from msgspec import UNSET, Raw, structs
from msgspec.json import Decoder

from polymnia.arguments import decode_arguments
from polymnia.dialects.base import Client
from polymnia.engine.workspaces.workspaces import USED_WORKSPACES
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
from polymnia.mcp import jsonrpc, methods, params
from polymnia.mcp.asking import Asking
from polymnia.mcp.exchange import PLAIN, Delivery, Exchange, PendingRequest, open_exchange, subject
from polymnia.mcp.jsonrpc import (
    NOTHING,
    Answer,
    Message,
    RequestId,
    error_answer,
    invalid_request,
)
from polymnia.mcp.methods import DECODERS, MAX_INLINE_BYTES, Method
from polymnia.mcp.push import Push
from polymnia.mcp.server import Server
from polymnia.mcp.tools import ToolResult, error_text
from polymnia.model import NOBODY, Change, Principal
from polymnia.stores.contract import CANCELLED

logger = logging.getLogger(__name__)

# Replies to a batch are collected in memory. Beyond this size its further requests are refused.
MAX_BATCH_REPLY_BYTES = 16 * 1024 * 1024
_PENDING = Answer(is_pending=True)
_CANCELLED = "notifications/cancelled"
_cancellation: Decoder[params.Cancellation] = Decoder(params.Cancellation)


def parse(data: bytes) -> Message:
    """Return the message in the bytes. A malformed one carries its problem."""
    try:
        return jsonrpc.parse_message(data, DECODERS)
    except ProtocolError as exc:
        return Message(jsonrpc.Envelope(id=Raw(jsonrpc.salvage_id(data))), problem=exc)


def cancelled_request(message: Message) -> RequestId | None:
    """Return the id of the request that a notification cancels; None for every other message."""
    envelope = message.envelope
    if envelope.method != _CANCELLED or envelope.id is not UNSET or envelope.params is UNSET:
        return None
    try:
        cancellation: params.Cancellation = decode_arguments(_cancellation, envelope.params)
    except BadInput as exc:
        logger.info("a cancellation was not understood: %s", exc)
        return None
    return cancellation.request_id


class Session:
    """What a transport talks to. Several threads may use it, one message each."""

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
        self._running: dict[RequestId, Exchange] = {}
        self._asking = Asking(server.deadlines, send=self._send, resume=self._resume)
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

    def handle(self, message: Message | bytes, delivery: Delivery = PLAIN) -> Answer:
        """Answer a message. Notifications about it go where the delivery says."""
        if isinstance(message, bytes):
            message = parse(message)
        if message.batch is not None:
            return _handle_batch(self, message, delivery)
        started = time.perf_counter()
        with _used_workspaces() as used:
            answer = self._dispatch(message, delivery)
        if not answer.is_pending and (message.is_request or answer.body is not None):
            self.observe(message, answer, delivery, time.perf_counter() - started, used)
        return answer

    def observe(
        self,
        message: Message,
        answer: Answer,
        delivery: Delivery,
        seconds: float = 0.0,
        workspaces: Iterable[str] = (),
    ) -> None:
        """Report a request, or a malformed message, to the observer of this delivery."""
        if delivery.observe is not None:
            record = methods.describe_message(
                self.server.dialect, message, answer, seconds, workspaces
            )
            delivery.observe(record)

    def _dispatch(self, message: Message, delivery: Delivery) -> Answer:
        """Answer a message by its kind: notification, response or request."""
        envelope = message.envelope
        if message.is_blank:
            return NOTHING
        if envelope.id is UNSET:
            return self._handle_notification(message)
        if message.problem is not None and envelope.method is UNSET:
            return error_answer(envelope.id, message.problem)  # malformed
        if message.is_response:
            self._asking.take_answer(envelope)
            return NOTHING
        try:
            identifier = jsonrpc.request_id(envelope.id)
        except ProtocolError as exc:
            return error_answer(jsonrpc.NO_ID, exc)
        return self._answer(
            PendingRequest(message=message, id=identifier, raw_id=envelope.id, delivery=delivery)
        )

    def _handle_notification(self, message: Message) -> Answer:
        """Handle a notification. Only malformed messages get a reply."""
        envelope = message.envelope
        if envelope.method is UNSET and envelope.error is not UNSET:
            return NOTHING  # the client could not read one of our replies
        if not isinstance(envelope.method, str):
            return invalid_request(jsonrpc.NO_ID, "a message needs a method")
        if (identifier := cancelled_request(message)) is not None:
            self._cancel(identifier)
        return NOTHING

    def _cancel(self, identifier: RequestId) -> None:
        """Cancel a request, whether it streams, waits for an answer or runs."""
        if self.push.streams.pop(identifier, None) is not None:
            self.follow_changes()
        if request := self._asking.cancel(identifier):
            self._send_reply(request, None)
        if exchange := self._running.get(identifier):
            exchange.is_cancelled = True

    def _answer(self, request: PendingRequest) -> Answer:
        """Run a request. Every error that it raises becomes an error of JSON-RPC here."""
        method = request.message.method
        try:
            result = self._run(request)
        except Cancelled:
            return Answer(outcome="cancelled")
        except ProtocolError as exc:
            error = exc
        except BadInput as exc:
            error = InvalidParams(error_text(exc, is_remote=self.is_remote))
        except (NotAdmitted, NotAllowed) as exc:
            error = ProtocolError(jsonrpc.NOT_ADMITTED, str(exc))
        except PolymniaError as exc:
            text = error_text(exc, is_remote=self.is_remote)
            error = ProtocolError(jsonrpc.INTERNAL_ERROR, text)
        except Exception:
            # Only a mistake of ours gets here, never a message: tests/mcp/test_any_input.py.
            logger.exception("%s failed", method)
            text = f"internal error in {method}; the server's log has the details"
            error = ProtocolError(jsonrpc.INTERNAL_ERROR, text)
        else:
            return self._make_answer(request, result)
        return error_answer(request.raw_id, error)

    def _make_answer(self, request: PendingRequest, result: Any) -> Answer:
        if result is None or isinstance(result, Answer):
            return result or NOTHING
        is_failure = isinstance(result, ToolResult) and result.is_error
        body = jsonrpc.encode_reply(request.raw_id, result)
        return Answer(body, outcome="error" if is_failure else "ok")

    def _run(self, request: PendingRequest) -> Any:
        """Return the result of the request's method; None or an Answer if it replies later."""
        message = request.message
        method = methods.find_method(message)
        if method is None or message.problem is not None or message.envelope.jsonrpc != "2.0":
            raise methods.refusal(message, method)
        exchange = open_exchange(self, request)
        methods.require_era(method, exchange)
        self._running[request.id] = exchange
        token = CANCELLED.set(exchange.is_unwanted)
        try:
            result = method.run(exchange, message.params)
        except InputRequired as exc:
            return self._ask(exchange, exc.questions)
        finally:
            CANCELLED.reset(token)
            if self._running.get(request.id) is exchange:
                del self._running[request.id]
        if exchange.is_cancelled:
            raise Cancelled("cancelled while it was running")
        if exchange.is_stateless:
            self._complete(result, method)
        return result

    def _complete(self, result: Any, method: Method) -> None:
        """Add to a result what stateless clients expect on every result."""
        meta = self.server.result_meta
        if isinstance(result, ToolResult):
            result.result_type = "complete"
            result.meta = meta
        elif result is not None:
            result |= {"resultType": "complete", "_meta": meta}
            if method.fresh_ms is not None:
                result |= {"ttlMs": method.fresh_ms, "cacheScope": "private"}

    def _ask(self, exchange: Exchange, questions: Sequence[Any]) -> Any:
        """Ask the client what a request needs. A stateless one answers with its next request."""
        request = exchange.request
        if not exchange.is_stateless:
            self._asking.ask(request, questions)
            return _PENDING
        inputs = {}
        for question in questions:
            inputs[question.key] = {"method": question.method, "params": question.params}
        about = subject(exchange.client, request.message)
        return {
            "resultType": "input_required",
            "inputRequests": inputs,
            "requestState": self.server.states.seal(about, request.answers),
            "_meta": self.server.result_meta,
        }

    def _resume(self, request: PendingRequest) -> None:
        """Run a request that has its answers, and send its reply."""
        started = time.perf_counter()
        with _used_workspaces() as used:
            answer = self._answer(request)
        if not answer.is_pending:
            seconds = time.perf_counter() - started
            self.observe(request.message, answer, request.delivery, seconds, used)
            self._send_reply(request, answer.body)

    def _send_reply(self, request: PendingRequest, body: bytes | None) -> None:
        """Send a reply after `handle` has returned."""
        if request.delivery.reply is not None:
            request.delivery.reply(body)
        elif body is not None:
            self._send(body)

    def admit_client(self, meta: params.Meta) -> None:
        """Set the client's principal by the token of this or an earlier request.

        Raise NotAdmitted.
        """
        if self._admit is None:
            return
        self._token = meta.token or self._token
        try:
            self.client.principal = self._admit(self._token)
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

    def notify(self, method: str, arguments: dict[str, Any]) -> None:
        """Queue a notification and wake the transport."""
        self._send(jsonrpc.encode_notification(method, arguments))

    def _send(self, message: bytes) -> None:
        self.outbox.append(message)
        if self._wake is not None:
            self._wake()

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
            self._send_reply(request, jsonrpc.encode_error(request.raw_id, error))


@contextmanager
def _used_workspaces() -> Iterator[Iterable[str]]:
    """Yield the names of the workspaces that are used in the block."""
    used: dict[str, None] = {}
    token = USED_WORKSPACES.set(used)
    try:
        yield used
    finally:
        USED_WORKSPACES.reset(token)


def _handle_batch(session: Session, batch: Message, delivery: Delivery) -> Answer:
    """Handle the messages of a batch in order. Return their replies as one."""
    try:
        if session.revision != params.BATCHES:
            text = f"revision {session.revision} has no batches; send one message at a time"
            raise ProtocolError(jsonrpc.INVALID_REQUEST, text)
        items = jsonrpc.parse_batch(batch.batch or b"")
    except ProtocolError as exc:
        answer = error_answer(jsonrpc.NO_ID, exc)
        session.observe(batch, answer, delivery)
        return answer
    delivery = structs.replace(delivery, can_ask=False)  # all replies come together
    replies: list[bytes] = []
    size = 0
    for item in items:
        message = parse(bytes(item))
        is_full = size > MAX_BATCH_REPLY_BYTES
        answer = _refuse_in_batch(message, is_full) or session.handle(message, delivery)
        if answer.body is not None:
            replies.append(answer.body)
            size += len(answer.body)
    return Answer(b"[" + b",".join(replies) + b"]") if replies else NOTHING


def _refuse_in_batch(message: Message, is_full: bool) -> Answer | None:
    """Return the refusal of a message that a batch cannot hold; None if it can."""
    if message.batch is not None:
        return invalid_request(jsonrpc.NO_ID, "a message must be a JSON object")
    if not message.is_request or message.id is UNSET:
        return None
    if message.method == "initialize":
        return invalid_request(message.id, "initialize must not be in a batch; send it alone")
    if is_full:
        text = f"the replies to this batch exceed {MAX_BATCH_REPLY_BYTES} bytes"
        error = ProtocolError(jsonrpc.INTERNAL_ERROR, f"{text}; send this request again")
        return error_answer(message.id, error)
    return None
