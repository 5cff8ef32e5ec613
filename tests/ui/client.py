"""A client of the web interface without a browser.

It keeps cookies, follows redirects and sends forms.
"""

import http.client
import re
from html import unescape
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from msgspec import Struct

from polymnia.auth.authenticator import tokens_of
from polymnia.model import Capability
from tests.processes import TIMEOUT_S
from tests.transports.running import Running


class Shown(Struct):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def form_token(self) -> str:
        found = re.search(r'"X-Form-Token": "(\w+)"', self.text)
        assert found, self.text
        return found[1]

    @property
    def words(self) -> str:
        """The text without tags."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())


class Visitor:
    """A user of the web interface of a server on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self.cookies: dict[str, str] = {}

    def get(self, path: str, *, follow: bool = True, **headers: str) -> Shown:
        shown = self._send("GET", path, None, headers)
        while follow and shown.status == 303:
            shown = self._send("GET", shown.headers["location"], None, {})
        return shown

    def head(self, path: str) -> Shown:
        """Ask for the head of a page."""
        return self._send("HEAD", path, None, {})

    def post(self, path: str, *, token: str | None = None, **fields: str) -> Shown:
        """Send a form as a page of the server does, and follow its redirect.

        `token` replaces that of the form.
        """
        shown = self.post_once(path, token=token, **fields)
        return self.get(shown.headers["location"]) if shown.status == 303 else shown

    def post_once(self, path: str, *, token: str | None = None, **fields: str) -> Shown:
        """Send a form and return the response itself."""
        token = self.get("/ui/more").form_token if token is None else token
        return self.post_raw(path, {"form_token": token, **fields}, Origin=self.origin)

    def post_raw(
        self, path: str, fields: dict[str, str] | list[tuple[str, str]], **headers: str
    ) -> Shown:
        """Send a form with these headers only."""
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return self._send("POST", path, urlencode(fields).encode(), headers)

    def log_in(self, token: str) -> Shown:
        return self.post_raw("/ui/login", {"token": token}, Origin=self.origin)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Shown:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(method, path, body, given)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        for name, morsel in SimpleCookie(found.get("set-cookie", "")).items():
            self.cookies[name] = morsel.value
        text = response.read().decode("utf-8", "replace")
        connection.close()
        return Shown(response.status, found, text)


def make_token(
    store: str, name: str, can: Capability, workspaces: tuple[str, ...] | None = None
) -> str:
    """Create a token beside a SQLite file."""
    tokens = tokens_of(store)
    assert tokens is not None
    return tokens.create(name, can=can, workspaces=workspaces)


def serve(store: str, *flags: str) -> Running:
    """Start the server of a store with the default dialect."""
    return Running(store, *flags, dialect="native")
