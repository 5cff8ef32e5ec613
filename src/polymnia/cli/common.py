"""What several commands share: arguments, checks, tables, JSON and a progress bar."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymnia.dialects.registry import STORE_FLAGS
from polymnia.errors import BadInput
from polymnia.stores.open import has_files, store_kind

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_BAR_WIDTH = 30
_STORE_HELP = (
    "a path ending in .db, .sqlite, .jsonl or .mcpmem, a directory of workspaces (ending in / if new), or memory: "
    "(default: as for `polymnia serve` without options)"
)


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the store, and the log level."""
    parser.add_argument("--store", metavar="URL", help=_STORE_HELP)
    for name, flag in STORE_FLAGS.items():
        if flag.scheme is not None:  # the others mean a file in the format of the dialect that is served
            parser.add_argument(*flag.names, dest=name, metavar=flag.metavar, help=flag.help)
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="what to log to standard error"
    )


def add_workspace_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="NAME", help="workspace to use (if the store has several)")


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_embedder_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="URL",
        help="embedding model: local, onnx:DIRECTORY, ollama:MODEL, openai:MODEL or none (default: local)",
    )


def add_tokens_argument(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    parser.add_argument("--tokens", metavar="FILE", help="the token file (default: beside the store)")


def require_store(url: str) -> None:
    """Raise BadInput if nothing exists at the URL: most likely it is a typing mistake."""
    kind, path = store_kind(url)
    if kind == "directory":
        if not any((Path(path) / name).exists() for name in ("_meta.db", "projects", "archive")):
            raise BadInput(f"there are no workspaces in {path}")
    elif has_files(kind, path) and not Path(path).is_file():
        raise BadInput(f"there is no file {path}")


def print_json(value: Any) -> None:
    from msgspec import json

    print(json.format(json.encode(value), indent=2).decode())


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns; the last column is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def format_time(at: int) -> str:
    """Return a model time to the minute, in UTC; empty if it is unknown."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(" ", "minutes").removesuffix("+00:00") if at else ""


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
