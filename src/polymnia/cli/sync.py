"""`polymnia sync`: synchronize a folder of Markdown files with a memory."""

import argparse
from pathlib import Path

from polymnia.cli.common import (
    Subparsers,
    add_memory_arguments,
    print_json,
    print_lines,
    show_work,
    undo_command,
    workspace_label,
)
from polymnia.markdown.merge import MergeConflict
from polymnia.markdown.sync import SyncCounts, sync_folder
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.workspace_choice import open_workspace

ACTOR = "polymnia sync"


def add_sync(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "sync",
        help="synchronize a folder of Markdown files with a memory",
        description="Apply the edits in the folder to the memory, as one change, and the changes "
        "of the memory to the folder. If both changed the same thing, both versions are kept and "
        "reported.",
    )
    parser.add_argument(
        "folder", metavar="FOLDER", help="the folder; it is created if it does not exist"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would happen")
    add_memory_arguments(parser)


def run_sync(settings: Settings, options: argparse.Namespace) -> int:
    """Synchronize and say what happened. Raise BadInput, NotSupported, StoreError."""
    folder = Path(options.folder)
    # If neither the folder nor the store exists it is a typo.
    creates = folder.exists() and not options.dry_run
    with (
        open_workspace(settings, read_only=options.dry_run, creates=creates) as workspace,
        show_work("synchronizing"),
    ):
        report = sync_folder(workspace.memory, folder, by=ACTOR, dry_run=options.dry_run)
    undo = undo_command(settings, workspace, [report.change])
    if options.json:
        print_json(
            {
                "folder": options.folder,
                "store": hide_passwords(settings.store),
                "workspace": workspace.name,
                "dry_run": options.dry_run,
                "report": report,
                "undo": undo or None,
            }
        )
        return 0
    would = "would be " if options.dry_run else ""
    lines = [
        f"{workspace_label(settings, workspace)}: {would}{_describe_counts(report.memory)}",
        f"{options.folder}: {would}{_describe_counts(report.files, 'file')}",
    ]
    lines += [f"conflict: {_describe_conflict(conflict)}" for conflict in report.conflicts]
    lines += [f"kept the folder's version in {file}" for file in report.conflict_files]
    lines += [f"skipped {file}" for file in report.skipped[:20]]
    if report.others:
        lines.append(f"left alone: {count_noun(report.others, 'other Markdown file')}")
    if undo:
        lines.append(f"to take it back: {undo}")
    print_lines(lines)
    return 0


def _describe_counts(counts: SyncCounts, noun: str = "") -> str:
    parts = []
    for verb, number in (
        ("created", counts.created),
        ("changed", counts.changed),
        ("deleted", counts.deleted),
    ):
        if number:
            parts.append(f"{count_noun(number, noun) if noun else number} {verb}")
    return ", ".join(parts) or "unchanged"


def _describe_conflict(conflict: MergeConflict) -> str:
    """Return what both sides say, and what became of it."""
    what, name, memory, copy = conflict.what, conflict.name, conflict.memory, conflict.copy
    if what in ("deleted entity", "deleted note"):
        note = "the note " if what == "deleted note" else ""
        return f"{note}{name} was {memory} in the memory and {copy} in the folder; it stays"
    if what == "fact":
        mine, theirs = _describe_edit(memory), _describe_edit(copy)
        outcome = "it stays" if "deleted" in (mine, theirs) else "both stay"
        return f"a fact of {name} was {mine} in the memory and {theirs} in the folder; {outcome}"
    if what == "name" and name == copy:
        return (
            f"the folder has an entity {name} and another entity has that name; "
            "the file stays as it is"
        )
    subject = f"the note {name}" if what == "note" else f"the {what} of {name}"
    return f"{subject} is {memory!r} in the memory and {copy!r} in the folder; the memory's stays"


def _describe_edit(text: str) -> str:
    return text if text == "deleted" else f"changed to {text!r}"
