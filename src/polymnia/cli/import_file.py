"""`polymnia import`: add the memories of another program, or of another store, to a store."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from polymnia.cli.common import (
    Progress,
    Subparsers,
    add_memory_arguments,
    print_json,
    print_lines,
    store_option,
    undo_command,
    workspace_label,
    workspace_option,
)
from polymnia.engine.transfer.intake import IntakeReceipt
from polymnia.errors import BadInput
from polymnia.importers.base import Report
from polymnia.importers.own_files import read_store
from polymnia.importers.registry import KINDS, import_items, open_source, require_some
from polymnia.importers.source import Source
from polymnia.search.terms import count_noun
from polymnia.search.times import iso_time
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.stores.open import store_kind
from polymnia.workspace_choice import open_workspace, require_store

ACTOR = "polymnia import"


def add_import(commands: Subparsers) -> None:
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


def run_import(settings: Settings, options: argparse.Namespace) -> int:
    """Add everything that the store does not have. Raise BadInput for an unknown format."""
    imported = import_path(
        settings,
        options.file,
        kind=options.kind,
        from_workspace=options.from_workspace,
        dry_run=options.dry_run,
    )
    if options.json:
        print_json(imported.shape())
    else:
        imported.print()
    return 0


def import_path(
    settings: Settings,
    file: str,
    *,
    kind: str | None = None,
    from_workspace: str = "",
    dry_run: bool = False,
) -> "Imported":
    """Import a file, a folder or a store, and draw the progress. Raise BadInput, StoreError."""
    report = Report(settings.secrets)
    path = Path(store_kind(settings.store)[1])
    if Path(file).is_file() and path.is_file() and path.samefile(file):
        raise BadInput(
            f"{file} is the store itself: name another file, or another store with --store"
        )
    # Opening the store may create it, so read first.
    if not Path(file).exists() and file.partition(":")[1]:
        require_store(file)
        title, items = "store", require_some(read_store(file, report, from_workspace), file, report)
    else:
        importer, items = open_source(Source(file, from_workspace), kind, report)
        title = importer.kind
    with open_workspace(settings, read_only=dry_run, creates=True) as workspace:
        with _show_progress(file, report, dry_run=dry_run) as progress:
            receipt = import_items(
                workspace.memory, items, report, by=ACTOR, dry_run=dry_run, progress=progress
            )
        undo = ""
        if workspace.memory.store.capabilities.history:
            undo = undo_command(settings, workspace, receipt.changes)
            if len(receipt.changes) > 10:  # a command with thousands of ids cannot be pasted
                where = store_option(settings) + workspace_option(workspace)
                since = iso_time(receipt.at)
                undo = f"polymnia undo --since {since} --actor {quote(ACTOR)}{where}"
        return Imported(
            file=hide_passwords(file),
            kind=title,
            store=hide_passwords(settings.store),
            workspace=workspace.name,
            label=workspace_label(settings, workspace),
            receipt=receipt,
            report=report,
            dry_run=dry_run,
            undo=undo,
        )


class Imported(NamedTuple):
    """What was imported or, in a dry run, would be."""

    file: str
    kind: str
    store: str
    workspace: str
    label: str
    receipt: IntakeReceipt
    report: Report
    dry_run: bool
    undo: str

    def shape(self) -> dict[str, Any]:
        """Return it for programs."""
        receipt, report = self.receipt, self.report
        return {
            "store": self.store,
            "workspace": self.workspace,
            "from": self.kind,
            "file": self.file,
            "dry_run": self.dry_run,
            "entities": receipt.entities,
            "facts": {"new": receipt.facts},
            "relations": {"read": receipt.relations.read, "new": receipt.relations.new},
            "notes": {
                "read": receipt.notes.read,
                "new": receipt.notes.new,
                "updated": receipt.notes.merged,
            },
            "skipped": report.dropped_parts,
            "left_fields": report.dropped_fields,
            "secrets": report.secret_places,
            "conflicts": {"count": receipt.conflict_count, "first": receipt.conflicts},
            "new_ids": receipt.new_ids,
            "changes": receipt.changes,
            "undo": self.undo or None,
        }

    def print(self) -> None:
        """Print it for people."""
        receipt, report = self.receipt, self.report
        entities, relations, notes = receipt.entities, receipt.relations, receipt.notes
        merged = f", {entities.merged:,} merged" if entities.merged else ""
        counts = (
            f"{count_noun(entities.read, 'entity')} ({entities.new:,} new{merged}) and "
            f"{count_noun(relations.read, 'relation')} ({relations.new:,} new)"
        )
        if notes.read:
            changed = f"({notes.new:,} new, {notes.merged:,} updated)"
            counts += f" and {count_noun(notes.read, 'note')} {changed}"
        verb = "would import" if self.dry_run else "imported"
        lines = [f"{self.file}: {verb} {counts} into {self.label}"]
        if receipt.facts:
            lines.append(count_noun(receipt.facts, "new fact"))
        lines += [f"skipped {part.sentence()}" for part in report.dropped_parts]
        for field in report.dropped_fields:
            lines.append(f"left out the field {field.reason} of {field.examples}")
        if receipt.conflicts:
            first = receipt.conflicts[0]
            kept = f"kept what the store says differently: the {first.what} of {first.name}"
            more = receipt.conflict_count - 1
            lines.append(f"{kept} and {more:,} more" if more else kept)
        if receipt.new_ids:
            renumbered = count_noun(receipt.new_ids, "entity")
            lines.append(f"{renumbered} got new ids: theirs belong to others here")
        for secret in report.secret_places:
            lines.append(f"left out what may contain {secret.reason}: {secret.examples}")
        if self.undo:
            lines.append(f"to take it back: {self.undo}")
        print_lines(lines)


@contextmanager
def _show_progress(file: str, report: Report, *, dry_run: bool) -> Iterator[Callable[[int], None]]:
    """Draw the progress of the block. Make a KeyboardInterrupt say how much was imported."""
    total = 0  # other formats than JSON lines say how many items they have only when they are read
    if file.endswith(".jsonl") and sys.stderr.isatty():
        with Path(file).open("rb") as lines:
            total = sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b""))
    progress = Progress("items")

    def show(done: int) -> None:
        """Show the items, or how many of the files or chats are read if their number is known."""
        if not total and report.parts_in_all:
            progress(report.parts_read, report.parts_in_all, "parts")
        else:
            progress(done, max(done, total))

    try:
        yield show
    except KeyboardInterrupt:
        outcome = "nothing was changed"
        if not dry_run:
            outcome = (
                "what was imported so far stays in the store; "
                "run the same command again to continue"
            )
        raise KeyboardInterrupt(f"interrupted: {outcome}") from None
    finally:
        progress.end()
