"""`tools/list` and `tools/call`."""

from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from polymnia.dialects.base import Reply, Tool, decode_arguments
from polymnia.dialects.content import Block
from polymnia.dialects.schema import json_schema
from polymnia.errors import Cancelled, InvalidParams, PolymniaError, ProtocolError
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import CallTool, Listing
from polymnia.mcp.revisions import has_structured_content


class TextContent(Struct, tag_field="type", tag="text"):
    text: str


class ToolResult(Struct, omit_defaults=True, rename="camel"):
    content: list[TextContent | Block]
    structured_content: Raw | UnsetType = UNSET
    is_error: bool = False
    result_type: str | UnsetType = UNSET
    meta: Any = field(default=UNSET, name="_meta")


def list_tools(exchange: Exchange, params: Listing) -> dict[str, Any]:
    refuse_cursor(params)
    structured = has_structured_content(exchange.revision)
    may = exchange.client.principal.may
    return {"tools": [_described(tool, structured) for tool in exchange.dialect.tools.values() if may(tool.needs)]}


def call_tool(exchange: Exchange, params: CallTool) -> ToolResult:
    """The tool's reply; what it refuses or fails to do is a result too, so that the model reads why."""
    tool = exchange.dialect.tools.get(params.name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {params.name}")
    try:
        exchange.client.principal.require(tool.needs, tool.name)
        arguments = decode_arguments(tool.decoder, params.arguments)
        reply = tool.run(exchange.call(), arguments)
    except (ProtocolError, Cancelled):
        raise
    except PolymniaError as exc:
        return ToolResult([TextContent(str(exc))], is_error=True)
    return _result(reply, exchange.revision)


def refuse_cursor(params: Listing) -> None:
    """Every list is given whole, so no cursor is ever ours."""
    if params.cursor is not None:
        raise InvalidParams("cursor: unknown; the list is complete without one")


def _result(reply: Reply, revision: str) -> ToolResult:
    content: list[TextContent | Block] = [TextContent(reply.text)]
    if reply.shown:
        content = [*(content if reply.text else ()), *reply.shown]
    if reply.note is not None:
        content.append(TextContent(reply.note))
    if reply.structured is None or not has_structured_content(revision):
        return ToolResult(content)
    return ToolResult(content, reply.structured)


@lru_cache(maxsize=256)
def _described(tool: Tool, structured: bool) -> dict[str, Any]:
    """A client that sees an output schema insists on structured content, so it sees both or neither."""
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
