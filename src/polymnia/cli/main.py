"""`polymnia`: parse the arguments and run the command."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from polymnia import __version__
from polymnia.dialects.registry import STORE_FLAGS
from polymnia.errors import PolymniaError
from polymnia.settings import Settings, load_settings

# Command -> module of this package, with `add_parser(commands)` and `run(settings, options)`.
COMMANDS = {
    "serve": "serve",
    "install": "install",
    "search": "search",
    "show": "show",
    "import": "import_file",
    "export": "export",
    "index": "index",
    "doctor": "doctor",
    "backup": "backup",
    "restore": "restore",
    "trash": "trash",
    "workspace": "workspace",
    "perspective": "perspective",
    "token": "token",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    options = build_parser(given[0] if given else "").parse_args(given)
    try:
        settings = load_settings(_flags(options))
        status: int = options.run(settings, options)
    except PolymniaError as exc:
        print(f"polymnia: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of one command, or of all. A server starts sooner if no other command is imported."""
    parser = argparse.ArgumentParser(
        prog="polymnia",
        description="A memory for AI agents. Put `polymnia serve` into the configuration of your MCP client.",
    )
    parser.add_argument("--version", action="version", version=f"polymnia {__version__}")
    # With `prog`, argparse does not lay out a usage text to find the prefix.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="polymnia")
    for name, module in COMMANDS.items():
        if command not in COMMANDS or name == command:
            implementation = import_module(f"polymnia.cli.{module}")
            implementation.add_parser(commands).set_defaults(run=implementation.run)
    return parser


def _flags(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that are settings."""
    return {
        name: value
        for name, value in vars(options).items()
        if name in Settings.__struct_fields__ or name in STORE_FLAGS
    }
