"""A client in the same process that speaks any revision and lets the official types judge every
message.
"""

from collections.abc import Callable
from typing import Any

from mcp_types.jsonrpc import jsonrpc_message_adapter
from mcp_types.methods import parse_server_notification
from msgspec.json import decode, encode

from polymnia.dialects.base import Dialect
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.message import Channel
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from tests.mcp.dialect import Gate, one_of_everything
from tests.oracle import MemoryStore

JSON = dict[str, Any]

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = "2025-11-25"
STATELESS = "2026-07-28"
REVISIONS = (*HANDSHAKE, STATELESS)

PREFIX = "io.modelcontextprotocol/"
SUBSCRIPTION_ID = f"{PREFIX}subscriptionId"
SERVER_INFO = f"{PREFIX}serverInfo"


def new_server(dialect: Dialect | None = None) -> Server:
    return Server(dialect or one_of_everything(Gate()), one_workspace(Memory(MemoryStore())))


def new_session(dialect: Dialect | None = None) -> Session:
    return Session(new_server(dialect))


def envelope(**changed: Any) -> JSON:
    """The `_meta` of a stateless request; a key given as None is left out."""
    meta = {
        "protocolVersion": STATELESS,
        "clientCapabilities": {},
        "clientInfo": {"name": "stateless", "version": "2"},
        **changed,
    }
    return {f"{PREFIX}{key}": value for key, value in meta.items() if value is not None}


class RecordingChannel(Channel):
    """The channel of one message, which keeps what belongs to it."""

    def __init__(self, *, workspace: str | None = None, can_ask: bool = True) -> None:
        self.workspace = workspace
        self.can_ask = can_ask
        self.notifications: list[Any] = []
        self.replies: list[Any] = []

    def notify(self, message: bytes) -> None:
        self.notifications.append(decode(message))

    def reply(self, body: bytes | None) -> None:
        self.replies.append(decode(body or b""))


class Client:
    """One conversation in one revision."""

    def __init__(
        self,
        server: Server | None = None,
        revision: str = LATEST,
        *,
        wake: Callable[[], None] | None = None,
        greet: bool = True,
    ) -> None:
        self.session = Session(server or new_server(), wake=wake)
        self.revision = revision
        self._asked = 0
        if greet and revision in HANDSHAKE:
            self.initialize(revision)

    def initialize(self, revision: str) -> JSON:
        info = {"name": "handshaker", "version": "1"}
        result: JSON = self.result(
            "initialize", protocolVersion=revision, capabilities={}, clientInfo=info
        )
        self.notify("notifications/initialized")
        return result

    def message(self, method: str, params: JSON) -> JSON:
        """The next request as it goes over the wire."""
        self._asked += 1
        return {
            "jsonrpc": "2.0",
            "id": self._asked,
            "method": method,
            "params": self._with_meta(params),
        }

    def ask(self, method: str, /, **params: Any) -> JSON:
        """The one reply to a request."""
        message = self.message(method, params)
        reply = self.say(message)
        assert reply is not None, f"{method} was not answered"
        assert reply["id"] == message["id"]
        return reply

    def result(self, method: str, /, **params: Any) -> Any:
        reply = self.ask(method, **params)
        assert "error" not in reply, reply
        return reply["result"]

    def error(self, method: str, /, **params: Any) -> JSON:
        reply = self.ask(method, **params)
        assert "result" not in reply, reply
        error: JSON = reply["error"]
        return error

    def call(self, name: str, /, **arguments: Any) -> Any:
        """The result of a tool call."""
        return self.result("tools/call", name=name, arguments=arguments)

    def text(self, name: str, /, **arguments: Any) -> str:
        """The text of a tool call that must succeed."""
        result = self.call(name, **arguments)
        assert not result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text

    def notify(self, method: str, /, **params: Any) -> None:
        answer = self.session.handle(encode({"jsonrpc": "2.0", "method": method, "params": params}))
        assert answer.body is None

    def say(self, message: JSON) -> JSON | None:
        """What a message gets back, if anything."""
        reply = self.session.handle(encode(message)).body
        if reply is None:
            return None
        jsonrpc_message_adapter.validate_json(reply)
        said: JSON = decode(reply)
        return said

    def told(self) -> list[tuple[str, JSON]]:
        """The notifications since the last look: method and parameters."""
        found = []
        while self.session.outbox:
            message = decode(self.session.outbox.popleft())
            assert message["jsonrpc"] == "2.0"
            parse_server_notification(message["method"], self.revision, message["params"])
            found.append((message["method"], message["params"]))
        return found

    def _with_meta(self, params: JSON) -> JSON:
        if self.revision in HANDSHAKE:
            return params
        return {**params, "_meta": {**envelope(), **params.get("_meta", {})}}
