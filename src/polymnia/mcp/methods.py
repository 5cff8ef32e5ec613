"""Every method a client may call: its parameters and the revisions that have it."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from polymnia.dialects.base import Dialect, Prompt, ResourceTemplate, session_name
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp import catalogue, tools
from polymnia.mcp.exchange import BATCH, UNKNOWN, Exchange, MessageRecord
from polymnia.mcp.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Answer, Message
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

# Longer messages are decoded and answered on a thread, whatever they ask.
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
        bytes(exchange.request.raw_id), params.notifications, exchange.client, exchange.notify
    )
    exchange.session.push.listen(exchange.request.id, stream)
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
    sources: list[Prompt | ResourceTemplate] = [*dialect.prompts, *dialect.templates]
    if any(source.complete for source in sources):
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
DECODERS: dict[str, Decoder[Any]] = {name: method.decoder for name, method in METHODS.items()}


def find_method(message: Message) -> Method | None:
    """Return the method that a message names; None if there is no such method."""
    name = message.method
    return METHODS.get(name) if isinstance(name, str) else None


def describe_message(
    dialect: Dialect, message: Message, answer: Answer, seconds: float, workspaces: Iterable[str]
) -> MessageRecord:
    """Return what logs and metrics may know of a message and its answer."""
    method, tool = UNKNOWN, ""
    if message.batch is not None:
        method = BATCH
    elif find_method(message) is not None:
        method = message.method
    if method == "tools/call":
        subject = message.subject
        is_known = isinstance(subject, str) and subject in dialect.tools
        tool = subject if is_known else UNKNOWN
    return MessageRecord(
        method=method,
        tool=tool,
        workspace=",".join(workspaces),
        outcome=answer.outcome,
        error_code=answer.error_code,
        seconds=seconds,
    )


def refusal(message: Message, method: Method | None) -> ProtocolError:
    """Return why a request cannot be run: its revision, its form, its method or its parameters."""
    try:
        if isinstance(message.version, str):
            revision = require_stateless_revision(message.version)
            if method is not None and not method.stateless:
                return _not_in_revision(message.method, revision)
    except ProtocolError as exc:
        return exc
    if message.envelope.jsonrpc != "2.0":
        return ProtocolError(INVALID_REQUEST, 'jsonrpc: expected "2.0"')
    if message.problem is not None:
        return message.problem
    if not isinstance(message.method, str):
        return ProtocolError(INVALID_REQUEST, "method: expected a string")
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {message.method}")


def require_era(method: Method, exchange: Exchange) -> None:
    """Raise ProtocolError if the method exists only with a handshake, or only without one."""
    name = exchange.request.message.method
    if exchange.is_stateless and not method.stateless:
        raise _not_in_revision(name, exchange.revision)
    if not exchange.is_stateless and not method.handshake:
        needed = f"{PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}"
        raise InvalidParams(f"{name} needs {needed} in params._meta")


def _not_in_revision(method: str, revision: str) -> ProtocolError:
    text = f"Method not found: {method} does not exist in revision {revision}"
    return ProtocolError(METHOD_NOT_FOUND, text)
