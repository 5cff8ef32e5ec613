"""`polymnia import`: add the memories of another program, or of another store, to a store."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from polymnia.app import open_workspace_store
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    printable,
    require_store,
)
from polymnia.cli.sync import print_sync
from polymnia.dialects.times import iso_time
from polymnia.engine.intake import IntakeReceipt, Item
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.folders.sync import SyncReport
from polymnia.importers.base import Report
from polymnia.importers.registry import KINDS
from polymnia.importers.run import NotesLeftOut, open_source, require_some, run_import
from polymnia.importers.source import Source
from polymnia.importers.stores import read_store
from polymnia.search.text import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords, open_store
from polymnia.stores.contract import Store, TableReader
from polymnia.stores.open import has_files, store_kind

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

ACTOR = "polymnia import"
# An undo of more changes than this is written with their time and actor.
_MAX_UNDO_IDS = 10
# Python searches for reference cycles after this many new objects: about as many as a batch has, which form none.
_GC_THRESHOLD = 100_000


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
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
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Add everything that the store does not have. Raise BadInput for a format that is not known."""
    report = Report(settings.secrets)
    _require_another_file(options.file, settings.store)
    kind, items, history, apply = _find(
        options, report
    )  # opening the store may create it, so read first
    with _open_target(settings, dry_run=options.dry_run) as store:
        memory = Memory(store)
        edits = apply(memory) if apply else None
        if edits is not None:
            print_sync(settings, options, options.file, edits)
            return 0
        left_out = NotesLeftOut(memory)
        with _tell_interruption(dry_run=options.dry_run):
            receipt = run_import(
                memory,
                left_out.filter(items),
                report,
                by=ACTOR,
                history=history,
                dry_run=options.dry_run,
                progress=_draw,
            )
        _end_drawing()
        undo = _undo_command(settings, receipt) if store.capabilities.history else ""
    if left_out.count:
        print(f"skipped {left_out.count} vault notes: {left_out.reason}", file=sys.stderr)
    if options.json:
        print_json(_shape(settings, options, kind, receipt, report, undo))
    else:
        _print(settings, options, receipt, report, undo)
    return 0


class _Found(NamedTuple):
    """An input: its kind, its items, its history if it has one, and how edits of it are applied if it is a copy."""

    kind: str
    items: Iterator[Item]
    history: TableReader | None = None
    apply: Callable[[Memory], SyncReport | None] | None = None


def _require_another_file(file: str, store: str) -> None:
    """Raise BadInput if the input is the file of the store, which may be opened as another format."""
    path = Path(store_kind(store)[1])
    if Path(file).is_file() and path.is_file() and path.samefile(file):
        raise BadInput(
            f"{file} is the store itself: name another file, or another store with --store"
        )


def _find(options: argparse.Namespace, report: Report) -> "_Found":
    """Return what the input is. Its items are read when they are asked for."""
    file = options.file
    if not Path(file).exists() and file.partition(":")[1]:
        require_store(file)
        return _Found("store", require_some(read_store(file, options.from_workspace), file, report))
    source = Source(file, options.from_workspace)
    importer, items, history = open_source(source, options.kind, report)
    apply = importer.apply and partial(importer.apply, source, by=ACTOR, dry_run=options.dry_run)
    return _Found(importer.kind, items, history, apply)


def _open_target(settings: Settings, *, dry_run: bool) -> AbstractContextManager[Store]:
    """Open the store. A dry run creates nothing: if there is no store yet, it looks at an empty one in memory."""
    if not dry_run:
        return open_workspace_store(settings)
    try:
        require_store(settings.store)
    except BadInput:
        kind, path = store_kind(settings.store)
        has_notes = kind in ("sqlite", "directory") or not has_files(kind, path)
        return closing(open_store(":memory:" if has_notes else "memory:"))
    return open_workspace_store(settings, read_only=True)


@contextmanager
def _tell_interruption(*, dry_run: bool) -> Iterator[None]:
    """Make a KeyboardInterrupt say how much was imported."""
    try:
        yield
    except KeyboardInterrupt:
        _end_drawing()
        kept = "what was imported so far stays in the store; run the same command again to continue"
        raise KeyboardInterrupt(
            f"interrupted: {'nothing was changed' if dry_run else kept}"
        ) from None


def _undo_command(settings: Settings, receipt: IntakeReceipt) -> str:
    """Return the command that takes the import back; empty if it changed nothing."""
    if not receipt.changes:
        return ""
    where = f" --store {quote(hide_passwords(settings.store))}"
    if settings.workspace:
        where += f" --workspace {quote(settings.workspace)}"
    if len(receipt.changes) <= _MAX_UNDO_IDS:
        return f"polymnia undo {' '.join(map(str, receipt.changes))}{where}"
    return f"polymnia undo --since {iso_time(receipt.at)} --actor {quote(ACTOR)}{where}"


def _shape(
    settings: Settings,
    options: argparse.Namespace,
    kind: str,
    receipt: IntakeReceipt,
    report: Report,
    undo: str,
) -> dict[str, Any]:
    relations, vault = receipt.relations, receipt.notes
    return {
        "file": hide_passwords(options.file),
        "from": kind,
        "store": hide_passwords(settings.store),
        "dry_run": options.dry_run,
        "entities": receipt.entities,
        "observations": {"new": receipt.observations},
        "relations": {"read": relations.read, "new": relations.new},
        "notes": {"read": vault.read, "new": vault.new, "updated": vault.merged},
        "skipped": report.skipped,
        "left_fields": report.left_fields,
        "secrets": report.flagged,
        "conflicts": {"count": receipt.conflict_count, "first": receipt.conflicts},
        "new_ids": receipt.new_ids,
        "restored_changes": receipt.restored,
        "changes": receipt.changes,
        "undo": undo or None,
    }


def _print(
    settings: Settings,
    options: argparse.Namespace,
    receipt: IntakeReceipt,
    report: Report,
    undo: str,
) -> None:
    entities, relations, vault = receipt.entities, receipt.relations, receipt.notes
    verb = "would import" if options.dry_run else "imported"
    told = (
        f" and {count_noun(vault.read, 'note')} ({vault.new} new, {vault.merged} updated)"
        if vault.read
        else ""
    )
    merged = f", {entities.merged} merged" if entities.merged else ""
    file, store = hide_passwords(options.file), hide_passwords(settings.store)
    lines = [
        f"{file}: {verb} {count_noun(entities.read, 'entity')} ({entities.new} new{merged}) and "
        f"{count_noun(relations.read, 'relation')} ({relations.new} new){told} into {store}"
    ]
    lines += [count_noun(receipt.observations, "new fact")] if receipt.observations else []
    lines += (
        [f"restored the history of {count_noun(receipt.restored, 'change')}"]
        if receipt.restored
        else []
    )
    lines += [f"skipped {each.sentence()}" for each in report.skipped]
    lines += [f"left out the field {each.reason} of {each.examples}" for each in report.left_fields]
    lines += [_tell_conflicts(receipt)] if receipt.conflicts else []
    if receipt.new_ids:
        lines.append(
            f"{count_noun(receipt.new_ids, 'entity')} got new ids: theirs belong to others here"
        )
    lines += [f"look at {each.sentence('may contain ')}" for each in report.flagged]
    lines += [f"to take it back: {undo}"] if undo else []
    for line in lines:
        print(printable(line))


def _tell_conflicts(receipt: IntakeReceipt) -> str:
    first = receipt.conflicts[0]
    more = f" and {receipt.conflict_count - 1} more" if receipt.conflict_count > 1 else ""
    return f"kept what the store says differently: the {first.what} of {first.name}{more}"


def _draw(done: int) -> None:
    """Show on standard error how many items are done, if it is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{done:,} items", end="", file=sys.stderr, flush=True)


def _end_drawing() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)
