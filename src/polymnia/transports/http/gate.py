"""Who is let through to the protocol: the Host and Origin of a request, and the token it brings."""

from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from polymnia.dialects.base import Client
from polymnia.errors import NotAdmitted, Refused
from polymnia.mcp.server import Server
from polymnia.model import Principal
from polymnia.transports.address import host_of, is_loopback, is_origin
from polymnia.transports.http.visit import BLANK, Visit

_BEARER = "bearer "
WORKSPACE_HEADER = b"x-memory-workspace"
_ONCE = (b"host", b"origin", b"authorization", b"mcp-session-id", WORKSPACE_HEADER)


class Gate(Struct, frozen=True, kw_only=True):
    """The checks that come before any endpoint."""

    # Who a bearer token is, None standing for no token. Raises NotAdmitted.
    admit: Callable[[str | None], Principal]
    # Whether somebody who was admitted would still be.
    holds: Callable[[Principal], bool] = lambda principal: True
    # Names the server is reached by, besides addresses and those of this machine.
    hosts: frozenset[str] = frozenset()
    # Web pages that may talk to it, as `https://host:port`.
    origins: frozenset[str] = frozenset()
    # Where this machine is the only one that reaches the server, its own pages may too.
    is_local: bool = True
    # Below which address clients learn how to get a token, each path of its own.
    metadata_url: str | None = None

    def check_place(self, visit: Visit) -> None:
        """Raises Refused for a request that was led here under another name: DNS rebinding."""
        _refuse_repeats(visit)
        host, is_safe = _host_of(visit.headers.get(b"host", b""))
        if host is None:
            raise Refused(400, "the header Host is missing or is no name and port")
        if not (is_safe or host in self.hosts):
            raise Refused(
                421,
                f"this server does not answer to the name {host!r}; if it should, start it with --allow-host {host}",
            )
        origin = visit.header(b"origin")
        if origin is not None and origin not in self.origins and not (self.is_local and _is_local_page(origin)):
            raise Refused(
                403,
                f"pages from {origin} may not use this server; if they should, start it with --allow-origin {origin}",
            )

    def principal(self, visit: Visit) -> Principal:
        """Who sent the request. Raises Refused."""
        given = visit.header(b"authorization")
        token = given[len(_BEARER) :].strip() if given and given[: len(_BEARER)].lower() == _BEARER else None
        try:
            return self.admit(token)
        except NotAdmitted as exc:
            challenge = "Bearer" + (' error="invalid_token"' if token else "")
            if self.metadata_url:
                challenge += f'{"," if token else ""} resource_metadata="{self.metadata_url}{visit.path.rstrip("/")}"'
            raise Refused(401, str(exc), code=-32001, headers={"www-authenticate": challenge}) from exc

    def client(self, visit: Visit, principal: Principal, server: Server) -> Client:
        """What is known of the client before it has said anything."""
        return Client(principal=principal, workspace=named_workspace(visit) or _home(principal, server))


def named_workspace(visit: Visit) -> str | None:
    """The workspace a request names in its header."""
    value: bytes | None = visit.headers.get(WORKSPACE_HEADER)
    if not value:
        return None
    try:
        return value.decode("utf-8").strip(BLANK)
    except UnicodeDecodeError as exc:
        raise Refused(400, "X-Memory-Workspace: expected UTF-8") from exc


def _home(principal: Principal, server: Server) -> str | None:
    """The workspace of a client that names none: the server's, or the only one it may use."""
    own = principal.workspaces
    return next(iter(own)) if own is not None and len(own) == 1 else server.workspace


def _refuse_repeats(visit: Visit) -> None:
    """A header that two readers may understand in two ways is understood in none."""
    given = [name for name, _ in visit.raw_headers if name in _ONCE]
    if len(given) != len(set(given)):
        raise Refused(400, f"{', '.join(name.decode().title() for name in _ONCE)} may be given once each")


@lru_cache(maxsize=256)
def _host_of(place: bytes) -> tuple[str | None, bool]:
    """The host without its port, and whether nobody can have bent it to this machine: an address is never looked up."""
    host = host_of(place.decode("latin-1"))
    try:
        return host, host is not None and (is_loopback(host) or bool(ip_address(host)))
    except ValueError:
        return host, False


def _is_local_page(origin: str) -> bool:
    return is_loopback(host_of(urlsplit(origin).netloc) or "") if is_origin(origin) else False
