"""`polymnia export`: write a memory as JSON lines, a JSON document or a Markdown folder."""

import argparse
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from polymnia.cli.common import (
    add_memory_arguments,
    escape_json,
    place_label,
    print_json,
    printable,
    show_elapsed_time,
)
from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import replace_file
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.notes import count_notes
from polymnia.engine.statistics import statistics
from polymnia.engine.transfer.content import Content
from polymnia.engine.transfer.document import document_lines
from polymnia.errors import BadInput
from polymnia.markdown.sync import export_folder
from polymnia.places import Place, open_place
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.stores.contract import Store
from polymnia.stores.open import encode_json_lines

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers


def add_export(commands: "Subparsers") -> argparse.ArgumentParser:
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
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    add_memory_arguments(parser)
    return parser


def run_export(settings: Settings, options: argparse.Namespace) -> int:
    """Write the memory in the chosen format. Raise BadInput, StoreError."""
    clock = show_elapsed_time("writing") if options.output is not None else nullcontext()
    with clock, open_place(settings, read_only=True) as place:
        if options.format == "markdown":
            counts = _export_folder(options, place.memory)
        elif options.format == "json":
            counts = _export_document(options, place.memory.store)
        else:
            counts = _export_lines(options, place.memory)
    _report(settings, place, options, counts)
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
        document = document_lines(content.entities(), content.relations(), content.notes())
        _write(options, document)
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
    """Write to standard output, or replace the file.

    Raise BadInput for a path that is not a file.
    """
    if options.output is None:
        is_terminal = sys.stdout.isatty()
        for piece in pieces:
            # A terminal would obey control characters; a pipe gets the bytes of the file.
            shown = escape_json(piece.decode()).encode() if is_terminal else piece
            sys.stdout.buffer.write(shown)
        sys.stdout.buffer.flush()
        return
    path = Path(options.output)
    if path.exists() and not path.is_file():
        raise BadInput(
            f"{path} is not a regular file: leave out -o and redirect standard output to it"
        )
    if path.exists() and not options.force:
        raise BadInput(f"{path} exists already: choose another name, or overwrite it with --force")
    with map_os_errors(str(path)):
        replace_file(path, pieces)


def _report(
    settings: Settings, place: Place, options: argparse.Namespace, counts: dict[str, int]
) -> None:
    """Say on standard error what was written: standard output may be the export itself."""
    if options.output is None and place.is_sole:
        return  # the user named the store, and there is nothing else to say
    target = options.output or "standard output"
    if options.json and options.output is not None:
        print_json({"file": target, "workspace": place.name, **counts})
        return
    parts = [count_noun(counts["entities"], "entity"), count_noun(counts["relations"], "relation")]
    if counts["notes"]:
        parts.append(count_noun(counts["notes"], "note"))
    sentence = f"{target}: {', '.join(parts)} of {place_label(settings, place)}"
    print(printable(sentence), file=sys.stderr)
