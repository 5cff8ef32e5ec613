"""A client in the same process: calls tools over the protocol and returns what a client sees."""

from collections.abc import Mapping
from typing import Any

from msgspec.json import decode, encode

from polymnia.dialects import open_dialect
from polymnia.dialects.base import Client as Caller
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import OWNER, Principal


class Client:
    """One conversation with a dialect over a memory."""

    def __init__(self, dialect: str, memory: Memory | Server, principal: Principal = OWNER) -> None:
        server = (
            memory
            if isinstance(memory, Server)
            else Server(open_dialect(dialect), one_workspace(memory))
        )
        self.session = Session(
            server, client=Caller(principal=principal, workspace=server.workspace)
        )
        self._asked = 0
        self.request(
            "initialize", protocolVersion="2025-11-25", clientInfo={"name": "test", "version": "1"}
        )

    def request(self, method: str, **params: Any) -> Any:
        """Return the result of a request. A protocol error fails the test."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        reply = decode(self.session.handle(encode(message)).body or b"null")
        assert reply["id"] == self._asked
        assert "error" not in reply, reply
        return reply["result"]

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Return the tool's result."""
        return self.request("tools/call", name=tool, arguments=dict(arguments or {}))

    def items(self, tool: str, arguments: Mapping[str, Any] | None = None) -> list[Any]:
        """Return what a program gets that asks for JSON."""
        meta = {"polymnia/json": True}
        result = self.request("tools/call", name=tool, arguments=arguments or {}, _meta=meta)
        items: list[Any] = result["structuredContent"]["items"]
        return items

    def text(self, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Return the text of a call that must succeed."""
        result = self.call(tool, arguments)
        assert not result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text

    def json(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON text of a call that must succeed, decoded."""
        return decode(self.text(tool, arguments))

    def error(self, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Return the text of a call that must fail."""
        result = self.call(tool, arguments)
        assert result.get("isError") is True, result
        text: str = result["content"][0]["text"]
        return text
