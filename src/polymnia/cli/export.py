"""`polymnia export`: write a memory as JSON lines, a JSON document or a Markdown folder.

With --about, --by or --matching: what concerns a person, of every workspace.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import json, to_builtins

from polymnia.cli.common import (
    Subparsers,
    add_memory_arguments,
    escape_json,
    print_json,
    printable,
    show_work,
    workspace_label,
)
from polymnia.cli.person import add_person_arguments, open_all, person_query
from polymnia.disk.files import map_os_errors, replace_file
from polymnia.engine.facts.person import PersonQuery, find_person
from polymnia.engine.graph.entities import read_all
from polymnia.engine.notes import count_notes
from polymnia.engine.transfer.document import memory_lines
from polymnia.errors import BadInput
from polymnia.markdown.sync import export_folder
from polymnia.search.terms import count_noun
from polymnia.search.times import iso_time
from polymnia.settings import Settings
from polymnia.stores.open import encode_json_lines
from polymnia.workspace_choice import open_workspace


def add_export(commands: Subparsers) -> None:
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
    # A person who asks what is stored about them gets it from every workspace.
    add_person_arguments(parser)
    add_memory_arguments(parser)


def run_export(settings: Settings, options: argparse.Namespace) -> int:
    """Write the memory in the chosen format. Raise BadInput, StoreError."""
    # A folder that is not empty is refused later.
    if options.output is not None and options.format != "markdown":
        path = Path(options.output)
        if path.exists() and not path.is_file():
            raise BadInput(
                f"{path} is not a regular file: leave out -o and redirect standard output to it"
            )
        if path.exists() and not options.force:
            raise BadInput(
                f"{path} exists already: choose another name, or overwrite it with --force"
            )
    query = person_query(options)
    if query is not None:
        _write(options, _person_lines(settings, query))
        return 0
    clock = show_work("writing") if options.output is not None else nullcontext()
    with clock, open_workspace(settings, read_only=True) as workspace:
        memory = workspace.memory
        if options.format == "markdown":
            if options.output is None:
                raise BadInput("name the new folder with -o FOLDER")
            export_folder(memory, Path(options.output))
        elif options.format == "json":
            with memory.reading() as read:
                _write(options, memory_lines(memory.store, read))
        else:
            # The last line of a file has no line feed, as the reference server writes it.
            end = (b"\n",) if options.output is None else ()
            _write(options, chain(encode_json_lines(read_all(memory)), end))
        with memory.reading() as read:
            living = read.counts()
        counts = {"entities": living.entities, "relations": living.relations}
        counts["notes"] = count_notes(memory)
    if options.format == "jsonl" and counts["notes"]:
        skipped = count_noun(counts["notes"], "vault note")
        print(
            f"skipped {skipped}: JSON lines cannot hold notes; use --format json",
            file=sys.stderr,
        )
        counts["notes"] = 0
    if options.output is None and workspace.is_sole:
        return 0  # the user named the store, and there is nothing else to say
    target = options.output or "standard output"
    if options.json and options.output is not None:
        print_json({"file": target, "workspace": workspace.name, **counts})
        return 0
    # Say on standard error what was written: standard output may be the export itself.
    parts = [count_noun(counts["entities"], "entity"), count_noun(counts["relations"], "relation")]
    if counts["notes"]:
        parts.append(count_noun(counts["notes"], "note"))
    sentence = f"{target}: {', '.join(parts)} of {workspace_label(settings, workspace)}"
    print(printable(sentence), file=sys.stderr)
    return 0


def _person_lines(settings: Settings, query: PersonQuery) -> Iterator[bytes]:
    """Yield a line of JSON for each living thing that a person may ask for, of all workspaces."""
    with open_all(settings, read_only=True) as (workspaces, names):
        for name in names:
            data = find_person(workspaces.memory(name), query)
            items: list[dict[str, Any]] = []
            for fact in data.facts:
                if fact.is_living:
                    item = {"entity": fact.entity, "number": fact.ordinal, "text": fact.text}
                    items.append({"fact": item, "written_at": iso_time(fact.written_at)})
            items += [{"relation": to_builtins(relation)} for relation in data.unwanted.relations]
            items += [{"note": key} for key in data.notes]
            for item in items:
                yield json.encode({"workspace": name, **item}) + b"\n"


def _write(options: argparse.Namespace, pieces: Iterable[bytes]) -> None:
    """Write to standard output, or replace the file."""
    if options.output is None:
        is_terminal = sys.stdout.isatty()
        for piece in pieces:
            # A terminal would obey control characters; a pipe gets the bytes of the file.
            shown = escape_json(piece.decode()).encode() if is_terminal else piece
            sys.stdout.buffer.write(shown)
        sys.stdout.buffer.flush()
        return
    path = Path(options.output)
    with map_os_errors(str(path)):
        replace_file(path, pieces)
