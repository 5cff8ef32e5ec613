"""Open what is to be imported, and import it without what a store cannot hold."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import IntakeReceipt, Item, take_in
from polymnia.errors import BadInput, NotSupported
from polymnia.importers.base import Importer, Report
from polymnia.importers.registry import find_importer
from polymnia.importers.source import Source
from polymnia.model import Note


def open_source(
    source: Source, kind: str | None, report: Report
) -> tuple[Importer, Iterator[Item]]:
    """Return the importer of a source and its items, which are read lazily.

    It is the importer of that kind, or the one that recognizes the source. Raise BadInput.
    """
    importer = find_importer(source, kind)
    for place, reason in source.skipped:
        report.drop_part(place, reason)
    items = require_some(importer.read(source, report), source.path.name, report)
    return importer, items


def require_some(items: Iterator[Item], name: str, report: Report) -> Iterator[Item]:
    """Return the items. Raise BadInput if there are none because all were dropped."""
    first = next(items, None)
    if first is None and report.dropped_parts:
        raise BadInput(f"{name}: nothing to import; {report.dropped_parts[0].sentence()}")
    return items if first is None else chain((first,), items)


def import_items(
    memory: Memory,
    items: Iterable[Item],
    report: Report,
    *,
    by: str,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> IntakeReceipt:
    """Add what the memory can hold, as `take_in` does. Report the rest, and what may be secret."""
    refusal = ""
    try:
        notes.require(memory)
    except NotSupported as exc:
        refusal = str(exc)

    def storable_items() -> Iterator[Item]:
        for item in items:
            if refusal and isinstance(item, Note):
                report.drop_part(f"the note {item.key}", refusal)
            else:
                yield item

    return take_in(
        memory,
        report.screen_items(storable_items()),
        by=by,
        dry_run=dry_run,
        progress=progress,
    )
