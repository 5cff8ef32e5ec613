"""What several commands share: arguments, labels of workspaces, tables, JSON and progress."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from shlex import quote
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias
from unicodedata import combining, east_asian_width

from polymnia.dialects.registry import STORE_FLAGS
from polymnia.errors import BadInput
from polymnia.model import Counts
from polymnia.search.hidden import HIDDEN
from polymnia.search.terms import count_noun
from polymnia.settings import Settings, default_store
from polymnia.stores.open import hide_passwords

if TYPE_CHECKING:
    from polymnia.workspace_choice import OpenedWorkspace

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_BAR_WIDTH = 30
_GAP = "  "
# Characters that a terminal obeys instead of showing them, and those that change the direction of
# the text around them.
_CONTROLS = re.compile(rf"[\n\t\r]|{HIDDEN}")
_STORE_HELP = (
    "a path ending in .db, .sqlite, .jsonl or .mcpmem, a directory of workspaces (ending in / if "
    "new), postgresql://… or memory: (default: `workspaces` in your data directory, "
    "which is ~/.local/share/polymnia on Linux)"
)


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the store, and the log level."""
    parser.add_argument("--store", metavar="URL", help=_STORE_HELP)
    for name, flag in STORE_FLAGS.items():
        # The others mean a file in the format of the dialect that is served.
        if flag.scheme is not None:
            parser.add_argument(*flag.names, dest=name, metavar=flag.metavar, help=flag.help)
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help="what to log to standard error",
    )


def add_workspace_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        help="workspace to use (default: that of the project in this directory, and `personal`)",
    )


def add_memory_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes that reads or writes a memory and prints a result."""
    add_result_arguments(parser)
    add_workspace_argument(parser)


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a command takes that prints what it did to a store."""
    add_json_argument(parser)
    add_store_arguments(parser)


def add_limit_argument(parser: argparse.ArgumentParser, limit: int, meaning: str) -> None:
    parser.add_argument(
        "--limit",
        type=positive,
        default=limit,
        metavar="N",
        help=f"{meaning} (default: %(default)s)",
    )


def add_embedder_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="URL",
        help="embedding model: local, multilingual, onnx:DIRECTORY, ollama:MODEL, openai:MODEL "
        "or none (default: local)",
    )


def add_tokens_argument(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    parser.add_argument(
        "--tokens",
        metavar="FILE",
        help="the token file (default: beside the store, or tokens in the database)",
    )


def positive(text: str) -> int:
    """Return the number in an argument. Raise ArgumentTypeError if it is less than one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


positive.__name__ = "int"  # argparse names the type in its error


def workspace_label(settings: Settings, workspace: "OpenedWorkspace") -> str:
    """Return the name of the workspace, or the store if it can hold only one."""
    return hide_passwords(settings.store) if workspace.is_sole else workspace.name


def change_label(workspace: "OpenedWorkspace", change: int) -> str:
    """Return the id of a change with its workspace, as `polymnia undo` takes it: `shop:3`."""
    return str(change) if workspace.is_sole else f"{workspace.name}:{change}"


def undo_command(settings: Settings, workspace: "OpenedWorkspace", changes: Sequence[int]) -> str:
    """Return the command that undoes the changes, wherever it is pasted; empty without changes.

    The change 0 is none.
    """
    labels = [quote(change_label(workspace, change)) for change in changes if change]
    return f"polymnia undo {' '.join(labels)}{store_option(settings)}" if labels else ""


def unknown_name(
    settings: Settings, workspaces: "Sequence[OpenedWorkspace]", name: str, kinds: str = "entity"
) -> BadInput:
    """Return an error that names the workspace where the entity is, or similar names."""
    from polymnia.engine.recall.names import similar_names
    from polymnia.workspace_choice import open_workspaces_to_read, other_workspaces

    where = " and ".join(workspace_label(settings, workspace) for workspace in workspaces)
    text = f"there is no {kinds} {name!r} in {where}"
    opened = [workspace.name for workspace in workspaces]
    with open_workspaces_to_read(settings) as readable:
        for other in readable:
            with other.memory.reading() as read:
                is_there = other.name not in opened and bool(read.outlines([name]))
            if is_there:
                return BadInput(f"{text}: {other.name} has one; add --workspace {other.name}")
    near: dict[str, None] = {}
    for workspace in workspaces:
        near |= dict.fromkeys(map(repr, similar_names(workspace.memory, name)))
    if near:
        return BadInput(f"{text}; did you mean {' or '.join(near)}?")
    others = [] if settings.workspace else other_workspaces(settings, workspaces)
    if others:
        return BadInput(f"{text}; other workspaces, for --workspace: {', '.join(others[:20])}")
    return BadInput(text)


def store_option(settings: Settings) -> str:
    """Return the option that names the store; empty for the user's default one."""
    if settings.store == default_store():
        return ""
    return f" --store {quote(hide_passwords(settings.store))}"


def workspace_option(workspace: "OpenedWorkspace") -> str:
    """Return the option that names the workspace; empty if there can be only one."""
    return "" if workspace.is_sole else f" --workspace {quote(workspace.name)}"


def printable(text: str) -> str:
    """Return a text in one line that a terminal only shows.

    Control characters become escapes such as \\x1b.
    """
    return _CONTROLS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    if short is not None:
        return short
    if character < "\x9f":
        return f"\\x{ord(character):02x}"
    return f"\\u{ord(character):04x}" if character <= "\uffff" else f"\\U{ord(character):08x}"


def ask(question: str) -> bool:
    """Return True if the user at the terminal agrees."""
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def describe_counts(counts: Counts) -> str:
    entities = count_noun(counts.entities, "entity")
    facts = count_noun(counts.facts, "fact")
    relations = count_noun(counts.relations, "relation")
    return f"{entities}, {facts}, {relations}"


def print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        print(printable(line))


def print_result(text: str, value: Any, *, as_json: bool) -> None:
    """Print what a command did, for a person or for a program."""
    if as_json:
        print_json(value)
    else:
        print(text)


def print_json(value: Any) -> None:
    """Print JSON that any terminal and any encoding can show."""
    import json  # msgspec does not escape characters that the encoding lacks

    from msgspec import to_builtins

    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(to_builtins(value), indent=2, ensure_ascii=not is_utf8)
    print(escape_json(text))


def escape_json(text: str) -> str:
    """Return the same JSON for a terminal: control characters become escapes such as \\u009b."""
    import json

    lines = []
    for line in text.split("\n"):
        lines.append(_CONTROLS.sub(lambda match: json.dumps(match[0])[1:-1], line))
    return "\n".join(lines)


def print_table(rows: Sequence[Sequence[str]], *, cut_column: int = -1) -> None:
    """Print rows in aligned columns. In a terminal, one column is cut to fit its width.

    The other columns stay whole: a user copies ids and names from them.
    """
    min_column_width = 8
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)]
    if widths and sys.stdout.isatty():
        from shutil import get_terminal_size  # slow to import, and a server needs no table

        room = get_terminal_size().columns - sum(widths) - len(_GAP) * (len(widths) - 1)
        width = widths[cut_column]
        widths[cut_column] = max(width + min(room, 0), min(width, min_column_width))
    for row in shown:
        cells = []
        for cell, width in zip(row, widths, strict=True):
            short = cut(cell, width)
            cells.append(short + " " * (width - display_width(short)))
        print(_GAP.join(cells).rstrip())


def cut(text: str, width: int) -> str:
    """Return the text, shortened with an ellipsis if it is wider than the width."""
    if display_width(text) <= width:
        return text
    while text and display_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def display_width(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    width = 0
    for character in text:
        if east_asian_width(character) in "WF":
            width += 2
        elif not combining(character):
            width += 1
    return width


def format_time(at: int) -> str:
    """Return a model time to the minute, in UTC; empty if it is unknown."""
    return format_seconds(at // 1_000_000) if at else ""


def format_seconds(at: int | None) -> str:
    """Return a time in seconds since 1970 to the minute, in UTC; empty for none."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


class Progress:
    """Draws how much is done, and how long the rest takes, on standard error if it is a terminal.

    It can be called with the number of items that are done and their total; 0 if it is unknown.
    """

    def __init__(self, noun: str = "") -> None:
        self._noun = f" {noun}" if noun else ""
        self._began = monotonic()
        self._width = 0

    def __call__(self, done: int, total: int = 0, noun: str = "") -> None:
        """Draw it. A noun replaces that of the constructor."""
        if not sys.stderr.isatty():
            return
        if noun:
            self._noun = f" {noun}"
        if total:
            filled = _BAR_WIDTH * min(done, total) // total
            bar = "#" * filled + "-" * (_BAR_WIDTH - filled)
            text = f"[{bar}] {done:,} of {total:,}{self._noun}"
            elapsed = monotonic() - self._began
            # At first, the speed says little about the time that is left.
            if 0 < done < total and elapsed >= 2.0:
                left = elapsed * (total - done) / done
                text += f", {left:.0f} s left" if left < 90 else f", {left / 60:.0f} min left"
        else:
            text = f"{done:,}{self._noun}, {monotonic() - self._began:.0f} s"
        blanks = " " * max(self._width - len(text), 0)
        print(f"\r{text}{blanks}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def end(self) -> None:
        """Leave the line. What is drawn next begins a new one."""
        if self._width:
            print(file=sys.stderr, flush=True)
        self._width = 0


@contextmanager
def show_work(name: str) -> Iterator[None]:
    """Show on standard error, if it is a terminal, what the block does while it runs."""
    is_shown = sys.stderr.isatty()
    if is_shown:
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if is_shown:
            print(f"\r{' ' * (len(name) + 4)}\r", end="", file=sys.stderr, flush=True)
