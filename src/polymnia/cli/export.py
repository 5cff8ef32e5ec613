"""`polymnia export`: write a memory as JSON lines or as one JSON document."""

import argparse
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_result,
    printable,
    require_store,
    show_elapsed_time,
)
from polymnia.dialects.document import document_lines
from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import replace_file
from polymnia.engine import entities
from polymnia.engine.memory import Memory, statistics
from polymnia.engine.transfer import Content, count_notes
from polymnia.errors import BadInput
from polymnia.folders.sync import export_folder
from polymnia.search.text import count_noun
from polymnia.settings import Settings
from polymnia.stores.contract import Store
from polymnia.stores.open import encode_json_lines

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "export", help="write a memory to a file that other programs can read"
    )
    parser.add_argument(
        "--format",
        choices=("json", "jsonl", "markdown"),
        default="jsonl",
        help="(default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="write to FILE, or for markdown to a new folder, not to standard output",
    )
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Write the memory in the chosen format. Raise BadInput, StoreError."""
    require_store(settings.store)
    clock = show_elapsed_time("writing") if options.output is not None else nullcontext()
    with clock, open_workspace_store(settings, read_only=True) as store:
        if options.format == "markdown":
            counts = _export_folder(options, Memory(store))
        elif options.format == "json":
            counts = _export_document(options, store)
        else:
            counts = _export_lines(options, Memory(store))
    if options.output is not None:
        _report(options, counts)
    return 0


def _export_folder(options: argparse.Namespace, memory: Memory) -> dict[str, int]:
    if options.output is None:
        raise BadInput("name the new folder with -o FOLDER")
    export_folder(memory, Path(options.output))
    counts = statistics(memory).counts
    return {
        "entities": counts.entities,
        "relations": counts.relations,
        "notes": count_notes(memory),
    }


def _export_document(options: argparse.Namespace, store: Store) -> dict[str, int]:
    with store.reading() as read:
        content = Content(read, store.capabilities)
        tables = read.tables if store.capabilities.tables else None
        _write(
            options,
            document_lines(content.entities(), content.relations(), content.notes(), tables),
        )
        return content.counts()


def _export_lines(options: argparse.Namespace, memory: Memory) -> dict[str, int]:
    graph, notes = entities.read_all(memory), count_notes(memory)
    # The last line of a file has no line feed, as the reference server writes it.
    _write(options, chain(encode_json_lines(graph), (b"\n",) if options.output is None else ()))
    if notes:
        skipped = count_noun(notes, "vault note")
        print(
            f"skipped {skipped}: JSON lines cannot hold notes; use --format json", file=sys.stderr
        )
    return {"entities": len(graph.entities), "relations": len(graph.relations), "notes": 0}


def _write(options: argparse.Namespace, pieces: Iterable[bytes]) -> None:
    """Write to standard output, or replace the file. Raise BadInput for a path that is not a file."""
    if options.output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(options.output)
    if path.exists() and not path.is_file():
        raise BadInput(
            f"{path} is not a regular file: leave out -o and redirect standard output to it"
        )
    with map_os_errors(str(path)):
        replace_file(path, pieces)


def _report(options: argparse.Namespace, counts: dict[str, int]) -> None:
    if options.json:
        print_result("", {"file": options.output, **counts}, as_json=True)
        return
    told = [count_noun(counts["entities"], "entity"), count_noun(counts["relations"], "relation")]
    told += [count_noun(counts["notes"], "note")] if counts["notes"] else []
    print(f"{printable(options.output)}: {', '.join(told)}", file=sys.stderr)
