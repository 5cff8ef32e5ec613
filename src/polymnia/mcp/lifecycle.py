"""How a conversation starts: `initialize`, `server/discover`, and what the server says of itself."""

from typing import Any

from polymnia import __version__
from polymnia.dialects.base import Dialect, session_name
from polymnia.errors import InvalidParams
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import ClientInfo, Initialize, Params
from polymnia.mcp.revisions import SUPPORTED, negotiated

_LONGEST_NAME = 200


def initialize(exchange: Exchange, params: Initialize) -> dict[str, Any]:
    conversation = exchange.conversation
    conversation.revision = negotiated(params.protocol_version)
    conversation.actor = named(params.client_info)
    conversation.client.capabilities = params.capabilities.copy()
    if session := named_session(params.client_info):
        conversation.client.session = session
    conversation.push.greeted = True
    conversation.attend()
    return {
        "protocolVersion": conversation.revision,
        "capabilities": capabilities(exchange.dialect),
        "serverInfo": server_info(exchange.dialect),
        "instructions": exchange.dialect.instructions_for(exchange.client.principal),
    }


def discover(exchange: Exchange, params: Params) -> dict[str, Any]:
    return {
        "supportedVersions": list(SUPPORTED),
        "capabilities": capabilities(exchange.dialect),
        "instructions": exchange.dialect.instructions_for(exchange.client.principal),
    }


def ping(exchange: Exchange, params: Params) -> dict[str, Any]:
    return {}


def server_info(dialect: Dialect) -> dict[str, Any]:
    """Name and version are the catalogue's; the title says what really runs."""
    return {
        "name": dialect.server_name,
        "version": dialect.server_version,
        "title": f"Polymnia {__version__}",
    }


def capabilities(dialect: Dialect) -> dict[str, Any]:
    """Only what this dialect has."""
    offered: dict[str, Any] = {"tools": {}, "logging": {}}
    if dialect.resources or dialect.templates:
        changes = dialect.resource_set_changed is not None
        offered["resources"] = {"subscribe": True, "listChanged": changes}
    if dialect.prompts:
        offered["prompts"] = {}
    if any(prompt.complete for prompt in dialect.prompts) or any(each.complete for each in dialect.templates):
        offered["completions"] = {}
    return offered


def named_session(client: ClientInfo | None) -> str:
    """The session a client says it continues, in `clientInfo.extra.sessionId`. Raises InvalidParams, BadInput."""
    extra = client.extra if client is not None else None
    session = extra.get("sessionId") if isinstance(extra, dict) else None
    if session is None:
        return ""
    if not isinstance(session, str):
        raise InvalidParams("clientInfo.extra.sessionId: expected a string")
    return session_name(session)


def named(client: ClientInfo | None) -> str:
    """How the change log names a client."""
    if client is None:
        return "unknown client"
    # Only the server says whose token it was, and nobody needs a long name.
    return f"{client.name} {client.version}".strip().replace("(token ", "(")[:_LONGEST_NAME]
