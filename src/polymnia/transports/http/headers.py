"""What the headers of a request say of its body, for routers that do not look inside, and whether it is true."""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from msgspec import UNSET

from polymnia.errors import InvalidParams, ProtocolError, Refused
from polymnia.mcp.glance import Glance
from polymnia.mcp.params import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from polymnia.mcp.revisions import STATELESS, SUPPORTED
from polymnia.transports.http.visit import Visit

HEADER_MISMATCH = -32020

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=")


def is_stateless(visit: Visit, seen: Glance) -> bool:
    """Whether a request is of the era without sessions: its header or its body says so."""
    return seen.is_stateless or visit.header(VERSION) in STATELESS


def check_revision(visit: Visit) -> None:
    """Raises Refused for a revision nobody has agreed on with us."""
    version = visit.header(VERSION)
    if version is not None and version not in SUPPORTED:
        raise Refused(400, f"unsupported protocol version {version!r}; this server speaks {', '.join(SUPPORTED)}")


def check_agreement(visit: Visit, seen: Glance) -> None:
    """Raises ProtocolError where a request without a session says one thing and its headers another."""
    meta = seen.params.meta if seen.params else None
    if meta is None or meta.protocol_version is UNSET or meta.client_capabilities is UNSET:
        raise InvalidParams(f"params._meta needs {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}")
    once = [name for name, _ in visit.raw_headers if name in (VERSION, METHOD, NAME)]
    if len(once) != len(set(once)):
        raise ProtocolError(HEADER_MISMATCH, "Mcp-Protocol-Version, Mcp-Method and Mcp-Name may be given once each")
    _compare("Mcp-Protocol-Version", visit.header(VERSION), meta.protocol_version)
    _compare("Mcp-Method", visit.header(METHOD), seen.method)
    if seen.about is not UNSET:
        _compare("Mcp-Name", decoded(visit.header(NAME)), seen.about)


def decoded(value: str | None) -> str | None:
    """A header's value; what does not fit into one comes as =?base64?…?=. None for what is not well-formed."""
    wrapped = _WRAPPED.fullmatch(value or "")
    if wrapped is None:
        return value
    payload = wrapped[1]
    try:
        content = b64decode(payload, validate=True)
        return content.decode("utf-8") if b64encode(content).decode() == payload else None
    except (Base64Error, UnicodeDecodeError):
        return None


def _compare(header: str, said: str | None, meant: object) -> None:
    if said != meant:
        raise ProtocolError(HEADER_MISMATCH, f"the header {header} does not say what the body says")
