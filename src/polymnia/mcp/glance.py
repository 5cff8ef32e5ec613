"""What a transport needs to know of a message before the message is handled: no more than its outside."""

from typing import Any

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from polymnia.dialects.base import Dialect, Tool
from polymnia.mcp.params import CLIENT_CAPABILITIES, PROTOCOL_VERSION

LISTEN = "subscriptions/listen"
# Which of its parameters a method is about; routers see it in the header Mcp-Name.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# Methods that read no memory.
_SHORT = ("initialize", "ping", "tools/list", "server/discover", "prompts/list", "resources/templates/list")


class GlanceMeta(Struct):
    protocol_version: Any = field(default=UNSET, name=PROTOCOL_VERSION)
    client_capabilities: Raw | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)


class GlanceParams(Struct):
    name: Any = UNSET
    uri: Any = UNSET
    arguments: Raw | UnsetType = UNSET
    meta: GlanceMeta | None = field(default=None, name="_meta")


class Glance(Struct):
    """The outside of one message; of what is no single message everything is unset."""

    id: Raw | UnsetType = UNSET
    method: Any = UNSET
    params: GlanceParams | None = None

    @property
    def version(self) -> Any:
        """The revision it names for itself; UNSET when it names none."""
        return self.params.meta.protocol_version if self.params and self.params.meta else UNSET

    @property
    def is_stateless(self) -> bool:
        """Whether it is of the era in which every request speaks for itself."""
        return self.version is not UNSET

    @property
    def is_request(self) -> bool:
        return self.id is not UNSET and self.method is not UNSET

    @property
    def about(self) -> Any:
        """The tool, prompt or address it is about; UNSET for methods without one."""
        key = NAMED_BY.get(self.method) if isinstance(self.method, str) else None
        return getattr(self.params, key) if key and self.params else UNSET

    def tool(self, dialect: Dialect) -> Tool | None:
        """The tool it calls, if it calls one that exists."""
        return dialect.tools.get(self.about) if self.method == "tools/call" and isinstance(self.about, str) else None

    def is_short(self, dialect: Dialect) -> bool:
        """Whether the answer will come in well under a millisecond, so that it is not worth a thread."""
        if self.method == "tools/call":
            tool = self.tool(dialect)
            return tool is not None and tool.quick
        return self.method in _SHORT or self.id is UNSET


_glance: Decoder[Glance] = Decoder(Glance)


def glance(data: bytes) -> Glance:
    """The outside of the message, if it is one."""
    try:
        return _glance.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return Glance()


class _Error(Struct):
    code: int


class _Failed(Struct):
    error: _Error


_failed: Decoder[_Failed] = Decoder(_Failed)


def error_code(seen: Glance, reply: bytes) -> int | None:
    """The code of a reply that is an error; None for one that is a result."""
    identifier = bytes(seen.id) if seen.id is not UNSET else b"null"
    starts = (b'{"jsonrpc":"2.0","id":%b,"error":' % identifier, b'{"jsonrpc":"2.0","id":null,"error":')
    return _failed.decode(reply).error.code if reply.startswith(starts) else None
