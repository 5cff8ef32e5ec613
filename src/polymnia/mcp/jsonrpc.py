"""JSON-RPC 2.0: envelopes in, replies and notifications out."""

import re
from typing import Any

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, Encoder

from polymnia.errors import ProtocolError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
# Ours: no token, none that is known, or none for this.
NOT_ADMITTED = -32001

RequestId = str | int | float
NO_ID = b"null"


class Envelope(Struct):
    """A message before anybody has looked into it."""

    jsonrpc: Any = UNSET
    method: Any = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Reply(Struct):
    jsonrpc: str
    id: Raw
    result: Any


_envelope = Decoder(Envelope)
_batch = Decoder(list[Raw])
_id: Decoder[RequestId] = Decoder(RequestId)
_encoder = Encoder()


def parse(data: bytes | Raw) -> Envelope:
    """The message's envelope. Raises ProtocolError."""
    try:
        return _envelope.decode(data)
    except ValidationError as exc:
        raise ProtocolError(INVALID_REQUEST, "a message must be a JSON object") from exc
    except (DecodeError, UnicodeDecodeError) as exc:
        raise ProtocolError(PARSE_ERROR, f"not valid JSON: {_plainly(data, exc)}") from exc
    except RecursionError as exc:
        raise ProtocolError(PARSE_ERROR, "not valid JSON: nested too deeply") from exc


def parse_batch(data: bytes) -> list[Raw]:
    """The messages of a batch. Raises ProtocolError."""
    try:
        messages = _batch.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ProtocolError(PARSE_ERROR, f"not valid JSON: {exc}") from exc
    if not messages:
        raise ProtocolError(INVALID_REQUEST, "a batch must hold at least one message")
    return messages


def request_id(raw: Raw) -> RequestId:
    """The id as a value. Raises ProtocolError unless it is a string or a number."""
    try:
        return _id.decode(raw)
    except (DecodeError, UnicodeDecodeError) as exc:
        raise ProtocolError(INVALID_REQUEST, "id must be a string or a number") from exc


def salvaged_id(data: bytes) -> bytes:
    """The id of a message that is not quite JSON (NaN, half a surrogate pair), so that its sender hears back."""
    import json  # the forgiving parser; needed only when something is wrong

    try:
        message = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return NO_ID
    found = message.get("id") if isinstance(message, dict) else None
    if isinstance(found, bool) or not isinstance(found, str | int | float) or found != found:
        return NO_ID
    whole = str(found).isprintable() and "\ufffd" not in str(found)
    return json.dumps(found).encode() if whole else NO_ID


def encode(value: object) -> bytes:
    return _encoder.encode(value)


def reply(identifier: Raw, result: object) -> bytes:
    return _encoder.encode(_Reply("2.0", identifier, result))


def error_reply(identifier: bytes | Raw, error: ProtocolError) -> bytes:
    body: dict[str, object] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (bytes(identifier), _encoder.encode(body))


def notification(method: str, params: dict[str, Any]) -> bytes:
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": params})


_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


# How msgspec words what it finds wrong with half a surrogate pair.
_ABOUT_TEXT = re.compile("truncated|escape|surrogate")


def _plainly(data: bytes | Raw, exc: Exception) -> str:
    if isinstance(exc, DecodeError) and _ABOUT_TEXT.search(str(exc)) and _HALF_PAIR.search(bytes(data)):
        return "a \\u escape is one half of a surrogate pair"
    return str(exc)
