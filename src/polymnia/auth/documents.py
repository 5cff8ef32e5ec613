"""JSON documents of other servers: fetched from public addresses only, and kept for a while.

Clients of OAuth name the address of a document about themselves, so anyone can make this server
fetch any URL. A fetch therefore uses HTTPS, connects to the very address that was checked, follows
no redirect, and is bounded in bytes, in time and in number.
"""

import logging
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection
from ipaddress import IPv6Address, IPv6Network, ip_address
from threading import BoundedSemaphore, Lock, Timer
from typing import Any
from urllib.parse import urlsplit

from msgspec import DecodeError, json

from polymnia.errors import OAuthError

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0
# How long a document is used without asking for it again.
FRESH_S = 3600
_NAT64 = IPv6Network("64:ff9b::/96")


class Documents:
    """Documents by URL. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[dict[str, Any], float]] = OrderedDict()
        # Slow servers must not take all worker threads.
        self._slots = BoundedSemaphore(4)

    def get(self, url: str, *, limit: int, max_age: float = FRESH_S) -> dict[str, Any]:
        """Return a document of at most `limit` bytes. Raise OAuthError.

        It was fetched at most `max_age` seconds ago, or a day ago if its server fails meanwhile.
        """
        with self._lock:
            document, fetched_at = self._kept.get(url, (None, 0.0))
        age = self._clock() - fetched_at
        if document is not None and age <= max_age:
            return document
        try:
            if not self._slots.acquire(blocking=False):
                raise _unreachable(url, "too many documents are being fetched")
            try:
                fetched = fetch(url, limit)
            finally:
                self._slots.release()
        except OAuthError as exc:
            logger.info("%s", exc)
            if document is not None and exc.status == 503 and age <= 86_400:
                return document
            raise
        with self._lock:
            self._kept[url] = (fetched, self._clock())
            self._kept.move_to_end(url)
            while len(self._kept) > 1_000:
                self._kept.popitem(last=False)
        return fetched


def is_document_url(text: str) -> bool:
    """Return True for an address that can be fetched: https, with a host and a path."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return False
    return (
        text.isascii()
        and text.isprintable()
        and not set(text) & set(" \\#")
        and url.scheme == "https"
        and bool(url.hostname)
        and url.username is None
        and url.password is None
        and port != 0
        and url.path not in ("", "/")
        and not {".", ".."} & set(url.path.split("/"))
    )


def fetch(url: str, limit: int) -> dict[str, Any]:
    """Return the JSON object at a URL. Raise OAuthError, with status 503 if it may work later."""
    if not is_document_url(url):
        raise OAuthError("invalid_client", f"{url[:200]}: not an https URL of a document")
    address = urlsplit(url)
    host = address.hostname or ""
    path = f"{address.path}?{address.query}" if address.query else address.path
    connection = HTTPSConnection(host, address.port)

    def give_up() -> None:
        """End the connection: its reader sees the end of the data."""
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    # The timeout of a socket begins again with every byte.
    timer = Timer(TIMEOUT_S, give_up)
    timer.start()
    try:
        connection.sock = connect(host, address.port or 443)
        connection.sock.do_handshake()
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        body = response.read(limit + 1)
    except (OSError, HTTPException) as exc:
        raise _unreachable(url, str(exc)) from exc
    finally:
        timer.cancel()
        connection.close()
    if response.status >= 500 or response.status in (408, 425, 429):
        raise _unreachable(url, f"status {response.status}")
    if response.status != 200:
        raise OAuthError("invalid_client", f"{url}: no document (status {response.status})")
    if len(body) > limit:
        raise OAuthError("invalid_client", f"{url}: more than {limit} bytes")
    try:
        return json.decode(body, type=dict[str, Any])
    except (DecodeError, RecursionError) as exc:
        raise OAuthError("invalid_client", f"{url}: not a JSON object") from exc


def connect(host: str, port: int) -> ssl.SSLSocket:
    """Connect to a host that has public addresses only. Raise OSError, OAuthError.

    The address that was checked is the one that is used: asking for it twice could give two.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in entries]
    if not all(map(is_public, addresses)):
        raise OAuthError("invalid_client", f"{host}: not a public address")
    plain = socket.create_connection((addresses[0], port), timeout=TIMEOUT_S)
    context = ssl.create_default_context()
    return context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)


def is_public(text: str) -> bool:
    """Return True for an address of the public internet."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        # 6to4, Teredo and NAT64 addresses stand for an IPv4 address, which may be private.
        is_tunnel = address.sixtofour or address.teredo or address in _NAT64
        if is_tunnel or address.ipv4_mapped:
            return False
    return address.is_global and not address.is_multicast


def _unreachable(url: str, why: str) -> OAuthError:
    message = f"{url} cannot be fetched at the moment: {why}; try again later"
    return OAuthError("temporarily_unavailable", message, status=503)
