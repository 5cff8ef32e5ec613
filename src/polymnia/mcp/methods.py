"""Every method a client may call: its parameters, the revisions that have it, and the handshake's functions."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from polymnia.dialects.base import Dialect, session_name
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp import catalogue, tools
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Message
from polymnia.mcp.params import (
    CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    SUPPORTED,
    CallTool,
    ClientInfo,
    Complete,
    GetPrompt,
    Initialize,
    Listen,
    Listing,
    OneResource,
    Params,
    ReadResource,
    SetLevel,
    actor_name,
    negotiate_revision,
    require_stateless_revision,
)
from polymnia.mcp.push import ListenStream

Run = Callable[[Exchange, Any], Any]

# Longer messages are not answered inline, whatever they ask.
MAX_INLINE_BYTES = 8 * 1024


class Method(Struct, frozen=True, kw_only=True):
    """A method of the protocol. A function that returns None replies later, or never."""

    decoder: Decoder[Any]
    run: Run
    handshake: bool = True
    stateless: bool = True
    # For stateless clients: how long they may cache the answer, in milliseconds; None if they must not.
    fresh_ms: int | None = None
    # The work is small and independent of the store's content.
    is_short: bool = False


def initialize(exchange: Exchange, params: Initialize) -> dict[str, Any]:
    """Agree on a revision and learn who the client is."""
    session = exchange.session
    session.revision = negotiate_revision(params.protocol_version)
    session.actor = actor_name(params.client_info)
    session.client.capabilities = params.capabilities.copy()
    if name := _client_session(params.client_info):
        session.client.session = name
    session.push.is_initialized = True
    session.follow_changes()
    return {
        "protocolVersion": session.revision,
        "capabilities": capabilities(exchange.dialect),
        "serverInfo": session.server.info,
        "instructions": exchange.dialect.greet(exchange.session.server.workspaces, exchange.client),
    }


def discover(exchange: Exchange, params: Params) -> dict[str, Any]:
    """Return what the server supports, for clients without a handshake."""
    return {
        "supportedVersions": list(SUPPORTED),
        "capabilities": capabilities(exchange.dialect),
        "instructions": exchange.dialect.greet(exchange.session.server.workspaces, exchange.client),
    }


def ping(exchange: Exchange, params: Params) -> dict[str, Any]:
    """Return an empty result: the server is alive."""
    return {}


def subscribe(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    """Notify the session of changes at an address."""
    catalogue.require_possible(exchange, params.uri)
    exchange.session.push.subscribe(params.uri, exchange.client)
    exchange.session.follow_changes(exchange.client.workspace)
    return {}


def unsubscribe(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    """End a subscription."""
    exchange.session.push.subscribed.pop(params.uri, None)
    exchange.session.follow_changes()
    return {}


def listen(exchange: Exchange, params: Listen) -> None:
    """Open a stream of notifications. The reply comes when the stream ends."""
    stream = ListenStream(
        bytes(exchange.raw_id), params.notifications, exchange.client, exchange.notify
    )
    exchange.session.push.listen(exchange.id, stream)
    exchange.session.follow_changes()


def set_level(exchange: Exchange, params: SetLevel) -> dict[str, Any]:
    """Set the lowest level of log messages that the session gets."""
    exchange.session.push.set_level(params.level)
    return {}


def capabilities(dialect: Dialect) -> dict[str, Any]:
    """Return the protocol features that this dialect uses."""
    offered: dict[str, Any] = {"tools": {}, "logging": {}}
    if dialect.resources or dialect.templates:
        offered["resources"] = {
            "subscribe": True,
            "listChanged": dialect.resource_set_changed is not None,
        }
    if dialect.prompts:
        offered["prompts"] = {}
    if any(prompt.complete for prompt in dialect.prompts) or any(
        each.complete for each in dialect.templates
    ):
        offered["completions"] = {}
    return offered


def _client_session(client: ClientInfo | None) -> str:
    """Return the session in `clientInfo.extra.sessionId`, or "". Raise InvalidParams, BadInput."""
    extra = client.extra if client is not None else None
    session = extra.get("sessionId") if isinstance(extra, dict) else None
    if session is None:
        return ""
    if not isinstance(session, str):
        raise InvalidParams("clientInfo.extra.sessionId: expected a string")
    return session_name(session)


def _method(kind: type[Params], run: Run, **about: Any) -> Method:
    return Method(decoder=Decoder(kind), run=run, **about)


_HOUR_MS = 3_600_000

METHODS: dict[str, Method] = {
    "initialize": _method(Initialize, initialize, stateless=False, is_short=True),
    "server/discover": _method(Params, discover, handshake=False, fresh_ms=_HOUR_MS, is_short=True),
    "ping": _method(Params, ping, stateless=False, is_short=True),
    "tools/list": _method(Listing, tools.list_tools, fresh_ms=_HOUR_MS, is_short=True),
    "tools/call": _method(CallTool, tools.call_tool),
    "resources/list": _method(Listing, catalogue.list_resources, fresh_ms=0),
    "resources/templates/list": _method(
        Listing, catalogue.list_templates, fresh_ms=_HOUR_MS, is_short=True
    ),
    "resources/read": _method(ReadResource, catalogue.read_resource, fresh_ms=0),
    "resources/subscribe": _method(OneResource, subscribe, stateless=False),
    "resources/unsubscribe": _method(OneResource, unsubscribe, stateless=False),
    "subscriptions/listen": _method(Listen, listen, handshake=False),
    "prompts/list": _method(Listing, catalogue.list_prompts, fresh_ms=_HOUR_MS, is_short=True),
    "prompts/get": _method(GetPrompt, catalogue.get_prompt),
    "completion/complete": _method(Complete, catalogue.complete),
    "logging/setLevel": _method(SetLevel, set_level, stateless=False),
}
DECODERS: dict[str, Decoder[Any]] = {name: method.decoder for name, method in METHODS.items()}


def refusal(message: Message, method: Method | None) -> ProtocolError:
    """Return why a request cannot be run. Check its revision first, then whether the revision has the method."""
    try:
        if isinstance(message.version, str):
            revision = require_stateless_revision(message.version)
            if method is not None and not method.stateless:
                return wrong_era(message.method, revision)
    except ProtocolError as exc:
        return exc
    if message.envelope.jsonrpc != "2.0":
        return ProtocolError(INVALID_REQUEST, 'jsonrpc: expected "2.0"')
    if message.problem is not None:
        return message.problem
    if not isinstance(message.method, str):
        return ProtocolError(INVALID_REQUEST, "method: expected a string")
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {message.method}")


def wrong_era(method: str, revision: str | None) -> ProtocolError:
    """Return the error for a method that exists only with a handshake, or only without one."""
    if revision is not None:
        message = f"Method not found: {method} does not exist in revision {revision}"
        return ProtocolError(METHOD_NOT_FOUND, message)
    return InvalidParams(
        f"{method} needs {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES} in params._meta"
    )
