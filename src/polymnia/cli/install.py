"""`polymnia install`: add the server to an MCP client, or remove it."""

import argparse
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from polymnia.cli.common import (
    Progress,
    add_json_argument,
    add_store_arguments,
    print_json,
    print_table,
)
from polymnia.clients.configuration import change_servers, edit, read_servers, replace_text
from polymnia.clients.connect import DEFAULT_NAME, own_command, state_of, store_options
from polymnia.clients.handshake import try_command, try_url
from polymnia.clients.hooks import (
    HOOK_FILES,
    PLUGIN_FILES,
    HookFile,
    add_hooks,
    plugin_text,
    remove_hooks,
    remove_plugin,
)
from polymnia.clients.past import PastSource, find_past_sources
from polymnia.clients.rules import RULES, RULES_FILES, add_rules, remove_rules
from polymnia.clients.table import CLIENTS, SCOPES, Client, Scope, is_polymnia, is_reference_server
from polymnia.clients.takeover import ACTOR, TakeoverReceipt, take_over, undo_takeover
from polymnia.dialects.registry import DIALECTS
from polymnia.disk.replace import make_parent, open_private
from polymnia.engine.workspaces.projects import PERSONAL, create_missing
from polymnia.engine.workspaces.workspaces import open_workspaces
from polymnia.errors import BadInput
from polymnia.search.terms import count_noun
from polymnia.settings import Settings, client_roots, takeover_file
from polymnia.stores import store_kind

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

# The plugin's name and its marketplace.
_PLUGIN = b"polymnia@polymnia"


def add_install(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "install",
        help="add the server to an MCP client, or remove it",
        description="Add the server to the configuration of an MCP client. "
        "The former file is kept beside it.",
    )
    parser.add_argument(
        "client", metavar="CLIENT", nargs="?", choices=tuple(CLIENTS), help=", ".join(CLIENTS)
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the clients, their configuration files and whether they have the server",
    )
    _add_change_arguments(parser)
    _add_import_arguments(parser)
    remote = parser.add_argument_group("a server for a team")
    remote.add_argument(
        "--http", metavar="URL", help="connect to this URL instead of starting a server"
    )
    remote.add_argument("--token", metavar="TOKEN", default="", help="the token to send")
    add_json_argument(parser)
    local = parser.add_argument_group("options of the server, written into the entry")
    dialects = sorted(DIALECTS)
    local.add_argument(
        "--dialect",
        metavar="NAME",
        choices=dialects,
        help=f"the tool catalogue to serve: {', '.join(dialects)}",
    )
    local.add_argument("--workspace", metavar="NAME", help="the workspace to use")
    add_store_arguments(parser)
    return parser


def _add_change_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default="user",
        help="for all your projects, or for the project in this directory (default: user)",
    )
    parser.add_argument("--print", action="store_true", help="print the entry and change nothing")
    parser.add_argument("--remove", action="store_true", help="remove the entry")
    parser.add_argument(
        "--hooks",
        action="store_true",
        help=f"add hooks instead, or remove them: {', '.join([*HOOK_FILES, *PLUGIN_FILES])}",
    )
    parser.add_argument(
        "--rules",
        action="store_true",
        help="write rules for the agent instead (when to recall and to remember), or remove "
        f"them: {', '.join(RULES_FILES)}",
    )
    parser.add_argument(
        "--name",
        default=DEFAULT_NAME,
        help="the server's name in the client (default: %(default)s)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="replace existing entries without asking"
    )


def _add_import_arguments(parser: argparse.ArgumentParser) -> None:
    past = parser.add_argument_group("what other programs have left on this machine")
    past.add_argument(
        "--import",
        dest="take_over",
        action="store_true",
        help="import past sessions, instructions and memories of other servers, each once",
    )
    past.add_argument("--dry-run", action="store_true", help="only say what would be imported")
    past.add_argument(
        "--background", action="store_true", help="import in a process of its own, and return"
    )
    past.add_argument("--undo", action="store_true", help="take the whole import back")


def run_install(settings: Settings, options: argparse.Namespace) -> int:
    """Change the client's configuration. Raise BadInput."""
    if options.list:
        _list(as_json=options.json)
        return 0
    if options.client is None and options.take_over:
        return _take_over(settings, options)
    if options.client is None:
        raise BadInput(f"name a client: {', '.join(CLIENTS)}; --list shows which are here")
    client = CLIENTS[options.client]
    if options.hooks:
        return _change_hooks(client, options)
    if options.rules:
        return _change_rules(client, options)
    path = client.path(options.scope, client_roots(), Path.cwd())
    if path is None:
        raise BadInput(f"{client.title} has no configuration for one project: use --scope user")
    if options.remove:
        return _remove(client, path, options.name, confirmed=options.yes)
    command = [] if options.http else [*own_command(), "serve", *_server_options(settings, options)]
    entry = (
        client.remote_entry(options.http, options.token)
        if options.http
        else client.local_entry(command)
    )
    if options.print:
        print(edit(client, "", {options.name: entry}), end="")
        print(f"# in {path}", file=sys.stderr)
        return 0
    return _install(settings, client, path, options, entry, command)


def _install(
    settings: Settings,
    client: Client,
    path: Path,
    options: argparse.Namespace,
    entry: dict[str, Any],
    command: list[str],
) -> int:
    servers = read_servers(client, path)
    replaced = _confirm_replacements(servers, options.name, confirmed=options.yes)
    works = try_url(options.http, options.token) if options.http else try_command(command)
    kept = change_servers(client, path, {**dict.fromkeys(replaced), options.name: entry})
    verb = "updated" if options.name in servers else "added"
    print(
        f"{verb} {options.name} in {path}"
        if servers.get(options.name) != entry
        else f"{path} has it already"
    )
    if kept is not None:
        print(f"the former file is {kept}")
    print(f"the server works: {works}")
    for name in replaced:
        _import_memory(_target(settings, options.scope), servers[name], is_local=not options.http)
    print(client.then)
    if options.take_over:
        _take_over(settings, options)
    elif not options.http:
        _offer_import(settings, options)
    if client.has_plugin and _has_plugin():
        print(
            f"{client.title} also has the plugin, so its agents see the tools twice: "
            f"`polymnia install {client.name} --remove` removes this entry",
            file=sys.stderr,
        )
    return 0


def _change_hooks(client: Client, options: argparse.Namespace) -> int:
    """Add our hooks to a program, or remove them. Raise BadInput."""
    if client.name in PLUGIN_FILES:
        return _change_plugin(client, PLUGIN_FILES[client.name], options)
    hooks = HOOK_FILES.get(client.name)
    if hooks is None:
        raise BadInput(f"there are no hooks to add to {client.title}: {_instead_of_hooks(client)}")
    path = hooks.path(client_roots(), _project(options))
    if options.remove:
        kept = remove_hooks(hooks, path)
        if kept is None:
            raise BadInput(f"{path} has no hooks of Polymnia")
        print(f"removed the hooks from {path}\nthe former file is {kept}")
        return 0
    command = own_command()
    if options.print:
        entries = {event: [hooks.entry(command, event)] for event in hooks.events}
        print_json({**hooks.fixed, "hooks": entries})
        return 0
    kept = add_hooks(hooks, path, command)
    print(f"{path} has hooks for {', '.join(hooks.events)}")
    _print_former_file(kept)
    return 0


def _instead_of_hooks(client: Client) -> str:
    if client.has_plugin:
        return "its hooks come with the plugin"
    if client.name in RULES_FILES:
        return "it has none; --rules tells its agent when to use the memory"
    return "it has none"


def _change_plugin(client: Client, plugin: HookFile, options: argparse.Namespace) -> int:
    """Write the plugin of a program, or delete it. Raise BadInput."""
    path = plugin.path(client_roots(), _project(options))
    if options.remove:
        remove_plugin(path)
        print(f"removed {path}")
        return 0
    text = plugin_text(own_command())
    if options.print:
        print(text, end="")
        print(f"# in {path}", file=sys.stderr)
        return 0
    replace_text(path, text)
    print(f"{path} is the plugin; start {client.title} again")
    return 0


def _change_rules(client: Client, options: argparse.Namespace) -> int:
    """Write rules for the agent of a program, or remove them. Raise BadInput."""
    rules = RULES_FILES.get(client.name)
    if rules is None:
        raise BadInput(f"there are no rules to add to {client.title}: use {', '.join(RULES_FILES)}")
    if options.print:
        print(f"{rules.head}{RULES}", end="")
        return 0
    path = rules.path(client_roots(), _project(options))
    if path is None:
        scope = "user" if options.scope == "project" else "project"
        raise BadInput(f"{client.title} has no rules for this scope: use --scope {scope}")
    if options.remove:
        kept = remove_rules(rules, path)
        print(f"removed the rules from {path}")
    else:
        kept = add_rules(rules, path)
        print(f"{path} says when to recall and to remember")
    _print_former_file(kept)
    return 0


def _project(options: argparse.Namespace) -> Path | None:
    """Return the project that the files are for; None for those of the user."""
    return Path.cwd() if options.scope == "project" else None


def _print_former_file(kept: Path | None) -> None:
    if kept is not None:
        print(f"the former file is {kept}")


def _offer_import(settings: Settings, options: argparse.Namespace) -> None:
    """Say what could be imported, and import it in the background if the user agrees."""
    sources = find_past_sources(client_roots(), Path.cwd())
    if not sources:
        return
    _print_sources(sources)
    if sys.stdin.isatty() and _ask("Import them in the background now?"):
        _start_import(settings, options)
        return
    where = shlex.join(_server_options(settings, options))
    command = f"polymnia install --import {where}".rstrip()
    print(f"to store them: {command}   # --dry-run counts first")


def _take_over(settings: Settings, options: argparse.Namespace) -> int:
    """Import what other programs have left, count it, or take it back. Raise BadInput."""
    if options.undo:
        return _undo_import(settings, options)
    if options.background:
        _start_import(settings, options)
        return 0
    sources = find_past_sources(client_roots(), Path.cwd())
    if not options.json:
        _print_sources(sources)
    progress = Progress("files")
    try:
        receipt = take_over(
            settings, sources, Path.cwd(), dry_run=options.dry_run, progress=progress
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "interrupted: run the same command again to continue, or add --undo"
        ) from None
    finally:
        progress.end()
    if options.json:
        print_json({"dry_run": options.dry_run, **to_builtins(receipt)})
        return 0
    _print_receipt(receipt, dry_run=options.dry_run)
    return 0


def _print_sources(sources: list[PastSource]) -> None:
    for source in sources:
        files = count_noun(len(source.files), "file")
        print(f"found {source.title}: {files} ({source.size / 1e6:.1f} MB) in {source.path}")


def _print_receipt(receipt: TakeoverReceipt, *, dry_run: bool) -> None:
    verb = "would import" if dry_run else "imported"
    entities, facts = count_noun(receipt.entities, "new entity"), count_noun(receipt.facts, "fact")
    print(f"{verb} {entities} with {facts}")
    for name, count in receipt.by_workspace.items():
        print(f"  {name}: {count_noun(count, 'fact')}")
    if receipt.known_files:
        print(f"{count_noun(receipt.known_files, 'file')} were imported before")
    if receipt.secrets:
        print("texts that seemed to contain a key or a password were replaced by a sentence")
    for failure in receipt.failures:
        print(f"skipped {failure}", file=sys.stderr)
    if receipt.facts and not dry_run:
        print("to take it back: polymnia install --import --undo")


def _undo_import(settings: Settings, options: argparse.Namespace) -> int:
    undone = undo_takeover(settings, by=ACTOR)
    if options.json:
        print_json(undone)
        return 0
    for name, count in undone.facts.items():
        print(f"removed {count_noun(count, 'fact')} from {name}")
    if undone.conflicts:
        print(f"kept {count_noun(undone.conflicts, 'row')} that others have changed since")
    return 0


def _start_import(settings: Settings, options: argparse.Namespace) -> None:
    """Start the import in a process that outlives this one."""
    log = takeover_file().with_suffix(".log")
    make_parent(log)
    command = [*own_command(), "install", "--import", *_server_options(settings, options)]
    with open(log, "ab", opener=open_private) as output:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    print(f"the import runs in the background and writes to {log}")


def _has_plugin() -> bool:
    """Return True if a file in which clients list their plugins names ours."""
    roots = client_roots()
    claude_files = (
        "settings.json",
        ".claude/settings.json",
        ".claude/plugins/installed_plugins.json",
    )
    paths = [roots.claude / file for file in claude_files] + [roots.codex / "config.toml"]
    return any(path.is_file() and _PLUGIN in path.read_bytes() for path in paths)


def _remove(client: Client, path: Path, name: str, *, confirmed: bool) -> int:
    servers = read_servers(client, path)
    if name not in servers:
        raise BadInput(f"{path} has no server {name!r}")
    if not is_polymnia(servers[name]):
        _confirm(f"{name} in {path} is another server. Remove it?", confirmed=confirmed)
    kept = change_servers(client, path, {name: None})
    print(f"removed {name} from {path}\nthe former file is {kept}")
    return 0


def _server_options(settings: Settings, options: argparse.Namespace) -> list[str]:
    """Return the options of `serve` that the user gave, with paths that hold in every directory."""
    given = ["--dialect", options.dialect] if options.dialect else []
    if options.store or options.data_dir:
        given += store_options(settings.store)
    return [*given, "--workspace", options.workspace] if options.workspace else given


def _confirm_replacements(servers: Mapping[str, Any], name: str, *, confirmed: bool) -> list[str]:
    """Return the names of the entries to replace, after asking. Raise BadInput."""
    taken = [server for server, entry in servers.items() if is_reference_server(entry)]
    if name in servers and name not in taken and not is_polymnia(servers[name]):
        _confirm(f"There is another server {name!r}. Replace it?", confirmed=confirmed)
    if name in taken:
        _confirm(f"{name!r} is the reference memory server. Replace it?", confirmed=confirmed)
    others = [server for server in taken if server != name]
    if others and not confirmed and not sys.stdin.isatty():
        print(
            f"kept the reference memory server {', '.join(others)}: --yes replaces it",
            file=sys.stderr,
        )
        return [name] if name in taken else []
    accepted = [
        server
        for server in others
        if confirmed or _ask(f"Replace the reference memory server {server!r}?")
    ]
    return ([name] if name in taken else []) + accepted


def _confirm(question: str, *, confirmed: bool) -> None:
    """Raise BadInput unless the user agrees."""
    if confirmed:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{question} Add --yes, or choose another --name")
    if not _ask(question):
        raise BadInput("nothing was changed")


def _ask(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _target(settings: Settings, scope: Scope) -> Settings:
    """Return the settings of the import.

    It goes into the personal workspace, unless another one or a project is chosen.
    """
    is_directory = store_kind(settings.store)[0] == "directory"
    if scope == "project" or settings.workspace or not is_directory:
        return settings
    with closing(open_workspaces(settings.store)) as workspaces:
        create_missing(workspaces, PERSONAL)
    return replace(settings, workspace=PERSONAL)


def _import_memory(settings: Settings, entry: Any, *, is_local: bool) -> None:
    """Import the memory of a reference server that was replaced."""
    env = entry.get("env") if isinstance(entry, dict) else None
    file = env.get("MEMORY_FILE_PATH", "") if isinstance(env, dict) else ""
    if not file:
        print(
            "its memory is in the package's own directory: `polymnia import FILE` adds it",
            file=sys.stderr,
        )
    elif not is_local:
        print(
            f"its memory is still in {file}: `polymnia import` adds it to a local store",
            file=sys.stderr,
        )
    elif Path(file).is_file():
        from polymnia.cli.import_file import run_import as import_memory

        options = argparse.Namespace(
            file=file, kind=None, from_workspace="", dry_run=False, json=False
        )
        import_memory(settings, options)
    else:
        print(f"its memory {file} does not exist yet", file=sys.stderr)


def _list(*, as_json: bool) -> None:
    found = [
        _describe(client, scope)
        for client in CLIENTS.values()
        for scope in SCOPES
        if _has(client, scope)
    ]
    if as_json:
        print_json(found)
        return
    columns = ("client", "scope", "state", "file")
    print_table([columns, *([str(row[column]) for column in columns] for row in found)])


def _has(client: Client, scope: Scope) -> bool:
    """Return True if a scope is listed.

    The user's always is, the project's if its file exists and is another one.
    """
    user, path = (client.path(option, client_roots(), Path.cwd()) for option in (SCOPES[0], scope))
    return path is not None and (scope == "user" or (path != user and path.exists()))


def _describe(client: Client, scope: Scope) -> dict[str, str]:
    path = client.path(scope, client_roots(), Path.cwd())
    assert path is not None  # `_has` has checked it
    return {
        "client": client.name,
        "scope": scope,
        "state": state_of(client, path, client_roots()),
        "file": str(path),
    }
