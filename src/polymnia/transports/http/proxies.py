"""The address of a client behind proxies whose word is taken for it."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct

from polymnia.errors import SettingsError

Address = IPv4Address | IPv6Address
FORWARDED_FOR = b"x-forwarded-for"


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
        values = [value for name, value in headers if name == FORWARDED_FOR]
        for text in reversed(b",".join(values).decode("latin-1").split(",")):
            address = _parse(text.strip())
            if address is None:
                break
            client = address
            if not self._is_trusted(address):
                break
        return str(client)

    def _is_trusted(self, address: Address) -> bool:
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


def _parse(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both families shows an IPv4 peer as ::ffff:192.0.2.7.
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
