"""The messages that a test sends to each dialect in each era of the protocol.

Valid, invalid and malformed.
"""

import json
from dataclasses import dataclass
from typing import Any

from tests.interop.conversation import CALLS, GRAPH_URI
from tests.transports.wires import JSON, LISTEN

STATELESS = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Line:
    """A message, and whether it gets a reply."""

    message: bytes
    is_answered: bool = True


def _call(tool: str, **arguments: Any) -> tuple[str, JSON]:
    return "tools/call", {"name": tool, "arguments": arguments}


_ADA = {
    "name": "Ada Lovelace",
    "entityType": "person",
    "observations": ["Wrote the first program", "数学 🦊"],
}
_ENGINE = {"name": "Analytical Engine", "entityType": "machine", "observations": ["Never finished"]}
_PROGRAMS = {"from": "Ada Lovelace", "to": "Analytical Engine", "relationType": "programs"}

_QUESTIONS: dict[str, tuple[tuple[str, JSON], ...]] = {
    "reference": tuple(
        ("tools/call", {"name": call.tool, "arguments": call.arguments}) for call in CALLS
    ),
    "graph": (
        _call("create_entities", entities=[_ADA, _ENGINE]),
        _call("create_entities", entities=[_ADA]),
        _call("create_relations", relations=[_PROGRAMS]),
        _call("upsert_entities", entities=[{**_ADA, "observations": ["Met Babbage"]}]),
        _call("get_entity", name="Ada Lovelace"),
        _call("get_entity", name="nobody"),
        _call("describe_entity", name="Ada Lovelace"),
        _call("batch_get_entities", names=["Ada Lovelace", "nobody"]),
        _call("search_nodes", query="ENGINE"),
        _call("get_neighbors", name="Ada Lovelace"),
        _call("find_path", **{"from": "Ada Lovelace", "to": "Analytical Engine"}),
        _call("find_path", **{"from": "Ada Lovelace"}),
        _call("graph_stats"),
        _call("export_graph", format="mermaid"),
        _call("export_graph", format="nonsense"),
        _call("read_graph", limit=1),
        _call("read_graph", unknown=True),
        _call("delete_entities", entityNames=["Analytical Engine"]),
        _call("compact"),
    ),
}
_COMMON: tuple[tuple[str, JSON], ...] = (
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("resources/read", {"uri": "memory://nowhere"}),
    ("prompts/get", {"name": "none"}),
    ("tools/call", {"name": "nonsense", "arguments": {}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": "b"}},
    ),
    ("no/such/method", {}),
)
_MALFORMED = (
    b"nonsense",
    b"17",
    b'{"jsonrpc":"2.0","id":"n","method":"ping"',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b"\xff\xfe",
)
_UNANSWERED: tuple[JSON, ...] = (
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "of nobody"}},
    {"jsonrpc": "2.0", "method": "notifications/nonsense"},
    {"jsonrpc": "2.0", "id": 1, "result": {}},
)


def with_a_handshake(dialect: str) -> list[Line]:
    """Return every message of the script for the newest revision that begins with `initialize`."""
    info = {"name": "script", "version": "1"}
    write, entities = _QUESTIONS[dialect][1]
    return [
        _request(
            "hello", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info
        ),
        _notification({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        _request("é", "ping"),
        _request(2**60, "logging/setLevel", level="loud"),
        _request(1.5, "resources/subscribe", uri=GRAPH_URI),
        *(
            _request(number, method, **params)
            for number, (method, params) in enumerate(_QUESTIONS[dialect])
        ),
        *(_request(number, method, **params) for number, (method, params) in enumerate(_COMMON)),
        *(Line(message) for message in _MALFORMED),
        *(_notification(message) for message in _UNANSWERED),
        _request("read", "resources/read", uri=GRAPH_URI),
        _request("enough", "resources/unsubscribe", uri=GRAPH_URI),
        _request("last", write, **entities),
    ]


def without(dialect: str) -> list[Line]:
    """Return every message of the script for the stateless revision."""
    wishes = {"resourceSubscriptions": [GRAPH_URI], "resourcesListChanged": True}
    return [
        _stateless_request("discover", "server/discover"),
        Line(_stateless_request("stream", LISTEN, notifications=wishes).message, is_answered=False),
        *(
            _stateless_request(number, method, **params)
            for number, (method, params) in enumerate(_QUESTIONS[dialect])
        ),
        *(
            _stateless_request(number, method, **params)
            for number, (method, params) in enumerate(_COMMON)
        ),
        _stateless_request("old", "ping"),
        _stateless_request("older", "initialize"),
        _stateless_request("newer", "tools/list", version="2999-01-01"),
        _stateless_request("read", "resources/read", uri=GRAPH_URI),
    ]


def _request(identifier: Any, method: str, **params: Any) -> Line:
    return Line(_encode({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}))


def _stateless_request(
    identifier: Any, method: str, *, version: str = STATELESS, **params: Any
) -> Line:
    meta = {f"{_PREFIX}protocolVersion": version, f"{_PREFIX}clientCapabilities": {}}
    return _request(identifier, method, **params, _meta=meta)


def _notification(message: JSON) -> Line:
    return Line(_encode(message), is_answered=False)


def _encode(message: JSON) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()
