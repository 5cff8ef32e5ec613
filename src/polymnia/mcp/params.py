"""The parameters of every method as types, and the protocol's revisions."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from polymnia.errors import InvalidParams, ProtocolError

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
# Polymnia's own: sent with each request by clients without a session.
WORKSPACE = "polymnia/workspace"
SESSION = "polymnia/sessionId"
# The token, on transports without headers.
TOKEN = "polymnia/token"
JSON = "polymnia/json"

# Revisions that `initialize` negotiates, oldest first.
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# Revisions that every request names in its `_meta`: no handshake, no session.
STATELESS = ("2026-07-28",)
SUPPORTED = HANDSHAKE + STATELESS
LATEST_HANDSHAKE = HANDSHAKE[-1]
# The only revision with JSON-RPC batches.
BATCHES = "2025-03-26"
# The first revision whose tool results carry structured content.
STRUCTURED_SINCE = "2025-06-18"
# The first revision with questions to the user.
ELICITATION_SINCE = "2025-06-18"

# The first revision whose clients understand an event without a message.
RESUMABLE_SINCE = "2025-11-25"

UNSUPPORTED_VERSION = -32022

EMPTY = Raw(b"{}")


def negotiate_revision(requested: str) -> str:
    """Return the revision to use: the requested one, or the newest with a handshake."""
    return requested if requested in HANDSHAKE else LATEST_HANDSHAKE


def require_stateless_revision(requested: object) -> str:
    """Return the revision that a request names. Raise ProtocolError if it is not supported."""
    if not isinstance(requested, str):
        raise InvalidParams("_meta: the protocol version must be a string")
    if requested not in STATELESS:
        data = {"supported": list(SUPPORTED), "requested": requested}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return requested


class ClientInfo(Struct):
    name: str
    version: str = ""
    # Free-form; some clients name their session in it.
    extra: Any = None


class Meta(Struct, frozen=True):
    progress_token: str | int | UnsetType | None = field(default=UNSET, name="progressToken")
    protocol_version: Any = field(default=UNSET, name=PROTOCOL_VERSION)
    client_info: ClientInfo | UnsetType | None = field(default=UNSET, name=CLIENT_INFO)
    client_capabilities: Raw | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)
    log_level: str | UnsetType | None = field(default=UNSET, name=LOG_LEVEL)
    workspace: str | None = field(default=None, name=WORKSPACE)
    session: str | None = field(default=None, name=SESSION)
    token: str | None = field(default=None, name=TOKEN)
    # The trace of the client, as in W3C's header of that name.
    traceparent: str | None = None
    # True for a program that reads JSON instead of the text that a model gets.
    wants_json: bool = field(default=False, name=JSON)


class Params(Struct):
    meta: Meta | UnsetType | None = field(default=UNSET, name="_meta")


class Initialize(Params, kw_only=True, rename="camel"):
    protocol_version: str
    client_info: ClientInfo | None = None
    capabilities: Raw = EMPTY


class Listing(Params, kw_only=True):
    cursor: str | None = None


class Answered(Params, kw_only=True, rename="camel"):
    """A request that may be repeated with the client's answers to questions."""

    input_responses: dict[str, Raw] | UnsetType | None = UNSET
    request_state: str | UnsetType | None = UNSET


class CallTool(Answered, kw_only=True):
    name: str
    arguments: Raw = EMPTY


class OneResource(Params, kw_only=True):
    uri: str


class ReadResource(Answered, kw_only=True):
    uri: str


class GetPrompt(Answered, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class CompletionReference(Struct):
    type: str
    name: str = ""
    uri: str = ""


class CompletionArgument(Struct):
    name: str
    value: str


class Complete(Params, kw_only=True):
    ref: CompletionReference
    argument: CompletionArgument


class SetLevel(Params, kw_only=True):
    level: str


class Filter(Struct, rename="camel"):
    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class Listen(Params, kw_only=True):
    notifications: Filter


class Cancellation(Params, kw_only=True, rename="camel"):
    request_id: str | int | float
    reason: str | None = None


def actor_name(client: ClientInfo | None) -> str:
    """Return how the change log names a client."""
    if client is None:
        return "unknown client"
    # Only the server may say whose token it was.
    return f"{client.name} {client.version}".strip().replace("(token ", "(")[:200]
