"""Run an import: with the whole history where the source has one and the store is empty, else merged."""

from collections.abc import Callable, Iterable

from polymnia.engine.intake import Item, Receipt, Tally, take_in
from polymnia.engine.memory import Memory
from polymnia.engine.migrate import copy_tables, first_difference
from polymnia.importers.base import Report
from polymnia.model import Entity, Relation
from polymnia.stores.contract import TableReader

_NOT_EMPTY = "the store is not empty: import into a new one to keep history, deleted rows and perspectives"


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
) -> Receipt:
    """Add the items to the memory or, if it is empty, all rows of their history. Report what could not be kept.

    Raise NotSupported for notes that the memory cannot hold, BadInput, StoreError.
    """
    if history is not None:
        obstacle = _obstacle(memory, history)
        if obstacle:
            report.skip("history", obstacle)
        elif not dry_run:
            return _restore(memory, items, history, progress)
    return take_in(memory, items, by=by, dry_run=dry_run, replace_conflicts=replace_conflicts, progress=progress)


def _obstacle(memory: Memory, history: TableReader) -> str:
    """Return why the store cannot take the history; empty if it can."""
    store = memory.store
    if not store.capabilities.tables:
        return f"{store.url} cannot hold history, deleted rows, ids, times, tags and summaries"
    return _NOT_EMPTY if first_difference(history, store) else ""


def _restore(
    memory: Memory, items: Iterable[Item], history: TableReader, progress: Callable[[int], None] | None
) -> Receipt:
    """Copy all rows, and count what is living."""
    copy = copy_tables(history, memory.store, progress=progress and (lambda done, _: progress(done)))
    receipt = Receipt(Tally(), Tally(), Tally(), changes=[], conflicts=[], restored=copy.rows["changes"])
    for item in items:
        tally = receipt.notes
        if isinstance(item, Entity):
            tally = receipt.entities
            receipt.observations += len(item.observations)
        elif isinstance(item, Relation):
            tally = receipt.relations
        tally.read += 1
        tally.new += 1
    return receipt
