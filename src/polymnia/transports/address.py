"""Addresses: to listen on, of clients behind proxies, and hosts and origins in one spelling."""

import errno
import os
import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from msgspec import Struct

from polymnia.errors import SettingsError

# A name or an address as URLs spell it, with an optional port. Other spellings are rejected,
# because two programs may read them differently.
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9a-f:.]+(?:%25[\w.-]+)?)\]|(?P<name>[\w.-]+))(?::[0-9]{1,5})?", re.ASCII
)
# Browsers leave out a scheme's default port.
_DEFAULT_PORT = re.compile(r"^(http://.*):80$|^(https://.*):443$")
# The path is sent to clients in a stream of events, so it must be one line of plain text.
_PUBLIC_URL = re.compile(
    r"https?://[^/?#@\\\s]+(?P<path>(?:/[\w.~%-]+)*)", re.ASCII | re.IGNORECASE
)
BACKLOG = 1024
_FORWARDED_FOR = b"x-forwarded-for"
_ORIGIN = re.compile(r"https?://(?P<host>[^/?#@\\\s]+)")


def parse_bind(bind: str) -> tuple[str, int]:
    """Return host and port of `127.0.0.1:8080` or `[::1]:8080`. Raise SettingsError.

    A name must resolve: otherwise a typo would pass for an address that other machines can reach.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(
            f"invalid bind address {bind!r}: expected HOST:PORT, such as 127.0.0.1:8080"
        )
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, ValueError):
        addresses = []
    if not addresses:
        raise SettingsError(
            f"{host!r} is not an address: it is neither an IP address nor a known host name; "
            "bind to HOST:PORT, such as 127.0.0.1:8080"
        )
    return host, int(port)


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """Return a listening socket. Raise SettingsError.

    With `reuse_port`, other processes may listen on the same port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        created = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, reuse_port=reuse_port
        )
        # asyncio turns Nagle's algorithm off only where the protocol is named. With it, a second
        # write waits until the first is acknowledged.
        protocol = socket.IPPROTO_TCP
        return socket.socket(family, socket.SOCK_STREAM, protocol, fileno=created.detach())
    except OSError as exc:
        advice = ""
        if exc.errno == errno.EADDRINUSE:
            advice = "; stop the program that uses the port, or choose another one with --port"
        reason = os.strerror(exc.errno) if exc.errno else str(exc)
        raise SettingsError(f"cannot listen on {host}:{port}: {reason}{advice}") from exc


def parse_public_path(url: str) -> str:
    """Return the path of a public URL, such as `/memory`, or "". Raise SettingsError."""
    if not url:
        return ""
    match = _PUBLIC_URL.fullmatch(url.rstrip("/"))
    if match is None:
        raise SettingsError(
            f"invalid public_url {url!r}: expected a URL such as https://example.org/memory"
        )
    return match["path"]


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(value: str) -> str | None:
    """Return the host of a `Host` header or a setting, in one spelling; None if it is malformed."""
    match = _HOST.fullmatch(value.lower())
    if match is None:
        return None
    return match["six"] or match["name"].rstrip(".") or None


def is_origin(origin: str) -> bool:
    """Return True for the origin of a web page, spelled as browsers do."""
    match = _ORIGIN.fullmatch(origin)
    if match is None or origin != origin.lower():
        return False
    return host_of(match["host"]) is not None


def require_origins(origins: Iterable[str]) -> frozenset[str]:
    """Return the origins as browsers spell them. Raise SettingsError for anything else."""
    spelled = set()
    for setting in origins:
        origin = _DEFAULT_PORT.sub(r"\1\2", setting.lower().rstrip("/"))
        if not is_origin(origin):
            raise SettingsError(
                f"invalid origin {setting!r}: expected a web page's origin, "
                "such as https://app.example.com"
            )
        spelled.add(origin)
    return frozenset(spelled)


def require_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """Return the host names as requests are compared with them. Raise SettingsError."""
    spelled = set()
    for setting in hosts:
        is_bare_address = setting.count(":") > 1 and not setting.startswith("[")
        host = host_of(f"[{setting}]" if is_bare_address else setting)
        if host is None:
            raise SettingsError(
                f"invalid host name {setting!r}: expected a name such as memory.example.com"
            )
        spelled.add(host)
    return frozenset(spelled)


def require_protection(
    bind: str, host: str, public_url: str = "", *, protected: bool, insecure: bool
) -> None:
    """Raise SettingsError if any host of the network could read and change the memory.

    A proxy on this machine makes a server on loopback public at `public_url`.
    """
    if protected or insecure:
        return
    if not is_loopback(host):
        raise SettingsError(
            f"{bind} can be reached from other machines, and anyone there could read and change "
            "the memory: create a token with `polymnia token create`, bind to 127.0.0.1, "
            "or pass --insecure to allow it"
        )
    public_host = urlsplit(public_url).hostname
    if public_host and not is_loopback(public_host):
        raise SettingsError(
            f"public_url: anyone who can reach {public_url} could read and change the memory: "
            "invite a person with `polymnia user invite`, create a token with "
            "`polymnia token create`, or pass --insecure to allow it"
        )


class TrustedProxies(Struct, frozen=True):
    """The networks of proxies that say truly which client a request comes from."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def client_of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address of the client whose request came from `peer`.

        Every proxy appends the address that it sees. The right-most one that is not a trusted
        proxy is the client's. Those before it may be invented.
        """
        client = _parse(peer) if self.networks else None
        if client is None or not self._is_trusted(client):
            return peer
        values = [value for name, value in headers if name == _FORWARDED_FOR]
        for text in reversed(b",".join(values).decode("latin-1").split(",")):
            address = _parse(text.strip())
            if address is None:
                break
            client = address
            if not self._is_trusted(address):
                break
        return str(client)

    def _is_trusted(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self.networks)


def parse_proxies(values: Iterable[str]) -> TrustedProxies:
    """Return the proxies at addresses or in networks such as 10.0.0.0/8. Raise SettingsError."""
    networks = []
    for value in values:
        try:
            networks.append(ip_network(value))
        except ValueError as exc:
            raise SettingsError(
                f"invalid trusted proxy {value!r}: use an address or a network such as 10.0.0.0/8"
            ) from exc
    return TrustedProxies(tuple(networks))


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both families shows an IPv4 peer as ::ffff:192.0.2.7.
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
