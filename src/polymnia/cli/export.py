"""`polymnia export`: write a memory as JSON lines or as one JSON document."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from polymnia.app import configure_logging, opened
from polymnia.cli.common import add_store_arguments, add_workspace_argument, require_store
from polymnia.dialects.document import encode_document
from polymnia.disk.replace import replace_file
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import count_notes, vault_notes
from polymnia.settings import Settings
from polymnia.stores.open import encode_json_lines

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("export", help="write a memory to a file that other programs can read")
    parser.add_argument("--format", choices=("json", "jsonl"), default="jsonl", help="(default: %(default)s)")
    parser.add_argument("--output", "-o", metavar="FILE", help="write to FILE instead of standard output")
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
        replace_file(Path(options.output), pieces)
        vault = f", {len(notes)} notes" if notes else ""
        counts = f"{len(graph.entities)} entities, {len(graph.relations)} relations{vault}"
        print(f"{options.output}: {counts}", file=sys.stderr)
    if note_count and not as_document:
        print(f"skipped {note_count} vault notes: JSON lines cannot hold them; use --format json", file=sys.stderr)
    return 0


def _print(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
