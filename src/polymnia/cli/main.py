"""`polymnia`: parse the arguments, run the command, and turn every failure into a sentence and a status."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from polymnia import __version__
from polymnia.dialects.registry import STORE_FLAGS
from polymnia.errors import PolymniaError
from polymnia.log_lines import configure_logging
from polymnia.settings import Settings, load_settings

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# Command -> module of this package, with `add_parser(commands)` and `run(settings, options)`.
COMMANDS = {
    "serve": "serve",
    "ui": "ui",
    "install": "install",
    "hook": "hook",
    "search": "search",
    "show": "show",
    "stats": "stats",
    "import": "import_file",
    "export": "export",
    "sync": "sync",
    "index": "index",
    "doctor": "doctor",
    "backup": "backup",
    "restore": "restore",
    "migrate": "migrate",
    "history": "history",
    "undo": "undo",
    "trash": "trash",
    "workspace": "workspace",
    "perspective": "perspective",
    "token": "token",
    "completion": "completion",
}
# Where the help texts start: after the longest command.
_HELP_COLUMN = 18
# What a shell reports for a program that a closed pipe ended.
_BROKEN_PIPE = 141
# What a shell reports for a program that Ctrl-C ended.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    with suppress(AttributeError):  # a stream that is closed, or replaced by a test
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = _run(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _BROKEN_PIPE
    except PolymniaError as exc:
        _complain(str(exc))
        return 1
    except OSError as exc:
        _discard_output()
        _complain(f"{exc.filename or 'cannot write the output'}: {exc.strerror or exc}")
        return 1
    except KeyboardInterrupt as exc:
        _complain(str(exc) or "interrupted")
        return _INTERRUPTED
    return status


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of one command, or of all. A server starts sooner if no other command is imported."""
    parser = Parser(
        prog="polymnia",
        description="A memory for AI agents. `polymnia install CLIENT` adds it to your MCP client.",
        epilog="`polymnia COMMAND --help` shows the options of a command.",
        formatter_class=partial(argparse.HelpFormatter, max_help_position=_HELP_COLUMN),
    )
    parser.add_argument("--version", action="version", version=f"polymnia {__version__}")
    # With `prog`, argparse does not lay out a usage text to find the prefix.
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="polymnia"
    )
    for name, module in COMMANDS.items():
        if command not in COMMANDS or name == command:
            implementation = import_module(f"polymnia.cli.{module}")
            implementation.add_parser(commands).set_defaults(run=implementation.run)
    return parser


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with a suggestion where a word is misspelled."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Print help, and let `main` handle a pipe that is closed: argparse would ignore it."""
        if message:
            (file or sys.stderr).write(message)

    def parse_known_args(  # type: ignore[override]  # commands pass no namespace of another type
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown arguments here, so that the error names the help of the command and not of the program."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        from polymnia.cli.mistakes import explain

        self.exit(
            2, f"polymnia: {explain(message)}\nRun `{self.prog} --help` to see what is possible.\n"
        )


def _run(given: Sequence[str]) -> int:
    try:
        if not given:
            build_parser().print_help()
            return 0
        if not given[0].startswith("-") and given[0] not in COMMANDS:
            from polymnia.cli.mistakes import suggest

            Parser(prog="polymnia").error(
                f"there is no command {given[0]!r}{suggest(given[0], COMMANDS)}"
            )
        options = build_parser(given[0]).parse_args(given)
        settings = load_settings(_flags(options))
        configure_logging(settings.log_level, settings.log_format)
        status: int = options.run(settings, options)
    except SystemExit as exc:  # argparse has printed what there is to say
        return int(exc.code or 0)
    return status


def _flags(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that are settings."""
    return {
        name: value
        for name, value in vars(options).items()
        if name in Settings.__struct_fields__ or name in STORE_FLAGS
    }


def _complain(sentence: str) -> None:
    from polymnia.cli.common import printable
    from polymnia.stores import hide_passwords

    with suppress(OSError):
        print(f"polymnia: {hide_passwords(printable(sentence))}", file=sys.stderr)


def _discard_output() -> None:
    """Discard buffered output, so that the interpreter does not fail to write it when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
