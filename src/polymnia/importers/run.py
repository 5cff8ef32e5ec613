"""Run an import: with the whole history where the source has one and the store is empty, else merged."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from polymnia.engine import notes
from polymnia.engine.intake import IntakeReceipt, Item, Tally, take_in
from polymnia.engine.memory import Memory
from polymnia.engine.migrate import copy_tables, first_difference
from polymnia.errors import BadInput, NotSupported
from polymnia.importers.base import Importer, Report
from polymnia.importers.registry import find_importer
from polymnia.importers.source import Source
from polymnia.model import VAULT, Note
from polymnia.stores.contract import TableReader

_NOT_EMPTY = (
    "the store is not empty: import into a new one to keep history, deleted rows and perspectives"
)


class Reading(NamedTuple):
    """What an importer reads: its items, which are read when they are asked for, and its history if it has one."""

    importer: Importer
    items: Iterator[Item]
    history: TableReader | None


def open_source(source: Source, kind: str | None, report: Report) -> Reading:
    """Return what a source holds, by the importer of that kind or the one that recognizes it. Raise BadInput."""
    importer = find_importer(source, kind)
    for place, reason in source.skipped:
        report.skip(place, reason)
    history = importer.read_history(source, report) if importer.read_history else None
    items = importer.read(source, report)
    if history is not None:  # the items were checked with it, and may not be needed
        return Reading(importer, items, history)
    return Reading(importer, require_some(items, source.path.name, report), None)


def require_some(items: Iterator[Item], name: str, report: Report) -> Iterator[Item]:
    """Return the items. Raise BadInput if there is none because all were skipped."""
    first = next(items, None)
    if first is None and report.skipped:
        raise BadInput(f"{name}: nothing to import; {report.skipped[0].sentence()}")
    return items if first is None else chain((first,), items)


class NotesLeftOut:
    """The notes that a store cannot hold."""

    def __init__(self, memory: Memory) -> None:
        self.count = 0
        self.reason = ""
        try:
            notes.require(memory)
        except NotSupported as exc:
            self.reason = str(exc)

    def filter(self, items: Iterator[Item]) -> Iterator[Item]:
        """Return the items that the store can hold, and count the others."""
        return filter(self._is_kept, items) if self.reason else items

    def _is_kept(self, item: Item) -> bool:
        self.count += isinstance(item, Note)
        return not isinstance(item, Note)


def run_import(
    memory: Memory,
    items: Iterable[Item],
    report: Report,
    *,
    by: str,
    history: TableReader | None = None,
    dry_run: bool = False,
    replace_conflicts: bool = False,
    progress: Callable[[int], None] | None = None,
) -> IntakeReceipt:
    """Add the items to the memory or, if it is empty, all rows of their history. Report what could not be kept.

    Raise NotSupported for notes that the memory cannot hold, BadInput, StoreError.
    """
    if history is not None:
        obstacle = _obstacle(memory, history)
        if obstacle:
            report.skip("history", obstacle)
        elif not dry_run:
            return _restore(memory, history, progress)
    return take_in(
        memory,
        items,
        by=by,
        dry_run=dry_run,
        replace_conflicts=replace_conflicts,
        progress=progress,
    )


def _obstacle(memory: Memory, history: TableReader) -> str:
    """Return why the store cannot take the history; empty if it can."""
    store = memory.store
    if not store.capabilities.tables:
        return f"{store.url} cannot hold history, deleted rows, ids, times, tags and summaries"
    return _NOT_EMPTY if first_difference(history, store) else ""


def _restore(
    memory: Memory, history: TableReader, progress: Callable[[int], None] | None
) -> IntakeReceipt:
    """Copy the rows that the store does not have, and count what is living."""
    before = _count_rows(memory)
    copy_tables(history, memory.store, progress=progress and (lambda done, _: progress(done)))
    entities, relations, notes, observations, changes = [
        Tally(read=now, new=now - known)
        for now, known in zip(_count_rows(memory), before, strict=True)
    ]
    return IntakeReceipt(
        entities, relations, notes, observations=observations.new, restored=changes.new
    )


def _count_rows(memory: Memory) -> tuple[int, int, int, int, int]:
    """Return how many entities, relations, notes and observations are living, and how many changes there are."""
    with memory.reading() as read:
        counts, changes = read.counts(), read.tables.count("changes")
        return (
            counts.entities,
            counts.relations,
            read.notes.count(VAULT, ()),
            counts.observations,
            changes,
        )
