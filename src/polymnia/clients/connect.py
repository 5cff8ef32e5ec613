"""Connect a client on this machine: the command it starts, and the entry in its file.

The server is tried first, as a client would: started or connected to, and asked for its tools.
`polymnia install` and the first page of the web interface use the same steps.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from msgspec import DecodeError, Struct, json

from polymnia import __version__
from polymnia.clients.configuration import change_servers, read_servers
from polymnia.clients.table import CLIENTS, ClientProgram, is_polymnia, is_reference_server
from polymnia.errors import BadInput
from polymnia.settings import ClientRoots
from polymnia.stores import store_kind

DEFAULT_NAME = "memory"

ClientState = Literal["installed", "reference server", "found", "not found", "unreadable"]


class FoundClient(Struct, frozen=True):
    """A client that seems to be on this machine, its file, and why that cannot be read, if so."""

    client: ClientProgram
    path: Path
    state: ClientState
    problem: str = ""


def own_command() -> list[str]:
    """Return the command that starts this program from anywhere, absolute where possible."""
    uvx = shutil.which("uvx")
    # uv may delete these environments at any time.
    passing = {"archive-v0", "environments-v2", "builds-v0"}
    if uvx and passing.intersection(Path(sys.executable).parts):
        return [uvx, "polymnia"]
    python = Path(sys.executable)
    for script in (
        Path(sys.argv[0]),
        python.with_name("polymnia"),
        python.with_name("polymnia.exe"),
    ):
        if script.stem == "polymnia" and script.is_file():
            return [str(script.absolute())]
    return [sys.executable, "-m", "polymnia"]


def store_options(store: str) -> list[str]:
    """Return the options of `serve` that name a store, with a path that holds everywhere."""
    kind, path = store_kind(store)
    is_path = kind in ("sqlite", "jsonl", "binlog", "directory") and path != ":memory:"
    return ["--store", f"{kind}:{Path(path).absolute()}" if is_path else store]


def find_clients(roots: ClientRoots) -> list[FoundClient]:
    """Return the clients that seem to be on this machine, with their files for all projects."""
    found = []
    for client in CLIENTS.values():
        path = client.path("user", roots, Path.cwd())
        if path is not None and client.is_installed(roots):
            found.append(inspect_client(client, path, roots))
    return found


def inspect_client(client: ClientProgram, path: Path, roots: ClientRoots) -> FoundClient:
    """Return whether a client is here and has the server in this file."""
    try:
        entries = read_servers(client, path).values()
    except BadInput as exc:
        return FoundClient(client, path, "unreadable", str(exc))
    state: ClientState = "found" if client.is_installed(roots) else "not found"
    if any(is_polymnia(entry) for entry in entries):
        state = "installed"
    elif any(is_reference_server(entry) for entry in entries):
        state = "reference server"
    return FoundClient(client, path, state)


class WrittenEntry(Struct, frozen=True):
    """An entry that was written: what the server says, whether it is new, and the former file."""

    server: str
    outcome: Literal["added", "updated", "unchanged"]
    kept: Path | None


def write_entry(
    client: ClientProgram,
    path: Path,
    name: str,
    entry: dict[str, Any],
    test: Callable[[], str],
    replaced: Iterable[str] = (),
) -> WrittenEntry:
    """Test the server, then write its entry in place of others. Raise BadInput."""
    known = read_servers(client, path).get(name)
    server = test()
    kept = change_servers(client, path, {**dict.fromkeys(replaced), name: entry})
    if known is None:
        return WrittenEntry(server, "added", kept)
    return WrittenEntry(server, "unchanged" if known == entry else "updated", kept)


def connect(client: ClientProgram, path: Path, store: str) -> WrittenEntry:
    """Add a server for this store to the file of a client.

    Raise BadInput if the server does not work, the file cannot be changed, or the name is taken.
    """
    known = read_servers(client, path).get(DEFAULT_NAME)
    if known is not None and not is_polymnia(known):
        raise BadInput(
            f"{path} has another server {DEFAULT_NAME!r}: `polymnia install {client.name}` "
            "replaces it, or adds this one under another --name"
        )
    command = [*own_command(), "serve", *store_options(store)]
    entry = client.local_entry(command)
    return write_entry(client, path, DEFAULT_NAME, entry, lambda: try_command(command))


def disconnect(client: ClientProgram, path: Path) -> None:
    """Remove our server from the file of a client. Raise BadInput."""
    entry = read_servers(client, path).get(DEFAULT_NAME)
    if entry is None or not is_polymnia(entry):
        raise BadInput(f"{path} has no server {DEFAULT_NAME!r} of Polymnia")
    change_servers(client, path, {DEFAULT_NAME: None})


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
