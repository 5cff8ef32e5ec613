"""`polymnia`: reading the arguments and handing over to the command."""

import argparse
import sys
from collections.abc import Sequence

from polymnia import __version__
from polymnia.dialects import DIALECTS
from polymnia.errors import PolymniaError
from polymnia.settings import Settings, load_settings

_STORE_HELP = (
    "a path ending in .db, .sqlite, .jsonl or .mcpmem, or memory: (default: as `polymnia serve` without options)"
)
_SERVE_TEXT = """\
Start the server on standard input and output, for an MCP client to talk to.

With no options the memory is a SQLite file in your data directory and the tools are those of the
reference memory server. With --dialect the dialect's own default store is used: `reference` keeps
memory.jsonl in the current directory and `graph` memory.mcpmem, or the file that MEMORY_FILE_PATH names.
"""


_FLAGS = ("store", "memory_file", "dialect", "transport", "bind", "insecure", "log_level", "embedder")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    options = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polymnia",
        description="A memory for AI agents. `polymnia serve` is what you put into your client's configuration.",
    )
    parser.add_argument("--version", action="version", version=f"polymnia {__version__}")
    # With `prog` given no help text has to be laid out to find it.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="polymnia")
    _add_serve(commands)
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
    _add_embedder(serve)
    serve.add_argument("--transport", choices=("stdio", "tcp"), help="how clients talk to it (default: stdio)")
    serve.add_argument("--bind", metavar="HOST:PORT", help="where TCP listens (default: 127.0.0.1:8080)")
    serve.add_argument("--insecure", action="store_true", default=None, help="let other machines in without any check")


def _add_embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="URL",
        help="what searches by meaning: local, onnx:DIRECTORY, ollama:MODEL, openai:MODEL or none (default: local)",
    )


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="URL", help=_STORE_HELP)
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="what to tell on standard error"
    )
