"""What several commands share: arguments, checks, tables, JSON, a progress bar and a clock."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from shutil import get_terminal_size
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from polymnia.dialects.registry import STORE_FLAGS
from polymnia.errors import BadInput
from polymnia.stores.open import store_exists, store_kind

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_BAR_WIDTH = 30
_TICK_S = 1.0
_MIN_COLUMN_WIDTH = 8
_GAP = "  "
# Characters that a terminal obeys instead of showing them, and those that change the direction of the text around them.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_STORE_HELP = (
    "a path ending in .db, .sqlite, .jsonl or .mcpmem, a directory of workspaces (ending in / if new), postgresql://… "
    "or memory: (default: as for `polymnia serve` without options)"
)


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the store, and the log level."""
    parser.add_argument("--store", metavar="URL", help=_STORE_HELP)
    for name, flag in STORE_FLAGS.items():
        if (
            flag.scheme is not None
        ):  # the others mean a file in the format of the dialect that is served
            parser.add_argument(*flag.names, dest=name, metavar=flag.metavar, help=flag.help)
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help="what to log to standard error",
    )


def add_workspace_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace", metavar="NAME", help="workspace to use (if the store has several)"
    )


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_embedder_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="URL",
        help="embedding model: local, onnx:DIRECTORY, ollama:MODEL, openai:MODEL or none (default: local)",
    )


def add_tokens_argument(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    parser.add_argument(
        "--tokens", metavar="FILE", help="the token file (default: beside the store)"
    )


def require_store(url: str) -> None:
    """Raise BadInput if nothing exists at the URL: it is probably a typo."""
    if not store_exists(url):
        kind, path = store_kind(url)
        raise BadInput(
            f"there are no workspaces in {path}"
            if kind == "directory"
            else f"there is no file {path}"
        )


def printable(text: str) -> str:
    """Return a text in one line that a terminal only shows: control characters become escapes such as \\x1b."""
    return _CONTROLS.sub(_escape, text)


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
    print(
        "\n".join(
            _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
            for line in text.split("\n")
        )
    )


def print_table(rows: Sequence[Sequence[str]], *, cut_column: int = -1) -> None:
    """Print rows in aligned columns. In a terminal, the cells of one column are cut to fit its width.

    The other columns stay whole: a user copies ids and names from them.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)]
    if widths and sys.stdout.isatty():
        room = get_terminal_size().columns - sum(widths) - len(_GAP) * (len(widths) - 1)
        widths[cut_column] = max(
            widths[cut_column] + min(room, 0), min(widths[cut_column], _MIN_COLUMN_WIDTH)
        )
    for row in shown:
        cells = [cut(cell, width) for cell, width in zip(row, widths, strict=True)]
        padded = [
            cell + " " * (width - display_width(cell))
            for cell, width in zip(cells, widths, strict=True)
        ]
        print(_GAP.join(padded).rstrip())


def cut(text: str, width: int) -> str:
    """Return the text, shortened with an ellipsis if it is wider than the width."""
    if display_width(text) <= width:
        return text
    while text and display_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def display_width(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    return sum(2 if east_asian_width(each) in "WF" else not combining(each) for each in text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or (
        f"\\x{ord(character):02x}" if character < "\x9f" else f"\\u{ord(character):04x}"
    )


def format_time(at: int) -> str:
    """Return a model time to the minute, in UTC; empty if it is unknown."""
    return (
        datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(" ", "minutes").removesuffix("+00:00")
        if at
        else ""
    )


def format_seconds(at: int | None) -> str:
    """Return a time in seconds since 1970 to the minute, in UTC; empty for none."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def progress_bar(done: int, total: int) -> None:
    """Draw progress on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        return
    filled = _BAR_WIDTH * done // max(total, 1)
    ending = "\n" if done >= total else ""
    bar = "#" * filled + "-" * (_BAR_WIDTH - filled)
    print(f"\r[{bar}] {done:,} of {total:,}", end=ending, file=sys.stderr, flush=True)


@contextmanager
def show_elapsed_time(work: str) -> Iterator[None]:
    """Show on standard error, if it is a terminal, how long the block takes. It shows nothing in the first second."""
    done = Event()
    clock = Thread(target=_show_time, args=(work, done), daemon=True)
    if sys.stderr.isatty():
        clock.start()
    try:
        yield
    finally:
        done.set()
        if clock.ident is not None:
            clock.join()


def _show_time(work: str, done: Event) -> None:
    began, shown = monotonic(), ""
    while not done.wait(_TICK_S):
        shown = f"{work}: {monotonic() - began:.0f} s"
        print(f"\r{shown}", end="", file=sys.stderr, flush=True)
    print(f"\r{' ' * len(shown)}\r" if shown else "", end="", file=sys.stderr, flush=True)
