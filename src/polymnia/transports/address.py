"""Addresses to listen on, and whether others can reach them."""

from ipaddress import ip_address

from polymnia.errors import SettingsError


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


def require_protection(bind: str, host: str, *, protected: bool, insecure: bool) -> None:
    """Raises SettingsError where anybody on the network could read and change the memory."""
    if not (protected or insecure or is_loopback(host)):
        raise SettingsError(
            f"{bind} can be reached from other machines and anyone there could read and change the memory; "
            "make a token with `polymnia token create`, bind to 127.0.0.1, or say --insecure if that is what you want"
        )
