"""A server where clients log in, scripted clients, and people who decide without a browser."""

import hashlib
import json
import socket
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from polymnia.auth.authenticator import tokens_of
from polymnia.auth.clients import Clients
from polymnia.auth.grants import Grants
from polymnia.model import Capability
from tests.transports.running import Answer, Running, Web

FORM = "application/x-www-form-urlencoded"
VERIFIER = "v" * 64
METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"


class LoginServer(Running):
    """`polymnia serve` with a public URL, which is where it listens, and one person, alice."""

    def __init__(
        self,
        store: Path | str,
        *flags: str,
        program: str = "polymnia",
        path: str = "",
        settings: Mapping[str, str] | None = None,
        can: Capability = "write",
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.issuer = f"http://127.0.0.1:{port}{path}"
        self.store = str(store)
        tokens = tokens_of(self.store)
        assert tokens is not None
        self.tokens = tokens
        if not tokens.all():
            self.token = tokens.create("alice", can=can)
        self.alice = next(token.principal for token in tokens.all() if token.name == "alice")
        public = {"POLYMNIA_PUBLIC_URL": self.issuer, **(settings or {})}
        bind = ("--bind", f"127.0.0.1:{port}", *flags)
        super().__init__(store, *bind, program=program, settings=public)

    def allow(self, request: str, can: Capability = "write", *, deny: bool = False) -> str:
        """Decide as alice would on the page, and return where her browser goes."""
        grants = Grants(self.tokens, self.issuer, Clients(self.tokens.signing_key))
        return grants.deny(request) if deny else grants.allow(request, self.alice, can=can)


class ScriptedClient:
    """A client that does what the OAuth of MCP asks of it, step by step."""

    def __init__(self, server: LoginServer, client_id: str = "", **assertion: Any) -> None:
        """`assertion` is added to requests for tokens."""
        self.server = server
        self.client_id = client_id
        self.redirect_uri = "http://127.0.0.1:7777/callback"
        self.assertion = assertion
        self._prefix = urlsplit(server.issuer).path

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        with Web(self.server.port) as web:
            return web.send(method, path, body, **headers)

    def register(self, *redirect_uris: str, **metadata: Any) -> Answer:
        """Register, with the first redirect as the one to use."""
        uris = list(redirect_uris) or [self.redirect_uri]
        body = json.dumps({"redirect_uris": uris, **metadata}).encode()
        answer = self.send("POST", f"{self._prefix}/register", body)
        if answer.status == 201:
            self.client_id = answer.json["client_id"]
            self.redirect_uri = uris[0]
        return answer

    def authorize(self, **changes: str | None) -> Answer:
        """Open the page at which a person decides."""
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": "some state",
            "scope": "polymnia:read polymnia:write offline_access",
            "resource": f"{self.server.issuer}/mcp",
            "code_challenge": challenge(VERIFIER),
            "code_challenge_method": "S256",
            **changes,
        }
        given = {name: text for name, text in query.items() if text is not None}
        return self.send("GET", f"{self._prefix}/authorize?{urlencode(given)}")

    def get_code(self, can: Capability = "write", **changes: str | None) -> dict[str, str]:
        """Return the parameters with which the browser comes back."""
        answer = self.authorize(**changes)
        assert answer.status == 302, answer.body
        back = self.server.allow(query_of(answer.headers["location"])["request"], can)
        assert back.startswith(self.redirect_uri)
        return query_of(back)

    def exchange(self, **form: Any) -> Answer:
        """Send a request for tokens."""
        given = {"client_id": self.client_id, **self.assertion, **form}
        body = urlencode({name: text for name, text in given.items() if text is not None})
        headers = {"Content-Type": FORM}
        return self.send("POST", f"{self._prefix}/token", body.encode(), **headers)

    def redeem(self, code: str, **changes: Any) -> Answer:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": VERIFIER,
            "resource": f"{self.server.issuer}/mcp",
            **changes,
        }
        return self.exchange(**form)

    def refresh(self, refresh_token: str, **changes: Any) -> Answer:
        return self.exchange(grant_type="refresh_token", refresh_token=refresh_token, **changes)

    def log_in(self, can: Capability = "write", **changes: str | None) -> dict[str, Any]:
        """Go through the whole flow and return the tokens."""
        answer = self.redeem(self.get_code(can, **changes)["code"])
        assert answer.status == 200, answer.body
        tokens: dict[str, Any] = answer.json
        return tokens


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def challenge(verifier: str) -> str:
    """Return the code challenge of a verifier."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
