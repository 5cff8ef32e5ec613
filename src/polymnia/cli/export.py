"""`polymnia export`: write a memory as JSON lines or as one JSON document."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from polymnia.app import configure_logging, opened
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_result,
    printable,
    require_store,
)
from polymnia.dialects.document import encode_document
from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import replace_file
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import count_notes, vault_notes
from polymnia.errors import BadInput
from polymnia.model import Graph, Note
from polymnia.settings import Settings
from polymnia.stores.open import encode_json_lines

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("export", help="write a memory to a file that other programs can read")
    parser.add_argument("--format", choices=("json", "jsonl"), default="jsonl", help="(default: %(default)s)")
    parser.add_argument("--output", "-o", metavar="FILE", help="write to FILE instead of standard output")
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Write the graph, and in a JSON document also the notes of the vault."""
    configure_logging(settings.log_level)
    require_store(settings.store)
    as_document = options.format == "json"
    with opened(settings.store, settings.workspace, read_only=True) as store:
        memory = Memory(store)
        graph, note_count = entities.read_all(memory), count_notes(memory)
        notes = vault_notes(memory) if as_document else []
    pieces = [encode_document(graph, notes)] if as_document else encode_json_lines(graph)
    if options.output is None:
        _print(pieces)
    else:
        _write(Path(options.output), pieces)
        _report(options, graph, notes)
    if note_count and not as_document:
        print(f"skipped {note_count} vault notes: JSON lines cannot hold them; use --format json", file=sys.stderr)
    return 0


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace the file. Raise BadInput for a path that is something else, such as a pipe or a device."""
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a regular file: leave out -o and redirect standard output to it")
    with map_os_errors(str(path)):
        replace_file(path, pieces)


def _report(options: argparse.Namespace, graph: Graph, notes: list[Note]) -> None:
    counts = {"entities": len(graph.entities), "relations": len(graph.relations), "notes": len(notes)}
    if options.json:
        print_result("", {"file": options.output, **counts}, as_json=True)
        return
    vault = f", {len(notes)} notes" if notes else ""
    print(
        f"{printable(options.output)}: {counts['entities']} entities, {counts['relations']} relations{vault}",
        file=sys.stderr,
    )


def _print(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
