"""`tools/list` and `tools/call`, and the exchange that every method runs in."""

import logging
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from polymnia.dialects.base import Reply, Tool, decode_arguments
from polymnia.dialects.content import Block
from polymnia.dialects.schema import json_schema
from polymnia.errors import (
    Cancelled,
    InputRequired,
    InvalidParams,
    PolymniaError,
    ProtocolError,
    ReadTooLong,
    StoreError,
)
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import STRUCTURED_SINCE, CallTool, Listing

logger = logging.getLogger(__name__)


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
    return {
        "tools": [
            _describe_tool(tool, structured)
            for tool in exchange.dialect.tools.values()
            if may(tool.needs)
        ]
    }


def call_tool(exchange: Exchange, params: CallTool) -> ToolResult:
    """Return the tool's reply. A failure of the tool is a result too, so that the model reads why."""
    tool = exchange.dialect.tools.get(params.name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {params.name}")
    try:
        exchange.client.principal.require(tool.needs, tool.name)
        arguments = decode_arguments(tool.decoder, params.arguments)
        reply = tool.run(exchange.call(), arguments)
    except (ProtocolError, Cancelled, ReadTooLong, InputRequired):
        raise
    except PolymniaError as exc:
        return ToolResult(
            [TextContent(error_text(exc, is_remote=exchange.session.is_remote))], is_error=True
        )
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
    hints = {
        "readOnlyHint": tool.needs == "read",
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": False,
    }
    described = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": json_schema(tool.arguments),
        "annotations": _brief_hints(hints) if tool.brief else hints,
    }
    if structured and tool.returns is not None:
        described["outputSchema"] = json_schema(tool.returns)
    if tool.always_load:
        described["_meta"] = {"anthropic/alwaysLoad": True}
    return _condense_tool(described) if tool.brief else described


def _condense_tool(described: dict[str, Any]) -> dict[str, Any]:
    """Return a description that costs a model fewer tokens: what the server checks anyway is left out."""
    condensed = {name: value for name, value in described.items() if name != "title"}
    condensed["inputSchema"] = _condense(described["inputSchema"])
    if "outputSchema" in described:
        condensed["outputSchema"] = {"type": "object"}
    return condensed


def _brief_hints(hints: dict[str, bool]) -> dict[str, bool]:
    """Return the hints that differ from the protocol's defaults; a tool that only reads needs no others."""
    if hints["readOnlyHint"]:
        return {"readOnlyHint": True}
    defaults = {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    return {name: value for name, value in hints.items() if value != defaults[name]}


def _condense(node: Any, *, is_schema: bool = True) -> Any:
    """Return a schema without defaults, bounds and the ban on unknown names."""
    if not isinstance(node, dict):
        return node
    dropped = ("default", "minimum", "maximum", "additionalProperties") if is_schema else ()
    return {
        key: _condense(value, is_schema=key != "properties")
        for key, value in node.items()
        if key not in dropped
    }
