"""`polymnia install`: add the server, hooks or rules to an MCP client, and import what is there."""

import argparse
from pathlib import Path

from polymnia.cli.common import (
    Subparsers,
    add_json_argument,
    add_store_arguments,
    print_json,
    print_table,
)
from polymnia.clients.connect import DEFAULT_NAME, inspect_client
from polymnia.clients.hooks import HOOK_FILES, PLUGIN_FILES
from polymnia.clients.rules import RULES_FILES
from polymnia.clients.table import CLIENTS, SCOPES
from polymnia.dialects.registry import DIALECTS
from polymnia.errors import BadInput
from polymnia.settings import Settings, client_roots


def add_install(commands: Subparsers) -> None:
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


def run_install(settings: Settings, options: argparse.Namespace) -> int:
    """Change the client's configuration. Raise BadInput."""
    if options.list:
        _list_clients(as_json=options.json)
        return 0
    if options.token and not options.http:
        raise BadInput("--token is sent to a team's server: name its URL with --http")
    if options.client is None and options.take_over:
        from polymnia.cli.install.past import import_past

        import_past(settings, options)
        return 0
    if options.client is None:
        raise BadInput(f"name a client: {', '.join(CLIENTS)}; --list shows which are here")
    client = CLIENTS[options.client]
    project = Path.cwd() if options.scope == "project" else None
    if options.hooks:
        from polymnia.cli.install.hooks import change_hooks

        change_hooks(client, project, remove=options.remove, only_print=options.print)
    elif options.rules:
        from polymnia.cli.install.hooks import change_rules

        change_rules(client, project, remove=options.remove, only_print=options.print)
    else:
        from polymnia.cli.install.entry import change_entry

        change_entry(settings, client, options)
    return 0


def _list_clients(*, as_json: bool) -> None:
    """Print the user's file of every client, and the project's if it exists."""
    roots = client_roots()
    columns = ("client", "scope", "state", "file")
    rows = []
    for client in CLIENTS.values():
        user_file = client.path("user", roots, Path.cwd())
        for scope in SCOPES:
            path = client.path(scope, roots, Path.cwd())
            if path is None or (scope == "project" and (path == user_file or not path.exists())):
                continue
            state = inspect_client(client, path, roots).state
            rows.append((client.name, scope, state, str(path)))
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table([columns, *rows])
