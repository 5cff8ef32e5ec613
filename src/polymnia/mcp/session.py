"""One client's session: messages in, at most one answer out for each, notifications queued."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

from msgspec import UNSET, Raw, structs
from msgspec.json import Decoder

from polymnia.dialects.base import Client, decode_arguments
from polymnia.errors import (
    BadInput,
    Cancelled,
    InputRequired,
    InvalidParams,
    NotAdmitted,
    NotAllowed,
    PolymniaError,
    ProtocolError,
    ReadTooLong,
)
from polymnia.mcp import jsonrpc, methods, params
from polymnia.mcp.asking import ANSWER_TIMEOUT_S, Asking, PendingRequest
from polymnia.mcp.exchange import Exchange, open_exchange, subject
from polymnia.mcp.handled import PLAIN, Delivery, describe_handled
from polymnia.mcp.jsonrpc import Answer, Message, RequestId
from polymnia.mcp.methods import DECODERS, MAX_INLINE_BYTES, METHODS, Method
from polymnia.mcp.push import Push
from polymnia.mcp.server import Server
from polymnia.mcp.tools import ToolResult, error_text
from polymnia.model import NOBODY, Change, Principal
from polymnia.stores.contract import LIMITS, ReadLimits

logger = logging.getLogger(__name__)

# Replies to a batch are collected in memory. Beyond this size its further requests are refused.
MAX_BATCH_REPLY_BYTES = 16 * 1024 * 1024
NOTHING = Answer()
_PENDING = Answer(is_pending=True)
_CANCELLED_ANSWER = Answer(outcome="cancelled")
_CANCELLED = "notifications/cancelled"
_cancellation: Decoder[params.Cancellation] = Decoder(params.Cancellation)


def parse(data: bytes) -> Message:
    """Return the message for routing and for `Session.handle`; a malformed one carries its problem."""
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
        return decode_arguments(_cancellation, envelope.params).request_id  # type: ignore[no-any-return]  # a decoder's
    except BadInput as exc:
        logger.info("a cancellation was not understood: %s", exc)
        return None


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

        `wake` is called when a notification is queued. `admit` returns the principal of a token, where messages carry
        theirs, and raises NotAdmitted. A remote client gets no log messages of the server and no details of the
        server's machine.
        """
        self.server = server
        self.client = client or Client(workspace=server.workspace)
        self.is_remote = is_remote
        self.outbox: deque[bytes] = deque()
        self.push = Push(server.dialect, self.client, self.notify)
        self.actor = "unknown client"
        self.revision = params.LATEST_HANDSHAKE
        self._running: dict[RequestId, Exchange] = {}
        self._asking = Asking()
        self._wake = wake
        self._admit = admit
        self._token: str | None = None
        self._closing = Lock()
        self._is_closed = False

    @property
    def is_initialized(self) -> bool:
        """Return True once `initialize` was answered with a result."""
        return self.push.is_initialized

    def handle(self, message: Message | bytes, delivery: Delivery = PLAIN) -> Answer:
        """Answer a message. Notifications about it are in the outbox, or where the delivery wants them."""
        if isinstance(message, bytes):
            message = parse(message)
        if message.batch is not None:
            return self._handle_batch(message, message.batch, delivery)
        return self._handle_one(message, delivery)

    def handle_inline(
        self, message: Message, size: int, delivery: Delivery = PLAIN
    ) -> Answer | None:
        """Answer a message of `size` bytes if that takes a few milliseconds at most.

        Return None if it may take longer, or turns out to: nothing has happened then, so `handle` it elsewhere.
        """
        is_refused = message.batch is not None and self.revision != params.BATCHES
        if not is_refused and not self._is_short(message, size):
            return None
        try:
            return (
                self.handle(message, delivery)
                if is_refused
                else self._handle_one(message, delivery, is_short=True)
            )
        except ReadTooLong:
            return None

    def close(self) -> None:
        """End the session: open streams get their reply, and no more notifications are queued."""
        with self._closing:
            was_closed, self._is_closed = self._is_closed, True
        self.server.leave(self)
        if not was_closed and self.client.lasting:
            self.server.end_session(self.client)
        for identifier, stream in list(self.push.streams.items()):
            meta = {params.SUBSCRIPTION_ID: identifier, params.SERVER_INFO: self.server.info}
            self.outbox.append(
                jsonrpc.encode_reply(Raw(stream.raw_id), {"resultType": "complete", "_meta": meta})
            )
        self.push.streams.clear()
        for request in self._asking.close():
            gone = ProtocolError(
                jsonrpc.INTERNAL_ERROR, "the session ended before the client answered"
            )
            self._reply_later(request, jsonrpc.encode_error(request.raw_id, gone))

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
        """Queue a log message of the server, which may name files: it is for clients on the same machine."""
        if not self.is_remote:
            self.push.log(level, logger, text)

    def notify(self, method: str, arguments: dict[str, Any]) -> None:
        """Queue a notification and wake the transport."""
        self._send(jsonrpc.encode_notification(method, arguments))

    def _send(self, message: bytes) -> None:
        self.outbox.append(message)
        if self._wake is not None:
            self._wake()

    def _handle_batch(self, batch: Message, data: bytes, delivery: Delivery) -> Answer:
        try:
            if self.revision != params.BATCHES:
                message = f"revision {self.revision} has no batches; send one message at a time"
                raise ProtocolError(jsonrpc.INVALID_REQUEST, message)
            messages = jsonrpc.parse_batch(data)
        except ProtocolError as exc:
            return self._observe(batch, _error(jsonrpc.NO_ID, exc), 0.0, delivery)
        delivery = structs.replace(delivery, can_ask=False)  # all replies come together
        replies: list[bytes] = []
        size = 0
        for each in messages:
            answer = self._handle_in_batch(
                parse(bytes(each)), delivery, is_full=size > MAX_BATCH_REPLY_BYTES
            )
            if answer.body is not None:
                replies.append(answer.body)
                size += len(answer.body)
        return Answer(b"[" + b",".join(replies) + b"]") if replies else NOTHING

    def _handle_in_batch(self, message: Message, delivery: Delivery, *, is_full: bool) -> Answer:
        if message.batch is not None:
            return _error(
                jsonrpc.NO_ID,
                ProtocolError(jsonrpc.INVALID_REQUEST, "a message must be a JSON object"),
            )
        if message.is_request and message.id is not UNSET:
            if message.method == "initialize":
                refusal = "initialize must not be in a batch; send it alone"
                return _error(message.id, ProtocolError(jsonrpc.INVALID_REQUEST, refusal))
            if is_full:
                refusal = f"the replies to this batch exceed {MAX_BATCH_REPLY_BYTES} bytes; send this request again"
                return _error(message.id, ProtocolError(jsonrpc.INTERNAL_ERROR, refusal))
        return self._handle_one(message, delivery)

    def _handle_one(
        self, message: Message, delivery: Delivery, *, is_short: bool = False
    ) -> Answer:
        if delivery.observe is None:
            return self._dispatch(message, delivery, is_short)
        started = time.perf_counter()
        answer = self._dispatch(message, delivery, is_short)
        return (
            answer
            if answer.is_pending
            else self._observe(message, answer, time.perf_counter() - started, delivery)
        )

    def _is_short(self, message: Message, size: int) -> bool:
        """Return True if the work is bounded, or consists of reads that can be."""
        if size > MAX_INLINE_BYTES or message.batch is not None or message.is_response:
            return False
        name = message.method
        method = METHODS.get(name) if isinstance(name, str) else None
        if message.id is UNSET or message.problem is not None or method is None or method.is_short:
            return True
        tool = self.server.dialect.tools.get(message.params.name) if name == "tools/call" else None
        return tool is not None and tool.quick and self.server.workspaces.short_reads

    def _observe(
        self, message: Message, answer: Answer, seconds: float, delivery: Delivery
    ) -> Answer:
        """Report a request, or a malformed message, to the observer of this delivery."""
        if delivery.observe is not None and (message.is_request or answer.body is not None):
            delivery.observe(describe_handled(self.server.dialect, message, answer, seconds))
        return answer

    def _dispatch(self, message: Message, delivery: Delivery, is_short: bool) -> Answer:
        envelope = message.envelope
        if message.is_blank:
            return NOTHING
        if envelope.id is UNSET:
            return self._handle_notification(message)
        if message.problem is not None and envelope.method is UNSET:
            return _error(envelope.id, message.problem)  # malformed
        if message.is_response:
            return self._resume(message)
        try:
            identifier = jsonrpc.request_id(envelope.id)
        except ProtocolError as exc:
            return _error(jsonrpc.NO_ID, exc)
        request = PendingRequest(
            message=message, id=identifier, raw_id=envelope.id, delivery=delivery, is_short=is_short
        )
        return self._answer(request)

    def _resume(self, response: Message) -> Answer:
        """Take the client's answer to a question, and run the waiting request again."""
        request = self._asking.take_answer(response.envelope)
        if request is not None:
            self._finish(request)
        return NOTHING

    def _time_out(self, request: PendingRequest, rounds: int) -> None:
        """Resume a request whose client did not answer in time."""
        if withdrawn := self._asking.give_up(request, rounds):
            for each in withdrawn:
                self.notify(_CANCELLED, {"requestId": each, "reason": "no answer in time"})
            self._finish(request)

    def _finish(self, request: PendingRequest) -> None:
        """Run a request that has its answers, and send its reply."""
        started = time.perf_counter()
        answer = self._answer(request)
        if not answer.is_pending:
            self._observe(request.message, answer, time.perf_counter() - started, request.delivery)
            self._reply_later(request, answer.body)

    def _reply_later(self, request: PendingRequest, body: bytes | None) -> None:
        if request.delivery.reply is not None:
            request.delivery.reply(body)
        elif body is not None:
            self._send(body)

    def _answer(self, request: PendingRequest) -> Answer:
        raw_id, message = request.raw_id, request.message
        try:
            result = self._run(request)
        except ReadTooLong:
            raise
        except ProtocolError as exc:
            return _error(raw_id, exc)
        except Cancelled:
            return _CANCELLED_ANSWER
        except BadInput as exc:
            return _error(raw_id, InvalidParams(error_text(exc, is_remote=self.is_remote)))
        except (NotAdmitted, NotAllowed) as exc:
            return _error(raw_id, ProtocolError(jsonrpc.NOT_ADMITTED, str(exc)))
        except PolymniaError as exc:
            text = error_text(exc, is_remote=self.is_remote)
            return _error(raw_id, ProtocolError(jsonrpc.INTERNAL_ERROR, text))
        except Exception:
            logger.exception("%s failed", message.method)
            text = f"internal error in {message.method}; the server's log has the details"
            return _error(raw_id, ProtocolError(jsonrpc.INTERNAL_ERROR, text))
        if result is None:
            return NOTHING
        return _PENDING if result is _PENDING else _reply(raw_id, result)

    def _run(self, request: PendingRequest) -> Any:
        message, identifier = request.message, request.id
        method = METHODS.get(message.method) if isinstance(message.method, str) else None
        if method is None or message.problem is not None or message.envelope.jsonrpc != "2.0":
            raise methods.refusal(message, method)
        exchange = open_exchange(self, request)
        if not (method.stateless if exchange.is_stateless else method.handshake):
            raise methods.wrong_era(
                message.method, exchange.revision if exchange.is_stateless else None
            )
        self._running[identifier] = exchange
        limits = LIMITS.set(ReadLimits(exchange.is_unwanted, request.is_short))
        try:
            result = method.run(exchange, message.params)
        except InputRequired as exc:
            return self._ask(exchange, request, exc.questions)
        finally:
            LIMITS.reset(limits)
            if self._running.get(identifier) is exchange:
                del self._running[identifier]
        if exchange.is_cancelled:
            raise Cancelled("cancelled while it was running")
        return self._complete(result, method) if exchange.is_stateless else result

    def _ask(self, exchange: Exchange, request: PendingRequest, questions: Sequence[Any]) -> Any:
        """Ask the client what a request needs. A stateless one answers with its next request."""
        if exchange.is_stateless:
            asked = {each.key: {"method": each.method, "params": each.params} for each in questions}
            state = self.server.states.seal(
                subject(exchange.client, request.message), exchange.answers
            )
            return {
                "resultType": "input_required",
                "inputRequests": asked,
                "requestState": state,
                "_meta": self.server.result_meta,
            }
        if request.is_short:
            raise ReadTooLong("the client must be asked, which takes long")
        self._asking.ask(request, questions, request.delivery.tell or self._send)
        self.server.deadlines.add(
            ANSWER_TIMEOUT_S, partial(self._time_out, request, request.rounds)
        )
        return _PENDING

    def admit_client(self, meta: params.Meta) -> None:
        """Set the client's principal by the token that this request or an earlier one carries. Raise NotAdmitted."""
        if self._admit is None:
            return
        self._token = meta.token or self._token
        try:
            self.client.principal = self._admit(self._token)
        except NotAdmitted as exc:
            self.client.principal = NOBODY
            if self._token is None:
                raise NotAdmitted(
                    f"a token is required: send it in params._meta as {params.TOKEN}"
                ) from exc
            raise

    def _complete(self, result: Any, method: Method) -> Any:
        """Return the result with what stateless clients expect on every result."""
        if result is None:
            return None
        if isinstance(result, ToolResult):
            result.result_type = "complete"
            result.meta = self.server.result_meta
            return result
        completed = {**result, "resultType": "complete", "_meta": self.server.result_meta}
        if method.fresh_ms is not None:
            completed |= {"ttlMs": method.fresh_ms, "cacheScope": "private"}
        return completed

    def _handle_notification(self, message: Message) -> Answer:
        """Handle a notification. Only malformed messages get a reply."""
        envelope = message.envelope
        if envelope.method is UNSET and envelope.error is not UNSET:
            return NOTHING  # an error without an id: the client could not read one of our replies
        if not isinstance(envelope.method, str):
            return _error(
                jsonrpc.NO_ID, ProtocolError(jsonrpc.INVALID_REQUEST, "a message needs a method")
            )
        if (identifier := cancelled_request(message)) is not None:
            self._cancel(identifier)
        return NOTHING

    def _cancel(self, identifier: RequestId) -> None:
        if self.push.streams.pop(identifier, None) is not None:
            self.follow_changes()
        if request := self._asking.cancel(identifier):
            self._reply_later(request, None)
        if exchange := self._running.get(identifier):
            exchange.is_cancelled = True


def _error(identifier: bytes | Raw, exc: ProtocolError) -> Answer:
    return Answer(jsonrpc.encode_error(identifier, exc), exc.code, "error")


def _reply(identifier: Raw, result: Any) -> Answer:
    is_failure = isinstance(result, ToolResult) and result.is_error
    return Answer(jsonrpc.encode_reply(identifier, result), outcome="error" if is_failure else "ok")
