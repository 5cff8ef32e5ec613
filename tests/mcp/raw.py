"""Messages as they go over the wire, and what comes back for them."""

import json
from typing import Any

from polymnia.mcp.session import Session
from tests.mcp.conversation import JSON, new_session

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

RESPONSE: JSON = {"jsonrpc": "2.0", "id": 1, "result": {}}


def request(method: str, identifier: Any = 1, **params: Any) -> JSON:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def cancellation(identifier: Any) -> JSON:
    return {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": identifier},
    }


def greeted(revision: str) -> Session:
    """A conversation that has agreed on the revision."""
    session = new_session()
    say(session, request("initialize", protocolVersion=revision))
    return session


def say(session: Session, message: Any) -> Any:
    """What comes back, as a value; nothing is None."""
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    reply = session.handle(raw).body
    return None if reply is None else json.loads(reply)


def refusal(session: Session, message: Any) -> tuple[int, Any]:
    """The code and the id of the error that comes back."""
    reply = say(session, message)
    assert set(reply) == {"jsonrpc", "id", "error"}
    assert reply["error"]["message"]
    return reply["error"]["code"], reply["id"]
