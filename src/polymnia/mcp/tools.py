"""`tools/list` and `tools/call`, and the exchange that every method runs in."""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from polymnia.dialects.base import Call, Client, Dialect, Level, Reply, Tool, decode_arguments
from polymnia.dialects.content import Block
from polymnia.dialects.schema import json_schema
from polymnia.errors import (
    Cancelled,
    InvalidParams,
    PolymniaError,
    ProtocolError,
    ReadTooLong,
    StoreError,
)
from polymnia.mcp.jsonrpc import RequestId
from polymnia.mcp.params import STRUCTURED_SINCE, CallTool, Listing, Meta
from polymnia.mcp.push import LIST_CHANGED, Notify, is_at_least

if TYPE_CHECKING:
    from polymnia.mcp.session import Session

logger = logging.getLogger(__name__)


class Exchange(Struct):
    """One request while it is being answered: what a method may use besides its parameters."""

    session: "Session"
    dialect: Dialect
    id: RequestId
    raw_id: Raw
    revision: str
    is_stateless: bool
    meta: Meta
    client: Client
    actor: str
    # Where notifications about this request go: on their own way, or with all others of the session.
    notify: Notify
    # Returns True once nobody waits for the answer any more.
    gone: Callable[[], bool] | None = None
    is_cancelled: bool = False

    def call(self) -> Call:
        """Return what tools, resources and prompts see of this exchange."""
        token = self.client.principal.name
        by = f"{self.actor} (token {token})" if token else self.actor
        about: dict[str, Any] = {
            "cancelled": self.is_unwanted,
            "log": self._log,
            "resources_changed": self._set_changed,
        }
        if self.meta.progress_token not in (UNSET, None):
            about["progress"] = self._progress
        return Call(self.session.server.workspaces, self.client, by, **about)

    def is_unwanted(self) -> bool:
        """Return True if the client has cancelled the request or is gone."""
        return self.is_cancelled or (self.gone is not None and self.gone())

    def _log(self, level: Level, text: str) -> None:
        """Tell the client about its own request, if it asked for messages of that level."""
        minimum = self.meta.log_level
        wanted = is_at_least(level, minimum) if self.is_stateless else self.session.push.wants_level(level)
        if wanted:
            self.notify("notifications/message", {"level": level, "logger": self.dialect.name, "data": text})

    def _set_changed(self) -> None:
        self.session.notify(LIST_CHANGED, {})

    def _progress(self, done: float, total: float | None, message: str | None) -> None:
        params: dict[str, Any] = {"progressToken": self.meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.notify("notifications/progress", params)


class TextContent(Struct, tag_field="type", tag="text"):
    text: str


class ToolResult(Struct, omit_defaults=True, rename="camel"):
    content: list[TextContent | Block]
    structured_content: Raw | UnsetType = UNSET
    is_error: bool = False
    result_type: str | UnsetType = UNSET
    meta: Any = field(default=UNSET, name="_meta")


def list_tools(exchange: Exchange, params: Listing) -> dict[str, Any]:
    """Return the tools that the client may call."""
    refuse_cursor(params)
    structured = exchange.revision >= STRUCTURED_SINCE
    may = exchange.client.principal.may
    return {"tools": [_describe_tool(tool, structured) for tool in exchange.dialect.tools.values() if may(tool.needs)]}


def call_tool(exchange: Exchange, params: CallTool) -> ToolResult:
    """Return the tool's reply. A failure of the tool is a result too, so that the model reads why."""
    tool = exchange.dialect.tools.get(params.name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {params.name}")
    try:
        exchange.client.principal.require(tool.needs, tool.name)
        arguments = decode_arguments(tool.decoder, params.arguments)
        reply = tool.run(exchange.call(), arguments)
    except (ProtocolError, Cancelled, ReadTooLong):
        raise
    except PolymniaError as exc:
        return ToolResult([TextContent(error_text(exc, is_remote=exchange.session.is_remote))], is_error=True)
    return _make_result(reply, exchange.revision)


def error_text(exc: PolymniaError, *, is_remote: bool) -> str:
    """Return the text of an error as the client may read it, and log what a remote client may not."""
    if is_remote and isinstance(exc, StoreError):
        logger.error("a request failed: %s", exc)
    return exc.public if is_remote else str(exc)


def refuse_cursor(params: Listing) -> None:
    """Raise InvalidParams for a cursor: every list is complete, so the server never gives one out."""
    if params.cursor is not None:
        raise InvalidParams("cursor: unknown; the list is complete without one")


def _make_result(reply: Reply, revision: str) -> ToolResult:
    content: list[TextContent | Block] = [TextContent(reply.text)]
    if reply.shown:
        content = [*(content if reply.text else ()), *reply.shown]
    if reply.note is not None:
        content.append(TextContent(reply.note))
    if reply.structured is None or revision < STRUCTURED_SINCE:
        return ToolResult(content)
    return ToolResult(content, reply.structured)


@lru_cache(maxsize=256)
def _describe_tool(tool: Tool, structured: bool) -> dict[str, Any]:
    """Return what `tools/list` says of a tool.

    Clients that see an output schema insist on structured content, so they get both or neither.
    """
    described = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": json_schema(tool.arguments),
        "annotations": {
            "readOnlyHint": tool.needs == "read",
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }
    if structured and tool.returns is not None:
        described["outputSchema"] = json_schema(tool.returns)
    return described
