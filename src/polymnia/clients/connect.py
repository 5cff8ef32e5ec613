"""Connect a client on this machine: the command it starts, and the entry in its file.

`polymnia install` and the first page of the web interface use the same steps.
"""

import shutil
import sys
from pathlib import Path
from typing import Literal

from msgspec import Struct

from polymnia.clients.configuration import change_servers, read_servers
from polymnia.clients.handshake import try_command
from polymnia.clients.table import CLIENTS, Client, is_polymnia, is_reference_server
from polymnia.errors import BadInput
from polymnia.settings import ClientRoots
from polymnia.stores import store_kind

DEFAULT_NAME = "memory"
# Directories in which uv keeps environments that it may delete at any time.
_PASSING_ENVIRONMENTS = ("archive-v0", "environments-v2", "builds-v0")

ClientState = Literal["installed", "reference server", "found", "not found", "unreadable"]


class FoundClient(Struct, frozen=True):
    """A client that seems to be on this machine, its file, and why that cannot be read, if so."""

    client: Client
    path: Path
    state: ClientState
    problem: str = ""


def own_command() -> list[str]:
    """Return the command that starts this program from anywhere, absolute where possible."""
    places = [
        Path(sys.argv[0]),
        *(Path(sys.executable).with_name(f"polymnia{end}") for end in ("", ".exe")),
    ]
    scripts = [place.absolute() for place in places if place.stem == "polymnia" and place.is_file()]
    uvx = shutil.which("uvx")
    if uvx and any(part in _PASSING_ENVIRONMENTS for part in Path(sys.executable).parts):
        return [uvx, "polymnia"]
    return [str(scripts[0])] if scripts else [sys.executable, "-m", "polymnia"]


def store_options(store: str) -> list[str]:
    """Return the options of `serve` that name a store, with a path that holds everywhere."""
    kind, path = store_kind(store)
    is_path = kind in ("sqlite", "jsonl", "binlog", "directory") and path != ":memory:"
    return ["--store", f"{kind}:{Path(path).absolute()}" if is_path else store]


def state_of(client: Client, path: Path, roots: ClientRoots) -> ClientState:
    """Return whether a client is here and has the server."""
    try:
        servers = read_servers(client, path)
    except BadInput:
        return "unreadable"
    if any(is_polymnia(entry) for entry in servers.values()):
        return "installed"
    if any(is_reference_server(entry) for entry in servers.values()):
        return "reference server"
    return "found" if client.is_installed(roots) else "not found"


def find_clients(roots: ClientRoots) -> list[FoundClient]:
    """Return the clients that seem to be on this machine, with their files for all projects."""
    clients = []
    for client in CLIENTS.values():
        path = client.path("user", roots, Path.cwd())
        if path is None or not client.is_installed(roots):
            continue
        state, problem = state_of(client, path, roots), ""
        if state == "unreadable":
            try:
                read_servers(client, path)
            except BadInput as exc:
                problem = str(exc)
        clients.append(FoundClient(client, path, state, problem))
    return clients


def connect(client: Client, path: Path, store: str) -> Path | None:
    """Add a server for this store to the file of a client, after a try, and return the former file.

    Raise BadInput if the server does not work, the file cannot be changed, or the name is taken.
    """
    servers = read_servers(client, path)
    known = servers.get(DEFAULT_NAME)
    if known is not None and not is_polymnia(known):
        raise BadInput(
            f"{path} has another server {DEFAULT_NAME!r}: `polymnia install {client.name}` "
            "replaces it, or adds this one under another --name"
        )
    command = [*own_command(), "serve", *store_options(store)]
    try_command(command)
    return change_servers(client, path, {DEFAULT_NAME: client.local_entry(command)})


def disconnect(client: Client, path: Path) -> Path | None:
    """Remove our server from the file of a client, and return the former file. Raise BadInput."""
    entry = read_servers(client, path).get(DEFAULT_NAME)
    if entry is None or not is_polymnia(entry):
        raise BadInput(f"{path} has no server {DEFAULT_NAME!r} of Polymnia")
    return change_servers(client, path, {DEFAULT_NAME: None})
