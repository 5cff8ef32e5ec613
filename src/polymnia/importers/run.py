"""Open what is to be imported, and leave out what a store cannot hold."""

from collections.abc import Iterator
from itertools import chain

from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import Item
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
