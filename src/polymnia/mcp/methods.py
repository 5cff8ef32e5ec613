"""Every method a client may call: its parameters and the revisions that have it."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from polymnia.dialects.base import Dialect, Prompt, ResourceTemplate, session_name
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp import catalogue, tools
from polymnia.mcp.message import INVALID_REQUEST, METHOD_NOT_FOUND, Message
from polymnia.mcp.params import (
    CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    SUPPORTED,
    CallTool,
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
from polymnia.mcp.request import Request

Run = Callable[[Request, Any], Any]

# Longer messages are decoded and answered on a thread, for every method.
MAX_INLINE_BYTES = 8 * 1024


class Method(Struct, frozen=True, kw_only=True):
    """A method of the protocol. A function that returns None replies later, or never."""

    decoder: Decoder[Any]
    run: Run
    handshake: bool = True
    stateless: bool = True
    # How long stateless clients may cache the answer, in milliseconds; None if they must not.
    fresh_ms: int | None = None
    # True if it needs no store, so that a transport may run it where it reads messages.
    is_inline: bool = False


def initialize(request: Request, params: Initialize) -> dict[str, Any]:
    """Agree on a revision and learn who the client is."""
    session = request.session
    session.revision = negotiate_revision(params.protocol_version)
    session.actor = actor_name(params.client_info)
    session.client.capabilities = params.capabilities.copy()
    # Some clients name the session that they continue.
    extra = params.client_info.extra if params.client_info is not None else None
    name = extra.get("sessionId") if isinstance(extra, dict) else None
    if isinstance(name, str):
        session.client.session = session_name(name)
    elif name is not None:
        raise InvalidParams("clientInfo.extra.sessionId: expected a string")
    session.push.is_initialized = True
    session.follow_changes()
    return {
        "protocolVersion": session.revision,
        "capabilities": capabilities(request.dialect),
        "serverInfo": session.server.info,
        "instructions": request.dialect.greet(request.workspaces, request.client),
    }


def discover(request: Request, params: Params) -> dict[str, Any]:
    """Return what the server supports, for clients without a handshake."""
    return {
        "supportedVersions": list(SUPPORTED),
        "capabilities": capabilities(request.dialect),
        "instructions": request.dialect.greet(request.workspaces, request.client),
    }


def ping(request: Request, params: Params) -> dict[str, Any]:
    """Return an empty result: the server is alive."""
    return {}


def subscribe(request: Request, params: OneResource) -> dict[str, Any]:
    """Notify the session of changes at an address."""
    catalogue.require_possible(request, params.uri)
    request.session.push.subscribe(params.uri, request.client)
    request.session.follow_changes(request.client.workspace)
    return {}


def unsubscribe(request: Request, params: OneResource) -> dict[str, Any]:
    """End a subscription."""
    request.session.push.subscribed.pop(params.uri, None)
    request.session.follow_changes()
    return {}


def listen(request: Request, params: Listen) -> None:
    """Open a stream of notifications. The reply comes when the stream ends."""
    stream = ListenStream(
        bytes(request.raw_id), params.notifications, request.client, request.channel
    )
    request.session.push.listen(request.id, stream)
    request.session.follow_changes()


def set_level(request: Request, params: SetLevel) -> dict[str, Any]:
    """Set the lowest level of log messages that the session gets."""
    request.session.push.set_level(params.level)
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
    sources: list[Prompt | ResourceTemplate] = [*dialect.prompts, *dialect.templates]
    if any(source.complete for source in sources):
        offered["completions"] = {}
    return offered


def _method(kind: type[Params], run: Run, **about: Any) -> Method:
    return Method(decoder=Decoder(kind), run=run, **about)


_HOUR_MS = 3_600_000

METHODS: dict[str, Method] = {
    "initialize": _method(Initialize, initialize, stateless=False, is_inline=True),
    "server/discover": _method(
        Params, discover, handshake=False, fresh_ms=_HOUR_MS, is_inline=True
    ),
    "ping": _method(Params, ping, stateless=False, is_inline=True),
    "tools/list": _method(Listing, tools.list_tools, fresh_ms=_HOUR_MS, is_inline=True),
    "tools/call": _method(CallTool, tools.call_tool),
    "resources/list": _method(Listing, catalogue.list_resources, fresh_ms=0),
    "resources/templates/list": _method(
        Listing, catalogue.list_templates, fresh_ms=_HOUR_MS, is_inline=True
    ),
    "resources/read": _method(ReadResource, catalogue.read_resource, fresh_ms=0),
    "resources/subscribe": _method(OneResource, subscribe, stateless=False),
    "resources/unsubscribe": _method(OneResource, unsubscribe, stateless=False),
    "subscriptions/listen": _method(Listen, listen, handshake=False),
    "prompts/list": _method(Listing, catalogue.list_prompts, fresh_ms=_HOUR_MS, is_inline=True),
    "prompts/get": _method(GetPrompt, catalogue.get_prompt),
    "completion/complete": _method(Complete, catalogue.complete),
    "logging/setLevel": _method(SetLevel, set_level, stateless=False),
}


def find_method(message: Message) -> Method | None:
    """Return the method that a message names; None if there is no such method."""
    name = message.method
    return METHODS.get(name) if isinstance(name, str) else None


def refusal(message: Message, method: Method | None) -> ProtocolError:
    """Return why a request cannot be run: its revision, its form, its method or its parameters."""
    try:
        if isinstance(message.version, str):
            revision = require_stateless_revision(message.version)
            if method is not None and not method.stateless:
                return _not_in_revision(message.method, revision)
    except ProtocolError as exc:
        return exc
    if message.problem is not None:
        return message.problem
    if not isinstance(message.method, str):
        return ProtocolError(INVALID_REQUEST, "method: expected a string")
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {message.method}")


def require_era(method: Method, request: Request) -> None:
    """Raise ProtocolError if the method exists only with a handshake, or only without one."""
    name = request.message.method
    if request.is_stateless and not method.stateless:
        raise _not_in_revision(name, request.revision)
    if not request.is_stateless and not method.handshake:
        needed = f"{PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}"
        raise InvalidParams(f"{name} needs {needed} in params._meta")


def _not_in_revision(method: str, revision: str) -> ProtocolError:
    text = f"Method not found: {method} does not exist in revision {revision}"
    return ProtocolError(METHOD_NOT_FOUND, text)
