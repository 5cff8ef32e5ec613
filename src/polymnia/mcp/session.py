"""One conversation: messages in, at most one reply out for each, notifications queued."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from msgspec import UNSET, Raw
from msgspec.json import Decoder

from polymnia.dialects.base import Client, decode_arguments, session_name
from polymnia.errors import BadInput, Cancelled, InvalidParams, NotAdmitted, NotAllowed, PolymniaError, ProtocolError
from polymnia.mcp import jsonrpc, lifecycle, params, revisions
from polymnia.mcp.exchange import Arrival, Conversation, Exchange
from polymnia.mcp.jsonrpc import Envelope, RequestId
from polymnia.mcp.methods import METHODS, Method
from polymnia.mcp.push import checked_level
from polymnia.mcp.server import Server
from polymnia.mcp.tools import ToolResult
from polymnia.model import NOBODY, Change, Principal

logger = logging.getLogger(__name__)

PLAIN = Arrival()
_NO_PARAMS = Raw(b"{}")
_NO_META = params.Meta()
_CANCELLED = "notifications/cancelled"
_cancelled: Decoder[params.Cancelled] = Decoder(params.Cancelled)
_any_params: Decoder[params.Params] = Decoder(params.Params)


class Session:
    """What a transport talks to. It may be used from several threads, one message each."""

    def __init__(
        self,
        server: Server,
        *,
        client: Client | None = None,
        admit: Callable[[str | None], Principal] | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        """`wake` is called when a notification is queued while a request is still being answered.

        `admit` says who a token is where messages bring theirs with them, and raises NotAdmitted.
        """
        self.outbox: deque[bytes] = deque()
        self.client = client or Client(workspace=server.workspace)
        self._conversation = Conversation(server, self, self.client, self._notify)
        self._running: dict[RequestId, Exchange] = {}
        self._unwanted: set[RequestId] = set()
        self._wake = wake
        self._admit = admit
        self._token: str | None = None
        self._ending = Lock()
        self._over = False
        self._leave = server.join(self)

    @property
    def is_greeted(self) -> bool:
        """Whether `initialize` was answered with a result."""
        return self._conversation.push.greeted

    def handle(self, data: bytes, arrival: Arrival = PLAIN) -> bytes | None:
        """The reply to a message, if it gets one; what is queued meanwhile is in the outbox. Blank is no message."""
        start = data[:1]
        if start != b"{":
            start = data.lstrip()[:1]
            if not start:
                return None
            if start == b"[":
                return self._handle_batch(data, arrival)
        return self._handle_one(data, arrival)

    def foresee(self, data: bytes) -> None:
        """Look at a message that waits behind others: a cancellation spares the request it names."""
        try:
            envelope = jsonrpc.parse(data)
            if envelope.method == _CANCELLED and envelope.id is UNSET and envelope.params is not UNSET:
                self._unwanted.add(decode_arguments(_cancelled, envelope.params).request_id)
        except PolymniaError:
            return  # it is refused when its turn comes

    def close(self) -> None:
        """End the conversation: open streams get their last message, and nothing is told any more."""
        self._leave()
        with self._ending:
            over, self._over = self._over, True
        if not over and self.client.lasting:
            self._conversation.server.left(self.client)
        streams = self._conversation.push.streams
        for identifier, stream in list(streams.items()):
            meta = {params.SUBSCRIPTION_ID: identifier, **self._server_stamp()}
            self.outbox.append(jsonrpc.reply(Raw(stream.raw_id), {"resultType": "complete", "_meta": meta}))
        streams.clear()

    def changed(self, workspace: str, change: Change) -> None:
        """A workspace's memory has changed: queue what this client asked to hear."""
        self._conversation.push.changed(workspace, change)

    def log(self, level: str, logger: str, text: str) -> None:
        """Queue a log message for this client if its level lets it pass."""
        self._conversation.push.log(level, logger, text)

    def _handle_batch(self, data: bytes, arrival: Arrival) -> bytes | None:
        try:
            if self._conversation.revision != revisions.BATCHES:
                message = f"revision {self._conversation.revision} has no batches; send one message at a time"
                raise ProtocolError(jsonrpc.INVALID_REQUEST, message)
            messages = jsonrpc.parse_batch(data)
        except ProtocolError as exc:
            return jsonrpc.error_reply(jsonrpc.NO_ID, exc)
        replies = [
            reply
            for message in messages
            if (reply := self._handle_one(bytes(message), arrival, alone=False)) is not None
        ]
        return b"[" + b",".join(replies) + b"]" if replies else None

    def _handle_one(self, data: bytes, arrival: Arrival, *, alone: bool = True) -> bytes | None:
        try:
            envelope = jsonrpc.parse(data)
        except ProtocolError as exc:
            return jsonrpc.error_reply(jsonrpc.salvaged_id(data), exc)
        if envelope.id is UNSET:
            return self._notified(envelope)
        if envelope.method is UNSET and (envelope.result is not UNSET or envelope.error is not UNSET):
            return None  # a reply: this server asks nothing, so it answers nothing of ours
        try:
            identifier = jsonrpc.request_id(envelope.id)
        except ProtocolError as exc:
            return jsonrpc.error_reply(jsonrpc.NO_ID, exc)
        if not alone and envelope.method == "initialize":
            error = ProtocolError(jsonrpc.INVALID_REQUEST, "initialize has no place in a batch")
            return jsonrpc.error_reply(envelope.id, error)
        return self._answered(envelope, identifier, envelope.id, arrival)

    def _answered(self, envelope: Envelope, identifier: RequestId, raw_id: Raw, arrival: Arrival) -> bytes | None:
        try:
            if identifier in self._unwanted:
                raise Cancelled("cancelled before it began")
            result = self._result(envelope, identifier, raw_id, arrival)
        except ProtocolError as exc:
            return jsonrpc.error_reply(raw_id, exc)
        except Cancelled:
            self._unwanted.discard(identifier)
            return None
        except BadInput as exc:
            return jsonrpc.error_reply(raw_id, InvalidParams(str(exc)))
        except (NotAdmitted, NotAllowed) as exc:
            return jsonrpc.error_reply(raw_id, ProtocolError(jsonrpc.NOT_ADMITTED, str(exc)))
        except PolymniaError as exc:
            return jsonrpc.error_reply(raw_id, ProtocolError(jsonrpc.INTERNAL_ERROR, str(exc)))
        except Exception:
            logger.exception("%s failed", envelope.method)
            message = f"internal error in {envelope.method}; the server's log has the details"
            return jsonrpc.error_reply(raw_id, ProtocolError(jsonrpc.INTERNAL_ERROR, message))
        return None if result is None else jsonrpc.reply(raw_id, result)

    def _result(self, envelope: Envelope, identifier: RequestId, raw_id: Raw, arrival: Arrival) -> Any:
        method = METHODS.get(envelope.method) if isinstance(envelope.method, str) else None
        if method is None or envelope.jsonrpc != "2.0":
            raise _no_request(envelope)
        arguments = _decoded(envelope, method)
        meta = arguments.meta or _NO_META
        exchange = self._exchange(meta, identifier, raw_id, arrival)
        if not (method.stateless if exchange.stateless else method.handshake):
            raise _other_era(str(envelope.method), exchange.revision if exchange.stateless else None)
        self._running[identifier] = exchange
        try:
            result = method.run(exchange, arguments)
        finally:
            if self._running.get(identifier) is exchange:
                del self._running[identifier]
        if exchange.unwanted:
            raise Cancelled("cancelled while it was under way")
        return self._stamped(result, method) if exchange.stateless else result

    def _exchange(self, meta: params.Meta, identifier: RequestId, raw_id: Raw, arrival: Arrival) -> Exchange:
        conversation = self._conversation
        if self._admit is not None:
            self._token = meta.token or self._token
            self.client.principal = NOBODY  # until it has been admitted again
            self.client.principal = self._admit(self._token)
        if stateless := meta.protocol_version is not UNSET:
            revision, actor = _stateless_revision(meta), lifecycle.named(meta.client_info or None)
        else:
            revision, actor = conversation.revision, conversation.actor
        client = self.client
        if stateless or arrival.workspace is not None:
            client = self._named_anew(meta, arrival)
        notify = self._notify if arrival.tell is None else partial(_tell, arrival.tell)
        return Exchange(
            conversation, identifier, raw_id, revision, stateless, meta, client, actor, notify, arrival.gone
        )

    def _named_anew(self, meta: params.Meta, arrival: Arrival) -> Client:
        """Return the client of a request that names its workspace or session itself."""
        stateless = meta.protocol_version is not UNSET
        return Client(
            principal=self.client.principal,
            workspace=meta.workspace or arrival.workspace or self.client.workspace,
            names_workspace=bool(meta.workspace or arrival.workspace),
            session=self.client.session if meta.session is None else session_name(meta.session),
            lasting=self.client.lasting and not stateless,
            conversation=None if stateless else self.client,
            capabilities=self.client.capabilities if meta.client_capabilities is UNSET else meta.client_capabilities,
            id=self.client.id if self.client.lasting else "",
        )

    def _stamped(self, result: Any, method: Method) -> Any:
        """What stateless clients find on every result."""
        if result is None:
            return None
        if isinstance(result, ToolResult):
            result.result_type = "complete"
            result.meta = self._server_stamp()
            return result
        stamped = {**result, "resultType": "complete", "_meta": self._server_stamp()}
        if method.fresh_for is not None:
            stamped |= {"ttlMs": method.fresh_for, "cacheScope": "private"}
        return stamped

    def _server_stamp(self) -> dict[str, Any]:
        return {params.SERVER_INFO: lifecycle.server_info(self._conversation.server.dialect)}

    def _notified(self, envelope: Envelope) -> bytes | None:
        """A notification is never answered; what is no message at all is."""
        if envelope.method is UNSET and envelope.error is not UNSET:
            return None  # the client could not tell which reply of ours displeased it
        if not isinstance(envelope.method, str):
            error = ProtocolError(jsonrpc.INVALID_REQUEST, "a message needs a method")
            return jsonrpc.error_reply(jsonrpc.NO_ID, error)
        if envelope.method == _CANCELLED and envelope.params is not UNSET:
            self._cancel(envelope.params)
        return None

    def _cancel(self, raw: Raw) -> None:
        try:
            identifier = decode_arguments(_cancelled, raw).request_id
        except BadInput as exc:
            logger.info("a cancellation was not understood: %s", exc)
            return
        self._unwanted.discard(identifier)
        if self._conversation.push.streams.pop(identifier, None) is not None:
            self._conversation.attend()
        if exchange := self._running.get(identifier):
            exchange.is_cancelled = True

    def _notify(self, method: str, arguments: dict[str, Any]) -> None:
        self.outbox.append(jsonrpc.notification(method, arguments))
        if self._wake is not None:
            self._wake()


def _tell(tell: Callable[[bytes], None], method: str, arguments: dict[str, Any]) -> None:
    tell(jsonrpc.notification(method, arguments))


def _no_request(envelope: Envelope) -> ProtocolError:
    if (refused := _refused_first(envelope)) is not None:
        return refused
    if envelope.jsonrpc != "2.0":
        return ProtocolError(jsonrpc.INVALID_REQUEST, 'jsonrpc: expected "2.0"')
    if not isinstance(envelope.method, str):
        return ProtocolError(jsonrpc.INVALID_REQUEST, "method: expected a string")
    return ProtocolError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {envelope.method}")


def _decoded(envelope: Envelope, method: Method) -> Any:
    raw = envelope.params
    try:
        return decode_arguments(method.decoder, _NO_PARAMS if raw is UNSET else raw, root="params")
    except BadInput as exc:
        raise _refused_first(envelope, method) or InvalidParams(str(exc)) from exc


def _refused_first(envelope: Envelope, method: Method | None = None) -> ProtocolError | None:
    """What comes before all else that is wrong with a request: a revision we do not speak, or that lacks the method."""
    try:
        meta = decode_arguments(_any_params, envelope.params).meta if envelope.params is not UNSET else None
        if meta and meta.protocol_version is not UNSET:
            revision = revisions.stateless(meta.protocol_version)
            return _other_era(str(envelope.method), revision) if method and not method.stateless else None
    except InvalidParams:
        return None
    except ProtocolError as exc:
        return exc
    except BadInput:
        return None
    return None


def _stateless_revision(meta: params.Meta) -> str:
    if meta.client_capabilities is UNSET:
        raise InvalidParams(f"_meta is missing {params.CLIENT_CAPABILITIES}")
    if meta.log_level:
        checked_level(meta.log_level)
    return revisions.stateless(meta.protocol_version)


def _other_era(method: str, revision: str | None) -> ProtocolError:
    """The method belongs to the era before, or to the one that began with the revisions requests name themselves."""
    if revision is not None:
        message = f"Method not found: {method} does not exist in revision {revision}"
        return ProtocolError(jsonrpc.METHOD_NOT_FOUND, message)
    return InvalidParams(f"{method} needs {params.PROTOCOL_VERSION} and {params.CLIENT_CAPABILITIES} in params._meta")
