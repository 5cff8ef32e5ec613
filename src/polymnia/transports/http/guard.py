"""Checks before the protocol: Host and Origin, the token, and headers that repeat the body."""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import UNSET, Struct
from msgspec.structs import replace

from polymnia.auth.grants import scopes_of
from polymnia.dialects.base import Tool
from polymnia.errors import InvalidParams, NotAdmitted, ProtocolError, Refused
from polymnia.mcp.message import Message
from polymnia.mcp.params import CLIENT_CAPABILITIES, PROTOCOL_VERSION, STATELESS, SUPPORTED
from polymnia.mcp.server import Server
from polymnia.model import Principal
from polymnia.transports.address import host_of, is_loopback, is_origin
from polymnia.transports.http.connection import MAX_HEAD_BYTES
from polymnia.transports.http.request import BLANK, CLOSE, HttpRequest

METADATA_PATH = "/.well-known/oauth-protected-resource"
HEADER_MISMATCH = -32020
MAX_HEADERS = 200

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
WORKSPACE = b"x-memory-workspace"
_BEARER = "bearer "
# Headers that must not be repeated: a proxy could use one value and this server the other.
_SINGLE = frozenset(
    (b"host", b"origin", b"authorization", b"mcp-session-id", WORKSPACE, VERSION, METHOD, NAME)
)


class Admit(Protocol):
    """Returns the principal of a bearer token; None stands for no token. Raises NotAdmitted."""

    def __call__(self, token: str | None, peer: str, resource: str) -> Principal:
        """`peer` is the client's address, for the log. The request is for the URL `resource`."""


class RequestGuard(Struct, frozen=True, kw_only=True):
    """The checks that every request must pass before it reaches an endpoint."""

    admit: Admit
    # Returns True if requests need a token at the moment.
    requires_token: Callable[[], bool] = lambda: True
    # Returns True if an admitted principal would still be admitted.
    holds: Callable[[Principal], bool] = lambda principal: True
    # Names of the server, besides IP addresses and those of this machine.
    hosts: frozenset[str] = frozenset()
    # Web pages that may use the server, as `https://host:port`.
    origins: frozenset[str] = frozenset()
    # True if only this machine can reach the server: its own pages may use it.
    is_local: bool = True
    # The URL by which clients know the server. Below it they learn how to get a token.
    base_url: str = ""

    def check(self, request: HttpRequest) -> None:
        """Raise Refused for a large or ambiguous head, or a foreign Host or Origin."""
        self.check_host(request)
        origin = request.header(b"origin")
        if origin is None or origin in self.origins:
            return
        is_local_page = is_origin(origin) and is_loopback(host_of(urlsplit(origin).netloc) or "")
        if not (self.is_local and is_local_page):
            text = "may not use this server; its operator can allow the origin"
            raise Refused(403, f"pages from {origin} {text}")

    def check_host(self, request: HttpRequest) -> None:
        """Raise Refused for a large or ambiguous head, or a foreign Host (DNS rebinding)."""
        fields = request.scope["headers"]
        size = sum([len(name) + len(value) for name, value in fields])
        if size > MAX_HEAD_BYTES:
            text = f"request head too large: at most {MAX_HEAD_BYTES} bytes"
            raise Refused(431, text, headers=CLOSE)
        if len(fields) > MAX_HEADERS:
            raise Refused(431, f"too many headers: at most {MAX_HEADERS}", headers=CLOSE)
        if len(request.fields) < len(fields):
            counts = Counter(name for name, _ in fields)
            for name in _SINGLE:
                if counts[name] > 1:
                    raise Refused(400, f"the header {name.decode().title()} must be given once")
        host, is_immune = _parse_host(request.fields.get(b"host", b""))
        if host is None:
            raise Refused(400, "the header Host is missing or malformed")
        if not (is_immune or host in self.hosts):
            text = f"this server does not serve the host {host!r}"
            raise Refused(421, f"{text}; its operator can allow the host")

    def authenticate(self, request: HttpRequest) -> Principal:
        """Return who sent the request. Raise Refused."""
        token = None
        authorization = request.header(b"authorization") or ""
        if authorization.lower().startswith(_BEARER):
            token = authorization[len(_BEARER) :].strip()
        try:
            resource = self.base_url + request.path.rstrip("/")
            principal = self.admit(token, peer=request.peer, resource=resource)
        except NotAdmitted as exc:
            request.record.is_login_rejected = token is not None
            text = "a token is required: send it in the header Authorization as Bearer TOKEN"
            if token:
                text = str(exc)
            headers = self._challenge(request, error="invalid_token" if token else "")
            raise Refused(401, text, code=-32001, headers=headers) from exc
        request.connection.admit()
        request.record.principal = principal
        return principal

    def check_scope(self, request: HttpRequest, principal: Principal, tool: Tool | None) -> None:
        """Raise Refused for a tool that the client may call once a person has allowed it more.

        Any other client is told by the tool's result.
        """
        grantable = principal.grantable
        if tool is None or grantable is None or principal.may(tool.needs):
            return
        if replace(principal, can=grantable).may(tool.needs):
            scope = scopes_of(tool.needs)
            headers = self._challenge(request, error="insufficient_scope", scope=scope)
            text = f"{tool.name} needs {tool.needs}: log in again to allow it"
            raise Refused(403, text, code=-32001, headers=headers)

    def _challenge(self, request: HttpRequest, **details: str) -> dict[str, str]:
        """Return the header that tells a client how to log in."""
        details["resource_metadata"] = self.base_url + METADATA_PATH + request.path.rstrip("/")
        text = ", ".join(f'{name}="{detail}"' for name, detail in details.items() if detail)
        return {"www-authenticate": f"Bearer {text}"}

    def workspace(self, request: HttpRequest, principal: Principal, server: Server) -> str | None:
        """Return the workspace in the header, or else the one where the principal starts.

        If every client must name its workspace, the principal's own is not taken for it.
        """
        named = named_workspace(request)
        if named:
            return named
        if server.dialect.requires_workspace:
            return server.workspace
        return principal.choose_workspace(server.workspace)


def named_workspace(request: HttpRequest) -> str | None:
    """Return the workspace that a request names in its header. Raise Refused."""
    value: bytes | None = request.fields.get(WORKSPACE)
    if not value:
        return None
    try:
        return value.decode("utf-8").strip(BLANK)
    except UnicodeDecodeError as exc:
        raise Refused(400, "X-Memory-Workspace: expected UTF-8") from exc


def is_stateless(request: HttpRequest, message: Message) -> bool:
    """Return True if the header or the body names a revision without sessions."""
    return message.version is not UNSET or names_stateless(request)


def names_stateless(request: HttpRequest) -> bool:
    """Return True if the header names a revision without sessions."""
    return VERSION in request.fields and request.header(VERSION) in STATELESS


def check_revision(request: HttpRequest) -> None:
    """Raise Refused for a revision that the server does not support."""
    version = request.header(VERSION)
    if version is not None and version not in SUPPORTED:
        text = f"unsupported protocol version {version!r}"
        raise Refused(400, f"{text}: this server supports {', '.join(SUPPORTED)}")


def check_headers(request: HttpRequest, message: Message) -> None:
    """Raise ProtocolError if the headers of a stateless request do not say what its body says."""
    meta = message.params.meta
    if not meta or meta.protocol_version is UNSET or meta.client_capabilities is UNSET:
        raise InvalidParams(f"params._meta needs {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}")
    _compare("Mcp-Protocol-Version", request.header(VERSION), meta.protocol_version)
    _compare("Mcp-Method", request.header(METHOD), message.method)
    subject = message.subject
    if subject is not UNSET:
        _compare("Mcp-Name", decode_header(request.header(NAME)), subject)


def decode_header(value: str | None) -> str | None:
    """Return a header's value; None if it is malformed.

    Text that a header cannot hold is sent as =?base64?…?=.
    """
    wrapped = re.fullmatch(r"=\?base64\?(.*)\?=", value or "")
    if wrapped is None:
        return value
    payload = wrapped[1]
    try:
        content = b64decode(payload, validate=True)
        return content.decode("utf-8") if b64encode(content).decode() == payload else None
    except (Base64Error, UnicodeDecodeError):
        return None


def _compare(header: str, given: str | None, expected: object) -> None:
    if given != expected:
        raise ProtocolError(HEADER_MISMATCH, f"the header {header} does not match the body")


@lru_cache(maxsize=256)
def _parse_host(value: bytes) -> tuple[str | None, bool]:
    """Return the host without its port, and whether it is immune to DNS rebinding.

    IP addresses are immune: they are not resolved.
    """
    host = host_of(value.decode("latin-1"))
    try:
        return host, host is not None and (is_loopback(host) or bool(ip_address(host)))
    except ValueError:
        return host, False
