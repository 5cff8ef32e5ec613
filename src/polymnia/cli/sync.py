"""`polymnia sync`: synchronize a folder of Markdown files with a memory."""

import argparse
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    printable,
    require_store,
    show_elapsed_time,
)
from polymnia.engine.memory import Memory
from polymnia.engine.reconcile import MergeConflict
from polymnia.folders.sync import Counts, SyncReport, sync_folder
from polymnia.search.text import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

ACTOR = "polymnia sync"
_MAX_LISTED = 20


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "sync",
        help="synchronize a folder of Markdown files with a memory",
        description="Apply the edits in the folder to the memory, as one change, and the changes of the memory to the "
        "folder. If both changed the same thing, both versions are kept and reported.",
    )
    parser.add_argument(
        "folder", metavar="FOLDER", help="the folder; it is created if it does not exist"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would happen")
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Synchronize and say what happened. Raise BadInput, NotSupported, StoreError."""
    folder = Path(options.folder)
    if not folder.exists() or options.dry_run:
        require_store(settings.store)  # if neither exists it is a typo; a dry run creates nothing
    with (
        open_workspace_store(settings, read_only=options.dry_run) as store,
        show_elapsed_time("synchronizing"),
    ):
        report = sync_folder(Memory(store), folder, by=ACTOR, dry_run=options.dry_run)
    print_sync(settings, options, options.folder, report)
    return 0


def print_sync(
    settings: Settings, options: argparse.Namespace, folder: str, report: SyncReport
) -> None:
    """Say what happened on both sides, and how to take it back."""
    undo = ""
    if report.change:
        where = f" --workspace {quote(settings.workspace)}" if settings.workspace else ""
        undo = (
            f"polymnia undo {report.change} --store {quote(hide_passwords(settings.store))}{where}"
        )
    if options.json:
        print_json(
            {
                "folder": folder,
                "store": hide_passwords(settings.store),
                "dry_run": options.dry_run,
                "report": report,
                "undo": undo or None,
            }
        )
        return
    would = "would be " if options.dry_run else ""
    lines = [
        f"{hide_passwords(settings.store)}: {would}{_tell(report.memory)}",
        f"{folder}: {would}{_tell(report.files, 'file')}",
    ]
    lines += [f"conflict: {_tell_conflict(each)}" for each in report.conflicts]
    lines += [f"kept the folder's version in {each}" for each in report.conflict_files]
    lines += [f"skipped {each}" for each in report.skipped[:_MAX_LISTED]]
    lines += (
        [f"left alone: {count_noun(report.others, 'other Markdown file')}"] if report.others else []
    )
    lines += [f"to take it back: {undo}"] if undo else []
    for line in lines:
        print(printable(line), file=sys.stdout)


def _tell(counts: Counts, what: str = "") -> str:
    parts = [("created", counts.created), ("changed", counts.changed), ("deleted", counts.deleted)]
    told = [
        f"{count_noun(number, what) if what else number} {verb}" for verb, number in parts if number
    ]
    return ", ".join(told) or "unchanged"


def _tell_conflict(conflict: MergeConflict) -> str:
    """Return what both sides say, and what became of it."""
    what, name, memory, copy = conflict.what, conflict.name, conflict.memory, conflict.copy
    if what in ("deleted entity", "deleted note"):
        note = "the note " if what == "deleted note" else ""
        return f"{note}{name} was {memory} in the memory and {copy} in the folder; it stays"
    if what == "observation":
        mine, theirs = [
            each if each == "deleted" else f"changed to {each!r}" for each in (memory, copy)
        ]
        stays = "it stays" if "deleted" in (mine, theirs) else "both stay"
        return (
            f"an observation of {name} was {mine} in the memory and {theirs} in the folder; {stays}"
        )
    if what == "name" and name == copy:
        return f"the folder has an entity {name} and another entity has that name; the file stays as it is"
    subject = f"the note {name}" if what == "note" else f"the {what} of {name}"
    return f"{subject} is {memory!r} in the memory and {copy!r} in the folder; the memory's stays"
