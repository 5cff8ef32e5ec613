"""A small internet: documents of well-known hosts, served with TLS on this machine.

As a program it is `polymnia` for which all names of hosts lead there.
"""

import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

_PORT = "POLYMNIA_TEST_INTERNET"
HOSTS = ("claude.ai", "chatgpt.com", "vscode.dev", "zed.dev", "www.mcpjam.com", "evil.example.com")


class Internet:
    """What is served: a document or a status by URL, and the URLs that were asked for."""

    def __init__(self, certificate: Path) -> None:
        self.pages: dict[str, Any] = {}
        self.asked: list[str] = []
        internet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = f"https://{self.headers['host']}{self.path}"
                internet.asked.append(url)
                page = internet.pages.get(url, 404)
                status, headers, body = 200, {}, b""
                if isinstance(page, int):
                    status = page
                elif isinstance(page, str):
                    status, headers = 302, {"Location": page}
                else:
                    body = page if isinstance(page, bytes) else json.dumps(page).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_request(self, *args: Any) -> None:
                """Write nothing to standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        # A program that was started with these settings trusts its certificate.
        self.settings = {_PORT: str(self.port), "SSL_CERT_FILE": str(certificate)}

    def describe(self, url: str, **metadata: Any) -> str:
        """Publish a client's document and return its URL."""
        self.pages[url] = {"client_id": url, **metadata}
        return url

    @contextmanager
    def running(self) -> Iterator["Internet"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


def make_certificate(directory: Path) -> Path:
    """Write a certificate for the hosts, with its key, to a file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a small internet")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS]), False)
        .sign(key, hashes.SHA256())
    )
    file = directory / "certificate.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return file


@contextmanager
def names_lead_here(port: int) -> Iterator[None]:
    """Resolve every name to this machine, whose addresses count as public."""
    resolve, connect = socket.getaddrinfo, socket.create_connection

    def resolve_here(host: Any, *args: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host in HOSTS else host, *args, **options)

    def connect_here(address: tuple[str, int], *args: Any, **options: Any) -> socket.socket:
        return connect((address[0], port if address[1] == 443 else address[1]), *args, **options)

    with (
        patch("socket.getaddrinfo", resolve_here),
        patch("socket.create_connection", connect_here),
        patch("polymnia.auth.documents.is_public", lambda address: address == "127.0.0.1"),
    ):
        yield


if __name__ == "__main__":
    from polymnia.cli import start

    with names_lead_here(int(os.environ[_PORT])):
        sys.exit(start())
