"""HTTP clients that send plain requests, with a session or without one."""

import json
from http.client import HTTPConnection
from itertools import count
from typing import Any

from tests.mcp.conversation import STATELESS, envelope
from tests.processes import TIMEOUT_S
from tests.transports.process import Process

JSON = dict[str, Any]

_REVISION = "2025-11-25"


class Web:
    """A server process that listens on a free port and logs its address."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.host = process.log.address

    def client(self, *, token: str = "", extra: JSON | None = None) -> "WebClient":
        """Return a client that has opened a session with `initialize`."""
        return WebClient(self.host, token, extra)

    def stateless(self, *, token: str = "", session: str = "") -> "WebClient":
        return StatelessWebClient(self.host, token, session)


class WebClient:
    """One session."""

    def __init__(self, host: str, token: str, extra: JSON | None) -> None:
        self.session = ""
        self._host = host
        self._token = token
        self._ids = count(1)
        info = {"name": "web", "version": "1", **({"extra": extra} if extra else {})}
        self._shake_hands(info)

    def ask(self, method: str, **params: Any) -> JSON:
        message = {
            "jsonrpc": "2.0",
            "id": next(self._ids),
            "method": method,
            "params": self._params(params),
        }
        status, body = self._send("POST", json.dumps(message).encode(), self._headers(message))
        assert status == 200, (status, body)
        reply: JSON = json.loads(body)
        assert reply["id"] == message["id"]
        return reply

    def call(self, tool: str, **arguments: Any) -> JSON:
        reply = self.ask("tools/call", name=tool, arguments=arguments)
        assert "error" not in reply, reply
        result: JSON = reply["result"]
        return result

    def commit(self, key: str, scope: str) -> None:
        result = self.call("commit_memory", scope=scope, key=key, content="some word")
        assert not result.get("isError"), result

    def found(self, query: str) -> list[str]:
        return [
            result["key"]
            for result in self.call("search_memories", query=query)["structuredContent"]["results"]
        ]

    def delete(self) -> int:
        return self._send("DELETE", b"", self._headers({}))[0]

    def _shake_hands(self, info: JSON) -> None:
        self.ask("initialize", protocolVersion=_REVISION, capabilities={}, clientInfo=info)

    def _params(self, params: JSON) -> JSON:
        return params

    def _headers(self, message: JSON) -> dict[str, str]:
        return {"Mcp-Session-Id": self.session} if self.session else {}

    def _send(self, method: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = HTTPConnection(self._host, timeout=TIMEOUT_S)
        common = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self._token:
            common["Authorization"] = f"Bearer {self._token}"
        connection.request(method, "/mcp", body, {**common, **headers})
        response = connection.getresponse()
        answer = response.read()
        self.session = response.headers.get("Mcp-Session-Id") or self.session
        connection.close()
        return response.status, answer


class StatelessWebClient(WebClient):
    """A client without a session: each request carries its own revision and client."""

    def __init__(self, host: str, token: str, named: str) -> None:
        self._named = named
        super().__init__(host, token, None)

    def _shake_hands(self, info: JSON) -> None:
        """Send nothing: stateless clients have no handshake."""

    def _params(self, params: JSON) -> JSON:
        meta = envelope() | ({"polymnia/sessionId": self._named} if self._named else {})
        return {**params, "_meta": meta}

    def _headers(self, message: JSON) -> dict[str, str]:
        params = message["params"]
        name = params.get("name") or params.get("uri")
        named = {"Mcp-Name": name} if name else {}
        return {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": message["method"], **named}
