"""`polymnia`: reading the arguments and handing over to the command."""

import argparse
import sys
from collections.abc import Sequence

from polymnia import __version__
from polymnia.dialects import DIALECTS
from polymnia.errors import PolymniaError
from polymnia.model import CAPABILITIES
from polymnia.settings import Settings, load_settings

_STORE_HELP = (
    "a path ending in .db, .sqlite, .jsonl or .mcpmem, a directory of workspaces (ending in / if it is new), or "
    "memory: (default: as `polymnia serve` without options)"
)
_SERVE_TEXT = """\
Start the server on standard input and output, for an MCP client to talk to.

With no options the memory is a SQLite file in your data directory and the tools are those of the
reference memory server. With --dialect the dialect's own default store is used: `reference` keeps
memory.jsonl in the current directory and `graph` memory.mcpmem, or the file that MEMORY_FILE_PATH names;
`vault` keeps memory.db, or the file that MEMORY_MCP_DB_PATH names; `project` keeps its projects in the
directory data.
"""


_FLAGS = (
    "store",
    "memory_file",
    "data_dir",
    "dialect",
    "dialects",
    "transport",
    "bind",
    "port",
    "workspace",
    "read_only",
    "insecure",
    "tokens",
    "allow_hosts",
    "allow_origins",
    "metrics",
    "workers",
    "log_level",
    "embedder",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(only_serve=given[:1] == ["serve"]).parse_args(given)
    try:
        return _run(options)
    except PolymniaError as exc:
        print(f"polymnia: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(options: argparse.Namespace) -> int:
    flags = {name: getattr(options, name, None) for name in _FLAGS}
    settings = load_settings(flags)
    if options.command == "serve":
        from polymnia.app import serve

        serve(settings)
        return 0
    if options.command == "doctor":
        from polymnia.cli.doctor import doctor, salvage

        return doctor(settings) if options.salvage is None else salvage(settings, options.salvage or None)
    if options.command == "token":
        from polymnia.cli.token import token

        return token(settings, options)
    if options.command == "workspace":
        from polymnia.cli.workspace import workspace

        return workspace(settings, options)
    if options.command == "trash":
        from polymnia.cli.trash import trash

        return trash(settings, options)
    if options.command in ("search", "show"):
        return _look(settings, options)
    from polymnia.cli import transfer

    if options.command == "import":
        return transfer.import_file(settings, options.file)
    return transfer.export(settings, options.format, options.output)


def _look(settings: Settings, options: argparse.Namespace) -> int:
    from polymnia.cli.search import search, show

    if options.command == "show":
        return show(settings, options.name, as_json=options.json)
    return search(settings, options.query, limit=options.limit, types=options.type, as_json=options.json)


def _parser(*, only_serve: bool = False) -> argparse.ArgumentParser:
    """What reads the arguments; every further command takes time to describe, and a server is to start at once."""
    parser = argparse.ArgumentParser(
        prog="polymnia",
        description="A memory for AI agents. `polymnia serve` is what you put into your client's configuration.",
    )
    parser.add_argument("--version", action="version", version=f"polymnia {__version__}")
    # With `prog` given no help text has to be laid out to find it.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="polymnia")
    _add_serve(commands)
    if only_serve:
        return parser
    doctor = commands.add_parser("doctor", help="check a memory and say what is wrong and what to do")
    doctor.add_argument(
        "--salvage",
        metavar="FILE",
        nargs="?",
        const="",
        help="write what can be read of a damaged binary log to FILE (default: beside it, ending in .salvaged.mcpmem)",
    )
    _add_store(doctor)
    importing = commands.add_parser("import", help="take a file's memories into a store")
    importing.add_argument(
        "file", metavar="FILE", help="a memory.jsonl, an exported .json, or a store's .db or .mcpmem file"
    )
    _add_store(importing)
    exporting = commands.add_parser("export", help="write a memory to a file others can read")
    exporting.add_argument("--format", choices=("json", "jsonl"), default="jsonl", help="(default: %(default)s)")
    exporting.add_argument("--output", "-o", metavar="FILE", help="write here instead of to standard output")
    _add_store(exporting)
    for each in (doctor, importing, exporting):
        _add_one_workspace(each)
    _add_workspace(commands)
    _add_trash(commands)
    _add_token(commands)
    _add_search(commands)
    return parser


def _add_search(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    searching = commands.add_parser("search", help="find what answers a question")
    searching.add_argument("query", metavar="QUERY", help="words, a name, or a whole question")
    searching.add_argument("--limit", type=int, default=10, metavar="N", help="how many to show (default: %(default)s)")
    searching.add_argument("--type", action="append", default=[], help="only entities of this type; may be repeated")
    _add_embedder(searching)
    showing = commands.add_parser("show", help="print one entity with its observations and relations")
    showing.add_argument("name", metavar="NAME", help="the entity's name")
    for each in (searching, showing):
        each.add_argument("--json", action="store_true", help="print JSON instead of a table")
        _add_store(each)
        _add_one_workspace(each)


def _add_serve(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = commands.add_parser(
        "serve",
        help="start the server, for an MCP client to talk to",
        description=_SERVE_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("--dialect", choices=sorted(DIALECTS), help="the tool catalogue to speak (default: reference)")
    _add_store(serve)
    serve.add_argument("--memory-file", "-f", metavar="FILE", help="the memory's file, in the dialect's own format")
    serve.add_argument("--transport", choices=("stdio", "tcp", "http"), help="how clients talk to it (default: stdio)")
    serve.add_argument("--read-only", action="store_true", default=None, help="let nobody change anything")
    serve.add_argument(
        "--workspace", metavar="NAME", help="the workspace of clients that name none (default: default; project: none)"
    )
    _add_embedder(serve)
    _add_network(serve.add_argument_group("over TCP and HTTP"))
    _add_http(serve.add_argument_group("over HTTP"))


def _add_network(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--bind", metavar="HOST[:PORT]", help="where to listen (default: 127.0.0.1)")
    group.add_argument("--port", type=int, metavar="N", help="the port (default: graph 8080, project 8081, else 8765)")
    group.add_argument("--tokens", metavar="FILE", help="the file of tokens (default: beside the store)")
    group.add_argument("--insecure", action="store_true", default=None, help="let other machines in without any check")


def _add_http(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--also", dest="dialects", action="append", metavar="DIALECT", help="serve it too, at /DIALECT/mcp (repeatable)"
    )
    group.add_argument(
        "--allow-host", dest="allow_hosts", action="append", metavar="NAME", help="a name it is reached by (repeatable)"
    )
    group.add_argument(
        "--allow-origin",
        dest="allow_origins",
        action="append",
        metavar="URL",
        help="a web page's origin that may use it, such as https://app.example.com (repeatable)",
    )
    group.add_argument("--workers", type=int, metavar="N", help="how many processes serve (default: 1)")
    group.add_argument("--metrics", action="store_true", default=None, help="count requests for Prometheus at /metrics")


def _add_workspace(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    workspace = commands.add_parser("workspace", help="list, make, archive, restore, rename and delete workspaces")
    actions = workspace.add_subparsers(dest="action", metavar="ACTION", required=True, prog="polymnia workspace")
    listing = actions.add_parser("list", help="show which there are")
    listing.add_argument(
        "--status", choices=("active", "archived", "all"), default="all", help="(default: %(default)s)"
    )
    listing.add_argument("--json", action="store_true", help="for programs")
    _add_store(listing)
    helps = {
        "create": "make a new one",
        "archive": "put it away: nobody can use it, nothing is lost",
        "restore": "bring an archived one back",
        "delete": "take it and all it holds away, for good",
        "rename": "give it another name",
    }
    for action, text in helps.items():
        each = actions.add_parser(action, help=text)
        each.add_argument("name", metavar="NAME")
        _add_store(each)
    actions.choices["create"].add_argument("--description", metavar="TEXT", default="", help="what it is for")
    actions.choices["delete"].add_argument("--yes", action="store_true", help="do not ask")
    actions.choices["rename"].add_argument("new", metavar="NEW")


def _add_trash(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    trash = commands.add_parser("trash", help="list, restore and purge what was deleted")
    actions = trash.add_subparsers(dest="action", metavar="ACTION", required=True, prog="polymnia trash")
    listing = actions.add_parser("list", help="show what was deleted, the latest first")
    listing.add_argument("--json", action="store_true", help="for programs")
    restoring = actions.add_parser("restore", help="bring something back")
    restoring.add_argument("what", metavar="ID", help="as the list shows it, or the name of a deleted entity")
    purging = actions.add_parser("purge", help="take away what was deleted, its text everywhere, for good")
    purging.add_argument(
        "--older-than", type=float, metavar="DAYS", help="only what was deleted longer ago (default: trash_days)"
    )
    for each in (listing, restoring, purging):
        _add_store(each)
        _add_one_workspace(each)


def _add_one_workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="NAME", help="the one that is meant, where a store has several")


def _add_token(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    token = commands.add_parser("token", help="make, list and revoke the tokens that let others in")
    actions = token.add_subparsers(dest="action", metavar="ACTION", required=True, prog="polymnia token")
    create = actions.add_parser("create", help="make a token and show it, once")
    create.add_argument("name", metavar="NAME", help="whose it is; the change log names it")
    create.add_argument("--can", choices=CAPABILITIES, default="read", help="what it allows (default: %(default)s)")
    create.add_argument(
        "--workspace",
        dest="workspaces",
        action="append",
        metavar="W",
        help="only there (repeatable; default: everywhere)",
    )
    create.add_argument("--expires", metavar="TIME", help="after so long: 30d, 12h, 45m (default: never)")
    listing = actions.add_parser("list", help="show the tokens there are, not their secrets")
    listing.add_argument("--json", action="store_true", help="for programs")
    revoke = actions.add_parser("revoke", help="make a token useless, at once")
    revoke.add_argument("name", metavar="NAME")
    for each in (create, listing, revoke):
        each.add_argument("--tokens", metavar="FILE", help="the file of tokens (default: beside the store)")
        _add_store(each)


def _add_embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="URL",
        help="what searches by meaning: local, onnx:DIRECTORY, ollama:MODEL, openai:MODEL or none (default: local)",
    )


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="URL", help=_STORE_HELP)
    parser.add_argument("--data-dir", metavar="DIR", help="a directory of workspaces: the same as --store DIR/")
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="what to tell on standard error"
    )
