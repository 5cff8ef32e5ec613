"""Connect a client on this machine: the command it starts, and the entry in its file.

`polymnia install` and the first page of the web interface use the same steps.
"""

import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from polymnia.clients.configuration import change_servers, read_servers
from polymnia.clients.handshake import try_command
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
