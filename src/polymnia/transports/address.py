"""Addresses to listen on, hosts and origins in one spelling, and whether other machines can reach them."""

import re
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from polymnia.errors import SettingsError

# A name or an address as URLs spell it, with an optional port. Other spellings are rejected, because two programs may
# read them differently.
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9a-f:.]+(?:%25[\w.-]+)?)\]|(?P<name>[\w.-]+))(?::[0-9]{1,5})?", re.ASCII
)
# Browsers leave out a scheme's default port.
_DEFAULT_PORT = re.compile(r"^(http://.*):80$|^(https://.*):443$")
# The path is sent to clients in a stream of events, so it must be one line of plain text.
_PUBLIC_URL = re.compile(
    r"https?://[^/?#@\\\s]+(?P<path>(?:/[\w.~%-]+)*)", re.ASCII | re.IGNORECASE
)
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
    if not _is_address(host):
        raise SettingsError(
            f"{host!r} is not an address: it is neither an IP address nor a known host name; "
            "bind to HOST:PORT, such as 127.0.0.1:8080"
        )
    return host, int(port)


def parse_public_path(url: str) -> str:
    """Return the path of a public URL, such as `/memory`, or "" if it has none. Raise SettingsError."""
    found = _PUBLIC_URL.fullmatch(url.rstrip("/"))
    if url and found is None:
        raise SettingsError(
            f"invalid public_url {url!r}: expected a URL such as https://example.org/memory"
        )
    return found["path"] if found else ""


def _is_address(host: str) -> bool:
    """Return True for an IP address, and for a name that resolves to one."""
    try:
        return bool(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except (socket.gaierror, ValueError):
        return False


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
    found = _HOST.fullmatch(value.lower())
    return (found["six"] or found["name"].rstrip(".") or None) if found else None


def is_origin(origin: str) -> bool:
    """Return True for the origin of a web page, spelled as browsers do."""
    found = _ORIGIN.fullmatch(origin)
    return found is not None and host_of(found["host"]) is not None and origin == origin.lower()


def require_origins(origins: Iterable[str]) -> frozenset[str]:
    """Return the origins as browsers spell them. Raise SettingsError for anything else, such as a star."""
    spelled = {each: _DEFAULT_PORT.sub(r"\1\2", each.lower().rstrip("/")) for each in origins}
    for each, origin in spelled.items():
        if not is_origin(origin):
            raise SettingsError(
                f"invalid origin {each!r}: expected a web page's origin, such as https://app.example.com"
            )
    return frozenset(spelled.values())


def require_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """Return the host names in the spelling that requests are compared with. Raise SettingsError."""
    named = {
        each: host_of(each if each.count(":") < 2 or each.startswith("[") else f"[{each}]")
        for each in hosts
    }
    for each, host in named.items():
        if host is None:
            raise SettingsError(
                f"invalid host name {each!r}: expected a name such as memory.example.com"
            )
    return frozenset(filter(None, named.values()))


def require_protection(bind: str, host: str, *, protected: bool, insecure: bool) -> None:
    """Raise SettingsError if anybody on the network could read and change the memory."""
    if not (protected or insecure or is_loopback(host)):
        raise SettingsError(
            f"{bind} can be reached from other machines, and anyone there could read and change the memory: "
            "create a token with `polymnia token create`, bind to 127.0.0.1, or pass --insecure to allow it"
        )
