"""`polymnia import`: add the memories of another program, or of another store, to a store."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from polymnia.app import configure_logging, opened
from polymnia.cli.common import (
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    print_json,
    printable,
    require_store,
)
from polymnia.dialects.times import iso_time
from polymnia.engine import notes
from polymnia.engine.intake import Item, Receipt
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NotSupported
from polymnia.importers.base import Places, Report
from polymnia.importers.registry import KINDS, find_importer
from polymnia.importers.run import run_import
from polymnia.importers.source import Source
from polymnia.importers.stores import read_store
from polymnia.model import Note
from polymnia.settings import Settings
from polymnia.stores import open_store
from polymnia.stores.contract import Store, TableReader
from polymnia.stores.open import has_files, store_kind

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

ACTOR = "polymnia import"
# An undo of more changes than this is written with their time and actor.
_MAX_UNDO_IDS = 10


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("import", help="add the memories of another program or store to a store")
    parser.add_argument("file", metavar="PATH", help="a file, a folder, a zip archive, or a store")
    parser.add_argument(
        "--from", dest="kind", choices=KINDS, metavar="KIND", help=f"its format, if detection fails: {', '.join(KINDS)}"
    )
    parser.add_argument("--from-workspace", default="", metavar="NAME", help="the workspace of PATH, if it has several")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be imported")
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Add everything that the store does not have. Raise BadInput for a format that is not known."""
    configure_logging(settings.log_level)
    report = Report(settings.secrets)
    kind, found, history = _find(options, report)
    items = _require_some(found, options.file, report)  # before the store is opened, which may create it
    with _open_target(settings, dry_run=options.dry_run) as store:
        memory = Memory(store)
        left_out = _NotesLeftOut(memory)
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
        if not options.dry_run:
            store.compact()
        undo = _undo_command(settings, receipt) if store.capabilities.history else ""
    if left_out.count:
        print(f"skipped {left_out.count} vault notes: {left_out.reason}", file=sys.stderr)
    if options.json:
        print_json(_shape(settings, options, kind, receipt, report, undo))
    else:
        _print(settings, options, receipt, report, undo)
    return 0


class _NotesLeftOut:
    """The notes that a store cannot hold."""

    def __init__(self, memory: Memory) -> None:
        self.count = 0
        self.reason = ""
        try:
            notes.require(memory)
        except NotSupported as exc:
            self.reason = str(exc)

    def filter(self, items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            if self.reason and isinstance(item, Note):
                self.count += 1
            else:
                yield item


def _find(options: argparse.Namespace, report: Report) -> tuple[str, Iterator[Item], TableReader | None]:
    """Return the kind of the input, its items, which are read when asked for, and its history if it has one."""
    file = options.file
    if not Path(file).exists() and file.partition(":")[1]:
        require_store(file)
        return "store", read_store(file, options.from_workspace), None
    source = Source(file, options.from_workspace)
    importer = find_importer(source, options.kind)
    for place, reason in source.skipped:
        report.skip(place, reason)
    history = importer.read_history(source, report) if importer.read_history else None
    return importer.kind, importer.read(source, report), history


def _require_some(items: Iterator[Item], file: str, report: Report) -> Iterator[Item]:
    """Return the items. Raise BadInput if there is none because all were skipped."""
    first = next(items, None)
    if first is None and report.skipped:
        raise BadInput(f"{file}: nothing to import; {_tell(report.skipped[0])}")
    return items if first is None else chain((first,), items)


def _open_target(settings: Settings, *, dry_run: bool) -> AbstractContextManager[Store]:
    """Open the store. A dry run creates nothing: if there is no store yet, it looks at an empty one in memory."""
    if not dry_run:
        return opened(settings.store, settings.workspace)
    try:
        require_store(settings.store)
    except BadInput:
        kind, path = store_kind(settings.store)
        has_notes = kind in ("sqlite", "directory") or not has_files(kind, path)
        return closing(open_store(":memory:" if has_notes else "memory:"))
    return opened(settings.store, settings.workspace, read_only=True)


def _undo_command(settings: Settings, receipt: Receipt) -> str:
    """Return the command that takes the import back; empty if it changed nothing."""
    if not receipt.changes:
        return ""
    where = f" --store {quote(settings.store)}"
    if settings.workspace:
        where += f" --workspace {quote(settings.workspace)}"
    if len(receipt.changes) <= _MAX_UNDO_IDS:
        return f"polymnia undo {' '.join(map(str, receipt.changes))}{where}"
    return f"polymnia undo --since {iso_time(receipt.at)} --actor {quote(ACTOR)}{where}"


def _shape(
    settings: Settings, options: argparse.Namespace, kind: str, receipt: Receipt, report: Report, undo: str
) -> dict[str, Any]:
    relations, vault = receipt.relations, receipt.notes
    return {
        "file": options.file,
        "from": kind,
        "store": settings.store,
        "dry_run": options.dry_run,
        "entities": receipt.entities,
        "observations": {"new": receipt.observations},
        "relations": {"read": relations.read, "new": relations.new},
        "notes": {"read": vault.read, "new": vault.new, "updated": vault.merged},
        "skipped": report.skipped,
        "left_fields": report.left_fields,
        "secrets": report.flagged,
        "new_ids": receipt.new_ids,
        "restored_changes": receipt.restored,
        "changes": receipt.changes,
        "undo": undo or None,
    }


def _print(settings: Settings, options: argparse.Namespace, receipt: Receipt, report: Report, undo: str) -> None:
    entities, relations, vault = receipt.entities, receipt.relations, receipt.notes
    verb = "would import" if options.dry_run else "imported"
    told = f" and {vault.read} notes ({vault.new} new, {vault.merged} updated)" if vault.read else ""
    merged = f", {entities.merged} merged" if entities.merged else ""
    lines = [
        f"{options.file}: {verb} {entities.read} entities ({entities.new} new{merged}) and {relations.read} "
        f"relations ({relations.new} new){told} into {settings.store}"
    ]
    lines += [f"restored the history of {receipt.restored} changes"] if receipt.restored else []
    lines += [f"skipped {_tell(each)}" for each in report.skipped]
    lines += [f"left out the field {each.reason} of {_shown(each)}" for each in report.left_fields]
    lines += [f"{receipt.new_ids} entities got new ids: theirs belong to others here"] if receipt.new_ids else []
    lines += [f"look at {_tell(each, 'may contain ')}" for each in report.flagged]
    lines += [f"to take it back: {undo}"] if undo else []
    for line in lines:
        print(printable(line))


def _tell(places: Places, what: str = "") -> str:
    """Return the places with their reason in one sentence."""
    return f"{_shown(places)}: {what}{places.reason}"


def _shown(places: Places) -> str:
    more = f" and {places.count - len(places.places)} more" if places.count > len(places.places) else ""
    return f"{', '.join(places.places)}{more}"


def _draw(done: int) -> None:
    """Show on standard error how many items are done, if it is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{done:,} items", end="", file=sys.stderr, flush=True)


def _end_drawing() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)
