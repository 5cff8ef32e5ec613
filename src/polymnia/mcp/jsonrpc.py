"""JSON-RPC 2.0: messages in, replies and notifications out."""

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
# What stands between two strings or two objects. Quotes in a string are escaped, so text has none.
_SEPARATORS = (b'","', b'", "', b"},{", b"}, {")
# The id of a longer malformed message is not looked for: the lenient parser is slow.
MAX_SALVAGE_BYTES = 1 << 16

# The parameter that a method is about. Routers see it in the header Mcp-Name.
SUBJECT = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

RequestId = str | int | float
# How a message ended. A tool that reports a failure is an error too.
Outcome = Literal["ok", "error", "cancelled"]
NO_ID = b"null"


class Answer(Struct, frozen=True):
    """What a message gets back: nothing, a reply, or an error with its code."""

    body: bytes | None = None
    error_code: int | None = None
    outcome: Outcome = "ok"
    # True if the client is asked something first. The reply comes later, by the delivery or the
    # outbox.
    is_pending: bool = False


NOTHING = Answer()


class Envelope(Struct, frozen=True):
    """A message whose parameters are still JSON."""

    jsonrpc: Any = UNSET
    method: Any = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


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

    envelope: Envelope = Envelope()
    params: Any = Outline()
    problem: ProtocolError | None = None
    batch: bytes | None = None
    is_blank: bool = False

    @property
    def method(self) -> Any:
        """Return the method as the message gives it; UNSET if it gives none."""
        return self.envelope.method

    @property
    def id(self) -> Raw | UnsetType:
        """Return the id as the message spells it; UNSET for a notification."""
        return self.envelope.id

    @property
    def is_request(self) -> bool:
        return self.envelope.id is not UNSET and self.envelope.method is not UNSET

    @property
    def is_response(self) -> bool:
        """Return True for the client's answer to a request of ours."""
        envelope = self.envelope
        has_outcome = envelope.result is not UNSET or envelope.error is not UNSET
        return envelope.id is not UNSET and envelope.method is UNSET and has_outcome

    @property
    def version(self) -> Any:
        """Return the revision that the message names for itself; UNSET if it names none."""
        meta = self.params.meta
        return meta.protocol_version if meta else UNSET

    @property
    def subject(self) -> Any:
        """Return the tool, prompt or address that the message is about; UNSET if there is none."""
        key = SUBJECT.get(self.method) if isinstance(self.method, str) else None
        return getattr(self.params, key) if key else UNSET


class _Reply(Struct):
    jsonrpc: str
    id: Raw
    result: Any


_envelope = Decoder(Envelope)
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
    decoder = decoders.get(envelope.method) if isinstance(envelope.method, str) else None
    raw = EMPTY if envelope.params is UNSET else envelope.params
    if decoder is None:
        return Message(envelope, _parse_outline(raw))
    if _has_too_many_items(data):
        text = f"too many items in one message: at most {MAX_ITEMS:,}; send several messages"
        return Message(envelope, _parse_outline(raw), InvalidParams(text))
    try:
        return Message(envelope, decode_arguments(decoder, raw, root="params"))
    except BadInput as exc:
        return Message(envelope, _parse_outline(raw), InvalidParams(str(exc)))


def _has_too_many_items(data: bytes) -> bool:
    """Return True if a message has more items than are handled at once."""
    if len(data) <= MAX_ITEMS:
        return False
    return sum(data.count(separator) for separator in _SEPARATORS) > MAX_ITEMS


def parse_batch(data: bytes) -> list[Raw]:
    """Return the messages of a batch. Raise ProtocolError."""
    if len(data) > MAX_BATCH_BYTES:
        raise ProtocolError(
            INVALID_REQUEST,
            f"batch too large: at most {MAX_BATCH_BYTES} bytes; send smaller batches",
        )
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
    return _encoder.encode(_Reply("2.0", identifier, result))


def encode_error(identifier: bytes | Raw, error: ProtocolError) -> bytes:
    """Return the reply to a request that failed."""
    body: dict[str, object] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (bytes(identifier), _encoder.encode(body))


def error_answer(identifier: bytes | Raw, error: ProtocolError) -> Answer:
    """Return the answer to a request that failed."""
    return Answer(encode_error(identifier, error), error.code, "error")


def invalid_request(identifier: bytes | Raw, text: str) -> Answer:
    """Return the answer to a message that is not a valid request."""
    return error_answer(identifier, ProtocolError(INVALID_REQUEST, text))


def encode_request(identifier: str, method: str, params: dict[str, Any]) -> bytes:
    """Return a request to the client."""
    return _encoder.encode({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def encode_notification(method: str, params: dict[str, Any]) -> bytes:
    """Return a message that gets no reply."""
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": params})


def _parse_envelope(data: bytes) -> Envelope:
    try:
        data.decode()  # msgspec does not look into the strings that it skips
        return _envelope.decode(data)
    except ValidationError as exc:
        raise ProtocolError(INVALID_REQUEST, "a message must be a JSON object") from exc
    except (DecodeError, UnicodeDecodeError) as exc:
        raise ProtocolError(PARSE_ERROR, f"not valid JSON: {_describe(data, exc)}") from exc
    except RecursionError as exc:
        raise ProtocolError(PARSE_ERROR, "not valid JSON: nested too deeply") from exc


def _parse_outline(raw: Raw) -> Outline:
    try:
        return _outline.decode(raw)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return Outline()


# How msgspec words what it finds wrong with half a surrogate pair.
_ABOUT_TEXT = re.compile("truncated|escape|surrogate")
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def _describe(data: bytes, exc: Exception) -> str:
    """Return the decoder's message, or a clearer one for half a surrogate pair."""
    is_about_text = isinstance(exc, DecodeError) and _ABOUT_TEXT.search(str(exc))
    if is_about_text and len(data) <= MAX_SALVAGE_BYTES and _LONE_SURROGATE.search(data):
        return "a \\u escape is one half of a surrogate pair"
    return str(exc)
