"""The parameters of every method, as types."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# Ours: what a client without a session says with each request.
WORKSPACE = "polymnia/workspace"
SESSION = "polymnia/sessionId"
# And where a transport has no headers, the token it comes with.
TOKEN = "polymnia/token"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

NO_ARGUMENTS = Raw(b"{}")


class ClientInfo(Struct):
    name: str
    version: str = ""
    # Whatever clients like to add; the session some of them name in it is ours to read.
    extra: Any = None


class Meta(Struct):
    progress_token: str | int | UnsetType | None = field(default=UNSET, name="progressToken")
    protocol_version: Any = field(default=UNSET, name=PROTOCOL_VERSION)
    client_info: ClientInfo | UnsetType | None = field(default=UNSET, name=CLIENT_INFO)
    client_capabilities: Raw | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)
    log_level: str | UnsetType | None = field(default=UNSET, name=LOG_LEVEL)
    workspace: str | None = field(default=None, name=WORKSPACE)
    session: str | None = field(default=None, name=SESSION)
    token: str | None = field(default=None, name=TOKEN)


class Params(Struct):
    meta: Meta | UnsetType | None = field(default=UNSET, name="_meta")


class Initialize(Params, kw_only=True, rename="camel"):
    protocol_version: str
    client_info: ClientInfo | None = None
    capabilities: Raw = NO_ARGUMENTS


class Listing(Params, kw_only=True):
    cursor: str | None = None


class CallTool(Params, kw_only=True):
    name: str
    arguments: Raw = NO_ARGUMENTS


class OneResource(Params, kw_only=True):
    uri: str


class GetPrompt(Params, kw_only=True):
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


class Cancelled(Params, kw_only=True, rename="camel"):
    request_id: str | int | float
    reason: str | None = None
