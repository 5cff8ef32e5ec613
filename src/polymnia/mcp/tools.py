"""`tools/list` and `tools/call`."""

import logging
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from polymnia.arguments import decode_arguments, json_schema
from polymnia.dialects.base import Block, Tool
from polymnia.engine.reads import audited_reads
from polymnia.errors import (
    Cancelled,
    InputRequired,
    InvalidParams,
    PolymniaError,
    ProtocolError,
    StoreError,
)
from polymnia.mcp.params import STRUCTURED_SINCE, CallTool, Listing
from polymnia.mcp.request import Request
from polymnia.telemetry import is_tracing, span

logger = logging.getLogger(__name__)

_DROPPED_KEYWORDS = ("default", "minimum", "maximum", "additionalProperties")
_DEFAULT_HINTS = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}


class TextContent(Struct, tag_field="type", tag="text"):
    text: str


class ToolResult(Struct, omit_defaults=True, rename="camel"):
    content: list[TextContent | Block]
    structured_content: Raw | UnsetType = UNSET
    is_error: bool = False
    result_type: str | UnsetType = UNSET
    meta: Any = field(default=UNSET, name="_meta")


def list_tools(request: Request, params: Listing) -> dict[str, Any]:
    """Return the tools that the client may call."""
    refuse_cursor(params)
    structured = request.revision >= STRUCTURED_SINCE
    tools = []
    for tool in request.dialect.tools.values():
        if request.client.principal.may(tool.needs):
            tools.append(_describe_tool(tool, structured))
    return {"tools": tools}


def call_tool(request: Request, params: CallTool) -> ToolResult:
    """Return the tool's reply. A failure is a result too, so that the model reads why."""
    tool = request.dialect.tools.get(params.name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {params.name}")
    try:
        principal = request.client.principal
        principal.require(tool.needs, tool.name)
        # Once for each call, not again when the answer to a question of the tool has come.
        if not request.answers:
            limiter = request.session.server.limiter
            limiter.take(principal, "requests")
            if tool.needs != "read":
                limiter.take(principal, "writes")
        arguments = decode_arguments(tool.decoder, params.arguments)
        days = request.session.server.audit_days
        if not (days or is_tracing()):  # a quick read should not pay for either
            reply = tool.run(request, arguments)
        else:
            parent = request.meta.traceparent
            caller = {"traceparent": parent} if parent else None
            with (
                span(f"tools/call {tool.name}", caller, dialect=request.dialect.name),
                audited_reads(days, by=request.by, tool=tool.name),
            ):
                reply = tool.run(request, arguments)
    except (ProtocolError, Cancelled, InputRequired):
        raise
    except PolymniaError as exc:
        return ToolResult(
            [TextContent(error_text(exc, is_remote=request.session.is_remote))], is_error=True
        )
    content: list[TextContent | Block] = []
    if reply.text or not reply.shown:
        content.append(TextContent(reply.text))
    content += reply.shown
    if reply.note is not None:
        content.append(TextContent(reply.note))
    # Half of the programs show their model only the JSON if there is any, and half only the text.
    wants_json = tool.returns is not None or request.meta.wants_json
    if reply.structured is None or not wants_json or request.revision < STRUCTURED_SINCE:
        return ToolResult(content)
    return ToolResult(content, reply.structured)


def error_text(exc: PolymniaError, *, is_remote: bool) -> str:
    """Return what the client may read of an error. Log what a remote client may not."""
    if is_remote and isinstance(exc, StoreError):
        logger.error("a request failed: %s", exc)
    return exc.public if is_remote else str(exc)


def refuse_cursor(params: Listing) -> None:
    """Raise InvalidParams for a cursor: lists are complete, so the server never gives one out."""
    if params.cursor is not None:
        raise InvalidParams("cursor: unknown; the list is complete without one")


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
    if tool.brief:
        # Those that differ from the protocol's defaults. The others say nothing about a tool that
        # only reads.
        hints = {name: hint for name, hint in hints.items() if hint != _DEFAULT_HINTS[name]}
        if tool.needs == "read":
            hints = {"readOnlyHint": True}
    description: dict[str, Any] = {"name": tool.name}
    if not tool.brief:
        description["title"] = tool.title
    schema = json_schema(tool.arguments)
    description |= {
        "description": tool.description,
        "inputSchema": _condense(schema) if tool.brief else schema,
        "annotations": hints,
    }
    if structured and tool.returns is not None:
        description["outputSchema"] = json_schema(tool.returns)
    if tool.always_load:
        description["_meta"] = {"anthropic/alwaysLoad": True}
    return description


def _condense(node: Any, *, is_schema: bool = True) -> Any:
    """Return a schema without defaults, bounds and the ban on unknown names."""
    if not isinstance(node, dict):
        return node
    condensed = {}
    for key, value in node.items():
        if not is_schema or key not in _DROPPED_KEYWORDS:
            # The keys below "properties" are names of arguments, not keywords.
            condensed[key] = _condense(value, is_schema=key != "properties")
    return condensed
