"""Messages with damage: valid requests whose bytes are changed, the same for the same seed."""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from msgspec.json import encode

from polymnia.arguments import json_schema
from polymnia.dialects.base import Dialect
from tests.auth.arguments import made_for

# Numbers at and beyond the bounds of doubles, of 64-bit integers and of what Python converts.
NUMBERS = [
    b"1e999",
    b"-1e999",
    b"1e308",
    b"-1e308",
    b"1e-999",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"1" + b"0" * 400,
    b"1" + b"0" * 5000,
    b"0.5",
    b"-0.0",
    b"-1",
    b"0",
]
TEXTS = [
    b'"\xff"',
    b'"\xc3\x28"',
    b'"\xed\xa0\x80"',
    b'"\\ud800"',
    b'"\\u0000"',
    b'"' + b"x" * 5000 + b'"',
    b'"2024-13-45"',
    b'"9999-12-31T23:59:59Z"',
    b'"0001-01-01"',
    b'"%"',
    b'"*"',
    b'"/\\\\../"',
    b'""',
    b'" "',
    '"\u202e\u0085\U0010ffff"'.encode(),
]
OTHERS = [b"null", b"true", b"[]", b"{}", b"[null]", b'{"a":1}', b"[" * 300 + b"]" * 300]
DEEP = [b"[" * 990 + b"]" * 990, b'{"a":' * 600 + b"1" + b"}" * 600]
VALUES = [*NUMBERS, *TEXTS, *OTHERS, *DEEP]

# A number, word or string; a string that is a key takes its colon along.
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*":?|-?[0-9][0-9.eE+-]*|true|false|null')
# jsonrpc, id, method and the tool's name. Random bytes damage these often enough.
_ENVELOPE_VALUES = 4
# Calls that name a workspace mostly fail because there is none of that name.
_WORKSPACE = ("workspace", "project", "session_id")
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {
        "name": "n",
        "version": "1",
        "extra": {"sessionId": "s"},
    },
    "io.modelcontextprotocol/logLevel": "info",
    "polymnia/workspace": "default",
    "polymnia/token": "t",
    "progressToken": "p",
}
_METHODS: list[dict[str, Any]] = [
    {"method": "tools/list", "params": {"_meta": _META}},
    {
        "method": "prompts/get",
        "params": {"name": "x", "_meta": _META, "inputResponses": {"a": {}}, "requestState": "s"},
    },
    {"result": {"action": "accept", "content": {"confirmed": True}}},
    {"error": {"code": -1, "message": "no"}},
    {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    {"method": "ping", "params": {"_meta": {"progressToken": 1}}},
    {"method": "tools/list", "params": {"cursor": "x"}},
    {"method": "resources/list"},
    {"method": "resources/read", "params": {"uri": "memory://knowledge-graph"}},
    {"method": "resources/subscribe", "params": {"uri": "polymnia://entity/Ada"}},
    {"method": "prompts/get", "params": {"name": "recall", "arguments": {"topic": "tea"}}},
    {"method": "logging/setLevel", "params": {"level": "debug"}},
    {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "late"}},
    {
        "method": "completion/complete",
        "params": {
            "ref": {"type": "ref/prompt", "name": "recall"},
            "argument": {"name": "topic", "value": "t"},
        },
    },
    {
        "method": "subscriptions/listen",
        "params": {"notifications": {"resourceSubscriptions": ["polymnia://entity/Ada"]}},
    },
]


def damaged_messages(dialect: Dialect, seed: int) -> Iterator[bytes]:
    """Yield damaged calls of the dialect's tools and other requests, without end or line breaks."""
    rng = Random(seed)
    while True:
        message = encode({"jsonrpc": "2.0", "id": 7, **_choose_request(rng, dialect)})
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            message = _damage(rng, message)
        yield message.replace(b"\n", b" ").replace(b"\r", b" ")


def _choose_request(rng: Random, dialect: Dialect) -> dict[str, Any]:
    """Return a request of some method, mostly a call with some of the tool's optional arguments."""
    if rng.random() < 0.15:
        return rng.choice(_METHODS)
    tool = rng.choice(list(dialect.tools.values()))
    schema = json_schema(tool.arguments)
    arguments = made_for(schema, rng.choice(("Ada", "Bob", "tea")))
    for name in list(arguments):
        is_optional = name not in schema.get("required", ())
        if is_optional and (name in _WORKSPACE or rng.random() < 0.6):
            del arguments[name]
    return {"method": "tools/call", "params": {"name": tool.name, "arguments": arguments}}


def _damage(rng: Random, message: bytes) -> bytes:
    """Replace one value by another, or change some bytes."""
    values = [match for match in _VALUE.finditer(message) if message[match.end() - 1] != ord(":")]
    if len(values) > _ENVELOPE_VALUES and rng.random() < 0.8:
        value = rng.choice(values[_ENVELOPE_VALUES:])
        replacement = rng.choice(VALUES)
        if rng.random() < 0.7:  # of the same type, to get beyond the check of types
            replacement = rng.choice(TEXTS if value[0].startswith(b'"') else NUMBERS)
        return message[: value.start()] + replacement + message[value.end() :]
    at = rng.randrange(len(message) + 1)
    end = min(len(message), at + rng.choice((0, 1, 1, 4, 30)))
    return message[:at] + rng.randbytes(rng.choice((0, 1, 1, 2, 8))) + message[end:]
