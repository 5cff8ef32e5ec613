"""`polymnia import`: add the memories of another program, or of another store, to a store."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from polymnia.cli.common import (
    Progress,
    add_memory_arguments,
    place_label,
    print_json,
    print_lines,
    store_option,
    undo_command,
    workspace_option,
)
from polymnia.engine.transfer.intake import IntakeReceipt, Item, take_in
from polymnia.errors import BadInput
from polymnia.importers.base import Report
from polymnia.importers.registry import KINDS
from polymnia.importers.run import UnsupportedNotes, open_source, require_some
from polymnia.importers.source import Source
from polymnia.importers.stores import read_store
from polymnia.places import Place, open_place, require_store
from polymnia.search.terms import count_noun
from polymnia.search.times import iso_time
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.stores.open import store_kind

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

ACTOR = "polymnia import"
# An undo of more changes than this is written with their time and actor.
_MAX_UNDO_IDS = 10
_LINES_SUFFIX = ".jsonl"
_READ_BYTES = 1 << 20


def add_import(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "import", help="add the memories of another program or store to a store"
    )
    parser.add_argument("file", metavar="PATH", help="a file, a folder, a zip archive, or a store")
    parser.add_argument(
        "--from",
        dest="kind",
        choices=KINDS,
        metavar="KIND",
        help=f"its format, if detection fails: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--from-workspace",
        default="",
        metavar="NAME",
        help="the workspace of PATH, if it has several",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be imported")
    add_memory_arguments(parser)
    return parser


def run_import(settings: Settings, options: argparse.Namespace) -> int:
    """Add everything that the store does not have. Raise BadInput for an unknown format."""
    report = Report(settings.secrets)
    _require_another_file(options.file, settings.store)
    # Opening the store may create it, so read first.
    kind, items = _find(options, report)
    with open_place(settings, read_only=options.dry_run, creates=True) as place:
        left_out = UnsupportedNotes(place.memory)
        with _show_progress(options, report) as progress:
            receipt = take_in(
                place.memory,
                report.screen_items(left_out.filter(items)),
                by=ACTOR,
                dry_run=options.dry_run,
                progress=progress,
            )
        has_history = place.memory.store.capabilities.history
        undo = _undo_command(settings, place, receipt) if has_history else ""
    if left_out.count:
        print(f"skipped {left_out.count} vault notes: {left_out.reason}", file=sys.stderr)
    if options.json:
        shape = {"store": hide_passwords(settings.store), "workspace": place.name, "from": kind}
        print_json({**shape, **_shape(options, receipt, report), "undo": undo or None})
    else:
        print_lines(_lines(settings, place, options, receipt, report))
        if undo:
            print(f"to take it back: {undo}")
    return 0


def _require_another_file(file: str, store: str) -> None:
    """Raise BadInput if the input is the store's file, which may be opened as another format."""
    path = Path(store_kind(store)[1])
    if Path(file).is_file() and path.is_file() and path.samefile(file):
        raise BadInput(
            f"{file} is the store itself: name another file, or another store with --store"
        )


def _find(options: argparse.Namespace, report: Report) -> tuple[str, Iterator[Item]]:
    """Return the kind of the input and its items, which are read when they are asked for."""
    file = options.file
    if not Path(file).exists() and file.partition(":")[1]:
        require_store(file)
        items = read_store(file, report, options.from_workspace)
        return "store", require_some(items, file, report)
    importer, items = open_source(Source(file, options.from_workspace), options.kind, report)
    return importer.kind, items


@contextmanager
def _show_progress(options: argparse.Namespace, report: Report) -> Iterator[Callable[[int], None]]:
    """Draw the progress of the block. Make a KeyboardInterrupt say how much was imported."""
    total = _count_items(options.file)
    progress = Progress("items")

    def show(done: int) -> None:
        """Show the items, or how many of the files or chats are read if their number is known."""
        if not total and report.parts_in_all:
            progress(report.parts_read, report.parts_in_all, "parts")
        else:
            progress(done, total)

    try:
        yield show
    except KeyboardInterrupt:
        outcome = "nothing was changed"
        if not options.dry_run:
            outcome = (
                "what was imported so far stays in the store; "
                "run the same command again to continue"
            )
        raise KeyboardInterrupt(f"interrupted: {outcome}") from None
    finally:
        progress.end()


def _count_items(file: str) -> int:
    """Return how many items a file of JSON lines has; 0 for formats that tell only when read."""
    if not file.endswith(_LINES_SUFFIX) or not sys.stderr.isatty():
        return 0
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(_READ_BYTES), b"")) + 1


def _undo_command(settings: Settings, place: Place, receipt: IntakeReceipt) -> str:
    """Return the command that takes the import back; empty if it changed nothing."""
    if len(receipt.changes) <= _MAX_UNDO_IDS:
        return undo_command(settings, place, receipt.changes)
    where = store_option(settings) + workspace_option(place)
    return f"polymnia undo --since {iso_time(receipt.at)} --actor {quote(ACTOR)}{where}"


def _shape(options: argparse.Namespace, receipt: IntakeReceipt, report: Report) -> dict[str, Any]:
    relations, vault = receipt.relations, receipt.notes
    return {
        "file": hide_passwords(options.file),
        "dry_run": options.dry_run,
        "entities": receipt.entities,
        "facts": {"new": receipt.facts},
        "relations": {"read": relations.read, "new": relations.new},
        "notes": {"read": vault.read, "new": vault.new, "updated": vault.merged},
        "skipped": report.dropped_parts,
        "left_fields": report.dropped_fields,
        "secrets": report.secret_places,
        "conflicts": {"count": receipt.conflict_count, "first": receipt.conflicts},
        "new_ids": receipt.new_ids,
        "changes": receipt.changes,
    }


def _lines(
    settings: Settings,
    place: Place,
    options: argparse.Namespace,
    receipt: IntakeReceipt,
    report: Report,
) -> list[str]:
    verb = "would import" if options.dry_run else "imported"
    file, where = hide_passwords(options.file), place_label(settings, place)
    lines = [f"{file}: {verb} {_describe_counts(receipt)} into {where}"]
    if receipt.facts:
        lines.append(count_noun(receipt.facts, "new fact"))
    lines += [f"skipped {skipped.sentence()}" for skipped in report.dropped_parts]
    for field in report.dropped_fields:
        lines.append(f"left out the field {field.reason} of {field.examples}")
    if receipt.conflicts:
        lines.append(_describe_conflicts(receipt))
    if receipt.new_ids:
        renumbered = count_noun(receipt.new_ids, "entity")
        lines.append(f"{renumbered} got new ids: theirs belong to others here")
    lines += [f"look at {flagged.sentence('may contain ')}" for flagged in report.secret_places]
    return lines


def _describe_counts(receipt: IntakeReceipt) -> str:
    entities, relations, vault = receipt.entities, receipt.relations, receipt.notes
    merged = f", {entities.merged:,} merged" if entities.merged else ""
    counts = (
        f"{count_noun(entities.read, 'entity')} ({entities.new:,} new{merged}) and "
        f"{count_noun(relations.read, 'relation')} ({relations.new:,} new)"
    )
    if vault.read:
        notes = count_noun(vault.read, "note")
        counts += f" and {notes} ({vault.new:,} new, {vault.merged:,} updated)"
    return counts


def _describe_conflicts(receipt: IntakeReceipt) -> str:
    first = receipt.conflicts[0]
    sentence = f"kept what the store says differently: the {first.what} of {first.name}"
    if receipt.conflict_count > 1:
        sentence += f" and {receipt.conflict_count - 1:,} more"
    return sentence
