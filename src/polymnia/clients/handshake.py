"""Try a server as a client would: start it or connect to it, and ask for its name and tools."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from msgspec import DecodeError, json

from polymnia import __version__
from polymnia.errors import BadInput

_TIMEOUT_S = 60
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "polymnia install", "version": __version__},
}


def try_command(command: Sequence[str]) -> str:
    """Start a server and return its name and version. Raise BadInput if it does not answer."""
    messages = [
        _request(1, "initialize", _INITIALIZE),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _request(2, "tools/list", {}),
    ]
    lines = b"".join(json.encode(message) + b"\n" for message in messages)
    try:
        server = subprocess.run(
            command,
            input=lines,
            capture_output=True,
            cwd=Path.home(),
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise BadInput(f"{command[0]} cannot be started: {exc}") from exc
    results: dict[Any, Any] = {}
    for line in server.stdout.splitlines():
        reply = _decode(line)
        results[reply.get("id")] = reply.get("result")
    greeting, listing = results.get(1), results.get(2)
    if not greeting or not listing:
        errors = server.stderr.decode(errors="replace").strip().splitlines()
        reason = errors[-1] if errors else f"status {server.returncode}"
        raise BadInput(f"{' '.join(command)} did not answer: {reason}")
    return _describe(greeting, len(listing["tools"]))


def try_url(url: str, token: str) -> str:
    """Return the name and version of the server at a URL. Raise BadInput if it does not answer."""
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url} is not a URL: it starts with https:// and ends in /mcp")
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = Request(url, json.encode(_request(1, "initialize", _INITIALIZE)), headers)
        with urlopen(request, timeout=_TIMEOUT_S) as response:
            body: bytes = response.read()
    except HTTPError as exc:
        reason = f"status {exc.code}"
        if exc.code == 401 and not token and _offers_login(exc.headers["WWW-Authenticate"] or ""):
            return "a server at which the program lets you log in"
        if exc.code in (401, 403):
            reason = "it needs a token, or this one is not valid"
        raise BadInput(f"{url} rejected the request: {reason}") from exc
    except (URLError, OSError, ValueError) as exc:
        raise BadInput(f"{url} cannot be reached: {getattr(exc, 'reason', exc)}") from exc
    events = [line[len(b"data:") :] for line in body.splitlines() if line.startswith(b"data:")]
    result = _decode(events[-1] if events else body).get("result")
    if not result:
        raise BadInput(f"{url} is not an MCP server: the URL of Polymnia ends in /mcp")
    return _describe(result, None)


def _offers_login(challenge: str) -> bool:
    """Return True if the metadata that a rejected request names has a server for logins."""
    url = re.search(r'resource_metadata="(https?://[^"]+)"', challenge)
    if url is None:
        return False
    try:
        with urlopen(url[1], timeout=_TIMEOUT_S) as response:
            return bool(_decode(response.read()).get("authorization_servers"))
    except (OSError, ValueError):
        return False


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _decode(line: bytes) -> dict[str, Any]:
    try:
        return json.decode(line, type=dict[str, Any])
    except DecodeError:
        return {}


def _describe(result: dict[str, Any], tools: int | None) -> str:
    server = result.get("serverInfo") or {}
    name = f"{server.get('name', 'a server')} {server.get('version', '')}".strip()
    return name if tools is None else f"{name}, {tools} tools"
