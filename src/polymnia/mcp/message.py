"""JSON-RPC 2.0: messages in, answers and notifications out, and the channel between."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder, Encoder

from polymnia.arguments import decode_arguments
from polymnia.errors import BadInput, InvalidParams, ProtocolError
from polymnia.mcp.params import CLIENT_CAPABILITIES, EMPTY, PROTOCOL_VERSION

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
# Polymnia's own: the token is missing, unknown or not sufficient.
NOT_ADMITTED = -32001

MAX_BATCH_ITEMS = 100
# A batch is split into its messages before they can be counted, so its size is bounded as well.
MAX_BATCH_BYTES = 1 << 20
# More strings and objects than this in one message would keep other threads waiting: each step
# over them holds the interpreter.
MAX_ITEMS = 500_000
# The id of a longer malformed message is not looked for: the lenient parser is slow.
MAX_SALVAGE_BYTES = 1 << 16

RequestId = str | int | float
NO_ID = b"null"


class Answer(Struct):
    """What became of a message: its reply if it has one, and what logs and metrics may know.

    The names are those of methods, tools and workspaces that exist, never text of the client.
    """

    body: bytes | None = None
    # The code of the reply if it is an error.
    error_code: int | None = None
    # A tool that reports a failure is an error too, without a code.
    outcome: Literal["ok", "error", "cancelled"] = "ok"
    # True if the client is asked something first. The reply comes later, through the channel.
    is_pending: bool = False
    method: str = ""
    # Empty if the message calls no tool.
    tool: str = ""
    # The names of the workspaces that it used, separated by commas.
    workspace: str = ""
    seconds: float = 0.0


class Channel:
    """Where a message came from, and where what belongs to it goes. A transport has its own."""

    # The workspace that the message names in a header.
    workspace: str | None = None
    # False if the client cannot be asked anything before the reply.
    can_ask: bool = True

    def notify(self, message: bytes) -> None:
        """Send a notification or a question before the reply."""

    def reply(self, body: bytes | None) -> None:
        """Send a reply after `handle` has returned; None if there will be none."""

    def is_gone(self) -> bool:
        """Return True once the client no longer waits for the reply."""
        return False

    def observe(self, answer: Answer) -> None:
        """Log and count an answered message. A batch has several."""


class OutlineMeta(Struct, frozen=True):
    protocol_version: Any = field(default=UNSET, name=PROTOCOL_VERSION)
    client_capabilities: Raw | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)


class Outline(Struct, frozen=True):
    """As much of invalid or unknown parameters as routing needs."""

    name: Any = UNSET
    uri: Any = UNSET
    arguments: Raw | UnsetType = UNSET
    meta: OutlineMeta | None = field(default=None, name="_meta")


class Message(Struct, frozen=True):
    """One parsed message. Transports route by it and then hand it to `Session.handle`.

    `params` are those of the method, or an outline of them if there is a `problem`. The session
    takes a batch apart.
    """

    # As the message gives them; UNSET if it gives none.
    method: Any = UNSET
    id: Raw | UnsetType = UNSET
    params: Any = Outline()
    # Why it cannot be handled. A malformed message has neither method nor parameters.
    problem: ProtocolError | None = None
    # The client's answer to a request of ours.
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    batch: bytes | None = None
    is_blank: bool = False

    @property
    def is_request(self) -> bool:
        return self.id is not UNSET and self.method is not UNSET

    @property
    def is_response(self) -> bool:
        """Return True for the client's answer to a request of ours."""
        has_outcome = self.result is not UNSET or self.error is not UNSET
        return self.id is not UNSET and self.method is UNSET and has_outcome

    @property
    def version(self) -> Any:
        """Return the revision that the message names for itself; UNSET if it names none."""
        meta = self.params.meta
        return meta.protocol_version if meta else UNSET

    @property
    def subject(self) -> Any:
        """Return the tool, prompt or address that the message is about; UNSET if there is none.

        Routers see it in the header Mcp-Name.
        """
        if self.method in ("tools/call", "prompts/get"):
            return self.params.name
        return self.params.uri if self.method == "resources/read" else UNSET


class _Envelope(Struct, frozen=True):
    """A message whose parameters are still JSON."""

    jsonrpc: Any = UNSET
    method: Any = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw = EMPTY
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_envelope = Decoder(_Envelope)
_outline = Decoder(Outline)
_batch = Decoder(list[Raw])
_id: Decoder[RequestId] = Decoder(RequestId)
_encoder = Encoder()


def parse_message(data: bytes, decoders: Mapping[str, Decoder[Any]]) -> Message:
    """Return the message with the parameters of its method. Raise ProtocolError."""
    start = data[:1]
    if start != b"{":
        start = data.lstrip()[:1]
        if not start:
            return Message(is_blank=True)
        if start == b"[":
            return Message(batch=data)
    envelope = _parse_envelope(data)
    method, identifier = envelope.method, envelope.id
    if method is UNSET:  # a response, or nothing that we know
        return Message(id=identifier, result=envelope.result, error=envelope.error)
    decoder = decoders.get(method) if isinstance(method, str) else None
    problem: ProtocolError | None = None
    if identifier is not UNSET and envelope.jsonrpc != "2.0":
        problem = ProtocolError(INVALID_REQUEST, 'jsonrpc: expected "2.0"')
    elif decoder is not None and len(data) > MAX_ITEMS and _count_items(data) > MAX_ITEMS:
        text = f"too many items in one message: at most {MAX_ITEMS:,}; send several messages"
        problem = InvalidParams(text)
    elif decoder is not None:
        try:
            params = decode_arguments(decoder, envelope.params, root="params")
            return Message(method, identifier, params)
        except BadInput as exc:
            problem = InvalidParams(str(exc))
    try:
        outline = _outline.decode(envelope.params)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        outline = Outline()
    return Message(method, identifier, outline, problem)


def _count_items(data: bytes) -> int:
    """Return about how many strings and objects a message has."""
    # What stands between two of them. Quotes in a string are escaped, so text has none of these.
    return sum(data.count(between) for between in (b'","', b'", "', b"},{", b"}, {"))


def parse_batch(data: bytes) -> list[Raw]:
    """Return the messages of a batch. Raise ProtocolError."""
    if len(data) > MAX_BATCH_BYTES:
        text = f"batch too large: at most {MAX_BATCH_BYTES} bytes; send smaller batches"
        raise ProtocolError(INVALID_REQUEST, text)
    try:
        messages = _batch.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ProtocolError(PARSE_ERROR, f"not valid JSON: {exc}") from exc
    if not messages:
        raise ProtocolError(INVALID_REQUEST, "a batch must hold at least one message")
    if len(messages) > MAX_BATCH_ITEMS:
        text = f"batch too long: at most {MAX_BATCH_ITEMS} messages, got {len(messages)}"
        raise ProtocolError(INVALID_REQUEST, f"{text}; send smaller batches")
    return messages


def request_id(raw: Raw) -> RequestId:
    """Return the id as a value. Raise ProtocolError unless it is a string or a number."""
    try:
        return _id.decode(raw)
    except (DecodeError, UnicodeDecodeError) as exc:
        raise ProtocolError(INVALID_REQUEST, "id must be a string or a number") from exc


def salvage_id(data: bytes) -> bytes:
    """Return the id of a message that is almost JSON, so that its sender gets the error."""
    if len(data) > MAX_SALVAGE_BYTES:
        return NO_ID
    import json  # the lenient parser; only needed for malformed messages

    try:
        message = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return NO_ID
    identifier = message.get("id") if isinstance(message, dict) else None
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float):
        return NO_ID
    if isinstance(identifier, float) and not isfinite(identifier):
        return NO_ID
    is_intact = str(identifier).isprintable() and "\ufffd" not in str(identifier)
    return json.dumps(identifier).encode() if is_intact else NO_ID


def encode(value: object) -> bytes:
    """Return the value as JSON."""
    return _encoder.encode(value)


def encode_reply(identifier: Raw, result: object) -> bytes:
    """Return the reply to a request that succeeded."""
    return _encoder.encode({"jsonrpc": "2.0", "id": identifier, "result": result})


def encode_error(identifier: bytes | Raw, error: ProtocolError) -> bytes:
    """Return the reply to a request that failed."""
    body: dict[str, object] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (bytes(identifier), _encoder.encode(body))


def encode_request(identifier: str, method: str, params: dict[str, Any]) -> bytes:
    """Return a request to the client."""
    return _encoder.encode({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def encode_notification(method: str, params: dict[str, Any]) -> bytes:
    """Return a message that gets no reply."""
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": params})


def error_answer(identifier: bytes | Raw, error: ProtocolError) -> Answer:
    """Return the answer to a message that failed."""
    return Answer(encode_error(identifier, error), error.code, "error")


def _parse_envelope(data: bytes) -> _Envelope:
    try:
        data.decode()  # msgspec does not look into the strings that it skips
        return _envelope.decode(data)
    except ValidationError as exc:
        raise ProtocolError(INVALID_REQUEST, "a message must be a JSON object") from exc
    except RecursionError as exc:
        raise ProtocolError(PARSE_ERROR, "not valid JSON: nested too deeply") from exc
    except (DecodeError, UnicodeDecodeError) as exc:
        problem = str(exc)
        # msgspec words half a surrogate pair in several ways.
        is_short = isinstance(exc, DecodeError) and len(data) <= MAX_SALVAGE_BYTES
        is_about_text = is_short and re.search("truncated|escape|surrogate", problem)
        if is_about_text and re.search(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", data):
            problem = "a \\u escape is one half of a surrogate pair"
        raise ProtocolError(PARSE_ERROR, f"not valid JSON: {problem}") from exc
