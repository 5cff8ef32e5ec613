"""What is said in one conversation with each dialect: right, wrong and nonsensical, in each era of the protocol."""

import json
from dataclasses import dataclass
from typing import Any

from tests.interop.conversation import CALLS, GRAPH_URI
from tests.transports.wires import JSON, LISTEN

STATELESS = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Line:
    """A message, and whether it is one that gets a reply."""

    message: bytes
    is_answered: bool = True


def _call(tool: str, **arguments: Any) -> tuple[str, JSON]:
    return "tools/call", {"name": tool, "arguments": arguments}


_ADA = {"name": "Ada Lovelace", "entityType": "person", "observations": ["Wrote the first program", "数学 🦊"]}
_ENGINE = {"name": "Analytical Engine", "entityType": "machine", "observations": ["Never finished"]}
_PROGRAMS = {"from": "Ada Lovelace", "to": "Analytical Engine", "relationType": "programs"}

_QUESTIONS: dict[str, tuple[tuple[str, JSON], ...]] = {
    "reference": tuple(("tools/call", {"name": call.tool, "arguments": call.arguments}) for call in CALLS),
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
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": "b"}}),
    ("no/such/method", {}),
)
_NONSENSE = (
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
    """Everything there is to say in the newest revision that begins with a handshake."""
    info = {"name": "script", "version": "1"}
    write, entities = _QUESTIONS[dialect][1]
    return [
        _asked("hello", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info),
        _told({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        _asked("é", "ping"),
        _asked(2**60, "logging/setLevel", level="loud"),
        _asked(1.5, "resources/subscribe", uri=GRAPH_URI),
        *(_asked(number, method, **params) for number, (method, params) in enumerate(_QUESTIONS[dialect])),
        *(_asked(number, method, **params) for number, (method, params) in enumerate(_COMMON)),
        *(Line(message) for message in _NONSENSE),
        *(_told(message) for message in _UNANSWERED),
        _asked("read", "resources/read", uri=GRAPH_URI),
        _asked("enough", "resources/unsubscribe", uri=GRAPH_URI),
        _asked("last", write, **entities),
    ]


def without(dialect: str) -> list[Line]:
    """Everything there is to say in the revision whose requests speak for themselves."""
    wishes = {"resourceSubscriptions": [GRAPH_URI], "resourcesListChanged": True}
    return [
        _stateless("discover", "server/discover"),
        Line(_stateless("stream", LISTEN, notifications=wishes).message, is_answered=False),
        *(_stateless(number, method, **params) for number, (method, params) in enumerate(_QUESTIONS[dialect])),
        *(_stateless(number, method, **params) for number, (method, params) in enumerate(_COMMON)),
        _stateless("old", "ping"),
        _stateless("older", "initialize"),
        _stateless("newer", "tools/list", version="2999-01-01"),
        _stateless("read", "resources/read", uri=GRAPH_URI),
    ]


def _asked(identifier: Any, method: str, **params: Any) -> Line:
    return Line(_encoded({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}))


def _stateless(identifier: Any, method: str, *, version: str = STATELESS, **params: Any) -> Line:
    meta = {f"{_PREFIX}protocolVersion": version, f"{_PREFIX}clientCapabilities": {}}
    return _asked(identifier, method, **params, _meta=meta)


def _told(message: JSON) -> Line:
    return Line(_encoded(message), is_answered=False)


def _encoded(message: JSON) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()
