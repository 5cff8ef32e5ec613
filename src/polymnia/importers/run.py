"""Run an import: restore the whole history into an empty store, else merge."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from polymnia.engine import notes
from polymnia.engine.facts.secrets import find_secret
from polymnia.engine.memory import Memory
from polymnia.engine.moving.intake import IntakeReceipt, Item, Tally, take_in
from polymnia.engine.moving.migrate import copy_tables, first_difference
from polymnia.errors import BadInput, NotSupported
from polymnia.importers.base import Importer, Report
from polymnia.importers.registry import find_importer
from polymnia.importers.source import Source
from polymnia.model import Note
from polymnia.stores.contract import TABLES, ReadRows

_NOT_EMPTY = (
    "the store is not empty: import into a new one to keep history, deleted rows and perspectives"
)


class OpenedSource(NamedTuple):
    """The importer of a source, its items, which are read lazily, and its history if it has one."""

    importer: Importer
    items: Iterator[Item]
    history: ReadRows | None


def open_source(source: Source, kind: str | None, report: Report) -> OpenedSource:
    """Open a source with the importer of that kind, or the one that recognizes it.

    Raise BadInput.
    """
    importer = find_importer(source, kind)
    for place, reason in source.skipped:
        report.drop_part(place, reason)
    history = importer.read_history(source, report) if importer.read_history else None
    items = importer.read(source, report)
    if history is not None:  # the items were checked with it, and may not be needed
        return OpenedSource(importer, items, history)
    return OpenedSource(importer, require_some(items, source.path.name, report), None)


def require_some(items: Iterator[Item], name: str, report: Report) -> Iterator[Item]:
    """Return the items. Raise BadInput if there are none because all were dropped."""
    first = next(items, None)
    if first is None and report.dropped_parts:
        raise BadInput(f"{name}: nothing to import; {report.dropped_parts[0].sentence()}")
    return items if first is None else chain((first,), items)


class UnsupportedNotes:
    """The notes that a store cannot hold."""

    def __init__(self, memory: Memory) -> None:
        self.count = 0
        self.reason = ""
        try:
            notes.require(memory)
        except NotSupported as exc:
            self.reason = str(exc)

    def filter(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the items that the store can hold, and count the others."""
        for item in items:
            if self.reason and isinstance(item, Note):
                self.count += 1
            else:
                yield item


def run_import(
    memory: Memory,
    items: Iterable[Item],
    report: Report,
    *,
    by: str,
    history: ReadRows | None = None,
    dry_run: bool = False,
    replace_conflicts: bool = False,
    progress: Callable[[int], None] | None = None,
) -> IntakeReceipt:
    """Add the items to the memory or, if it is empty, all rows of their history.

    Raise NotSupported for notes that the memory cannot hold, BadInput, StoreError.
    """
    if history is not None:
        obstacle = _obstacle(memory, history, report)
        if obstacle:
            report.drop_part("history", obstacle)
        elif not dry_run:
            return _restore(memory, history, progress)
    return take_in(
        memory,
        report.screen_items(items),
        by=by,
        dry_run=dry_run,
        replace_conflicts=replace_conflicts,
        progress=progress,
    )


def _obstacle(memory: Memory, history: ReadRows, report: Report) -> str:
    """Return why the store cannot take the history; empty if it can."""
    store = memory.store
    if not store.capabilities.tables:
        return f"{store.url} cannot hold history, deleted rows, ids, times, tags and summaries"
    if first_difference(history, store):
        return _NOT_EMPTY
    # Rows of a history are copied as they are, so none can be left out.
    kind = _find_secret(history) if report.secrets == "refuse" else ""
    return f"it seems to contain {kind}" if kind else ""


def _find_secret(history: ReadRows) -> str:
    """Return the kind of the first secret in any row; empty if there is none."""
    for table in TABLES:
        for row in history(table):
            for value in row:
                kind = find_secret(value) if isinstance(value, str) else ""
                if kind:
                    return kind
    return ""


def _restore(
    memory: Memory, history: ReadRows, progress: Callable[[int], None] | None
) -> IntakeReceipt:
    """Copy the rows that the store does not have, and count what is living."""
    before = _count_rows(memory)
    copy_tables(history, memory.store, progress=progress and (lambda count, _: progress(count)))
    entities, relations, notes, facts, changes = [
        Tally(read=now, new=now - known)
        for now, known in zip(_count_rows(memory), before, strict=True)
    ]
    return IntakeReceipt(entities, relations, notes, facts=facts.new, restored=changes.new)


def _count_rows(memory: Memory) -> tuple[int, int, int, int, int]:
    """Count the living entities, relations, notes and facts, and all changes."""
    with memory.reading() as read:
        counts, changes = read.counts(), sum(1 for _ in read.read_rows("changes"))
        return (
            counts.entities,
            counts.relations,
            counts.notes,
            counts.facts,
            changes,
        )
