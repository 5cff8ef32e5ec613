"""Addresses to listen on, and whether others can reach them."""

import re
from collections.abc import Iterable
from ipaddress import ip_address

from polymnia.errors import SettingsError

# A name or an address in the form URLs have it, and a port: nothing that one reader could take for another.
_PLACE = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+(?:%25[\w.-]+)?)\]|(?P<name>[\w.-]+))(?::[0-9]{1,5})?", re.ASCII)
# Browsers leave out the port that a scheme has by itself.
_OWN_PORT = re.compile(r"^(http://.*):80$|^(https://.*):443$")
_ORIGIN = re.compile(r"https?://(?P<place>[^/?#@\\\s]+)")


def parse_bind(bind: str) -> tuple[str, int]:
    """`127.0.0.1:8080` or `[::1]:8080` as host and port. Raises SettingsError."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"{bind!r} is no address to listen on; say HOST:PORT, such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(place: str) -> str | None:
    """The host of a `Host` header or of a setting, in one spelling; None for what is none."""
    found = _PLACE.fullmatch(place.lower())
    return (found["six"] or found["name"].rstrip(".") or None) if found else None


def is_origin(origin: str) -> bool:
    """Whether it is the origin of a web page, spelled as browsers do."""
    found = _ORIGIN.fullmatch(origin)
    return found is not None and host_of(found["place"]) is not None and origin == origin.lower()


def require_origins(origins: Iterable[str]) -> frozenset[str]:
    """The origins as browsers spell them. Raises SettingsError for what is none, such as a star."""
    spelled = {each: _OWN_PORT.sub(r"\1\2", each.lower().rstrip("/")) for each in origins}
    for each, origin in spelled.items():
        if not is_origin(origin):
            raise SettingsError(f"{each!r} is no origin of web pages; say it as https://app.example.com")
    return frozenset(spelled.values())


def require_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """The names as requests are compared with them. Raises SettingsError for what is none."""
    named = {each: host_of(each if each.count(":") < 2 or each.startswith("[") else f"[{each}]") for each in hosts}
    for each, host in named.items():
        if host is None:
            raise SettingsError(f"{each!r} is no name of a server; say it as memory.example.com")
    return frozenset(filter(None, named.values()))


def require_protection(bind: str, host: str, *, protected: bool, insecure: bool) -> None:
    """Raises SettingsError where anybody on the network could read and change the memory."""
    if not (protected or insecure or is_loopback(host)):
        raise SettingsError(
            f"{bind} can be reached from other machines and anyone there could read and change the memory; "
            "make a token with `polymnia token create`, bind to 127.0.0.1, or say --insecure if that is what you want"
        )
