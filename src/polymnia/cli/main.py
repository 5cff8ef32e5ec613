"""`polymnia`: parse the arguments, run the command, and explain every failure in a sentence."""

import argparse
import gc
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from polymnia import __version__
from polymnia.dialects.registry import STORE_FLAGS
from polymnia.errors import PolymniaError
from polymnia.log_lines import configure_logging
from polymnia.settings import Settings, load_settings

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# The groups of `polymnia --help`: command -> module of this package, which has
# `add_COMMAND(commands)` and `run_COMMAND(settings, options)`.
GROUPS = {
    "every day": {
        "demo": "demo",
        "install": "install",
        "ui": "serve",
        "remember": "facts",
        "search": "search",
        "show": "show",
        "revise": "facts",
        "forget": "facts",
        "history": "changes",
        "undo": "changes",
    },
    "in and out": {
        "import": "import_file",
        "export": "export",
        "sync": "sync",
        "backup": "backup",
        "restore": "backup",
        "migrate": "backup",
    },
    "a server and its stores": {
        "serve": "serve",
        "token": "access",
        "user": "access",
        "workspace": "workspace",
        "erase": "person",
        "audit": "changes",
        "doctor": "doctor",
        "index": "embedding",
        "list": "show",
        "stats": "show",
        "trash": "changes",
    },
    "more": {
        "hook": "hook",
        "completion": "completion",
        "embedder": "embedding",
        "perspective": "embedding",
        "migrate-schema": "backup",
    },
}
COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}
# Words that people try, and the command that does it.
_SYNONYMS = {
    "add": "remember",
    "create": "remember",
    "delete": "forget",
    "edit": "revise",
    "find": "search",
    "get": "show",
    "log": "history",
    "ls": "list",
    "open": "show",
    "query": "search",
    "remove": "forget",
    "save": "remember",
    "status": "stats",
    "store": "remember",
    "update": "revise",
    "web": "ui",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    words = [_as_utf_8(word) for word in sys.argv[1:]] if arguments is None else arguments
    with suppress(AttributeError):  # a stream that is closed, or replaced by a test
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return 141  # what a shell reports for a program that a closed pipe ended
    except PolymniaError as exc:
        _complain(str(exc))
        return 1
    except OSError as exc:
        _discard_output()
        _complain(f"{exc.filename or 'cannot write the output'}: {exc.strerror or exc}")
        return 1
    except KeyboardInterrupt as exc:
        _complain(str(exc) or "interrupted")
        return 130  # what a shell reports for a program that Ctrl-C ended
    return status


def _as_utf_8(word: str) -> str:
    """Return an argument as it was typed, also where the system's locale is not UTF-8."""
    with suppress(UnicodeError):
        return os.fsencode(word).decode()
    return word


def run_and_exit() -> NoReturn:
    """Run one command and end the process with its status."""
    if sys.argv[1:2] == ["hook"]:
        # Run a hook and end with status 0: any other stops some agents, or tells their users.
        try:
            main()
        finally:
            with suppress(OSError, ValueError, AttributeError):
                if sys.exc_info()[0] is not None:
                    sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            os._exit(0)
    status = main()
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    # Threads may be inside the embedding model. Ending the interpreter under them aborts the
    # process, and waiting for them may take seconds. What must be saved has been saved.
    os._exit(status)


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of one command, or of all.

    A server starts sooner if no other command is imported.
    """
    parser = Parser(
        prog="polymnia",
        description="A memory for AI agents. `polymnia demo` shows one at work, and `polymnia "
        "install CLIENT` adds it to your MCP client.",
        epilog="`polymnia COMMAND --help` shows the options of a command. For example, `polymnia "
        "remember Ada 'likes tea'` stores a fact, and `polymnia search what does Ada like` finds "
        "it.",
        formatter_class=partial(argparse.HelpFormatter, max_help_position=18),
    )
    parser.add_argument("--version", action="version", version=f"polymnia {__version__}")
    # With `prog`, argparse does not lay out a usage text to find the prefix.
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="polymnia"
    )
    for name, module_name in COMMANDS.items():
        if command not in COMMANDS or name == command:
            module = import_module(f"polymnia.cli.{module_name}")
            function = name.replace("-", "_")
            getattr(module, f"add_{function}")(commands)
            commands.choices[name].set_defaults(run=getattr(module, f"run_{function}"))
    return parser


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with a suggestion where a word is misspelled."""

    _is_helping = False

    def _get_formatter(self) -> argparse.HelpFormatter:
        # argparse asks for one to check every argument. Looking up the width of the terminal
        # imports shutil and compression libraries, which a server's start does not need.
        if self._is_helping:
            return super()._get_formatter()
        return argparse.HelpFormatter(self.prog, width=80)

    def format_help(self) -> str:
        """Return the help. That of the program lists its commands in groups."""
        self._is_helping = True
        commands = self._subparsers
        if self.prog != "polymnia" or commands is None:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage("polymnia COMMAND [OPTIONS]", [], ())
        formatter.add_text(self.description)
        # argparse has no public list of what was added to a parser.
        (choices,) = commands._group_actions
        subactions = choices._get_subactions()  # type: ignore[attr-defined]  # typeshed lacks it
        by_name = {action.dest: action for action in subactions}
        for title, group in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments(by_name[name] for name in group)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Print help, and let `main` handle a closed pipe, which argparse would ignore."""
        if message:
            (file or sys.stderr).write(message)

    def parse_known_args(  # type: ignore[override]  # no command passes another namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown arguments here, so that the error names the help of the command."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flag = unknown[0].partition("=")[0]
            known = self._option_string_actions if flag.startswith("-") else ()
            self.error(f"unrecognized arguments: {' '.join(unknown)}{suggest(flag, known)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        # Suggest a word if one is not among the possible ones.
        match = _CHOICE.match(message)
        if match is not None:
            choices = re.findall(r"[\w.-]+", match["choices"])
            where, word = match["where"].removeprefix("argument "), match["given"]
            message = f"{where}{word!r} is not one of {', '.join(choices)}{suggest(word, choices)}"
        self.exit(2, f"polymnia: {message}\nRun `{self.prog} --help` to see what is possible.\n")


_CHOICE = re.compile(
    r"(?P<where>.*?)invalid choice: '?(?P<given>[^'(]*?)'? \((?:.*?)choose from (?P<choices>.*)\)$"
)


def suggest(word: str, words: Iterable[str]) -> str:
    """Return a question that names the most similar words, to end a sentence; empty without any."""
    from difflib import get_close_matches  # needed only when something is wrong

    near = get_close_matches(word, list(words), 2, 0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _run(words: Sequence[str]) -> int:
    # A hook ends before there is much garbage. A server collects it once it listens.
    without_collector = ("hook", "serve")
    try:
        if words and words[0] == "help":
            words = [*words[1:2], "--help"]
        if words and words[0] == "recall":  # its name in earlier versions, and that of the tool
            words = ["search", *words[1:]]
        if words == ["version"]:
            words = ["--version"]
        if not words:
            build_parser().print_help()
            return 0
        command = words[0]
        if not command.startswith("-") and command not in COMMANDS:
            synonym = _SYNONYMS.get(command)
            hint = f"; did you mean {synonym}?" if synonym else suggest(command, COMMANDS)
            Parser(prog="polymnia").error(f"there is no command {command!r}{hint}")
        if command.startswith("--") and command not in ("--help", "--version"):
            Parser(prog="polymnia").error(
                f"{command} is an option of a command: write it after the command, as in "
                f"`polymnia remember … {command} …`"
            )
        options = build_parser(command).parse_args(words)
        flags = {}
        for name, value in vars(options).items():
            if name in Settings.__struct_fields__ or name in STORE_FLAGS:
                flags[name] = value
        settings = load_settings(flags)
        configure_logging(settings.log_level, settings.log_format)
        if command not in without_collector:
            gc.enable()
        status: int = options.run(settings, options)
    except SystemExit as exc:  # argparse has printed what there is to say
        return int(exc.code or 0)
    return status


def _complain(sentence: str) -> None:
    from polymnia.cli.common import printable
    from polymnia.stores import hide_passwords

    with suppress(OSError):
        print(f"polymnia: {hide_passwords(printable(sentence))}", file=sys.stderr)


def _discard_output() -> None:
    """Discard buffered output, so that the interpreter does not fail to write it when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
