"""Letta: the memory folder of an agent, where each file is a memory block and those in `system/` are always loaded."""

from collections.abc import Iterator

from polymnia.engine.intake import Item
from polymnia.importers.base import Importer, Report, leave_fields
from polymnia.importers.prose import (
    LinkedNames,
    blocks,
    entity_of,
    first_pages,
    pages,
    without_code,
)
from polymnia.importers.source import Source

_SYSTEM = "system"


def recognizes(source: Source) -> bool:
    """Return True if there is a folder `system` with a file that has a description."""
    return any(
        _SYSTEM in page.path.split("/")[:-1] and page.text("description")
        for page in first_pages(source)
    )


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each block. Its name is its path, as agents know it."""
    names = LinkedNames()
    for page in pages(source):
        names.add(page.path.removesuffix(".md"), page.stem)
    for page in pages(source):
        name = page.path.removesuffix(".md")
        tags = [_SYSTEM] if _SYSTEM in page.path.split("/")[:-1] else []
        found = list(blocks(page.body))
        texts = [each.text for each in found]
        if not texts and not page.text("description"):
            report.skip(page.path, "without content")
            continue
        leave_fields(page.properties, ("description",), report, page.path)
        yield entity_of(
            page, name, "memory block", texts, report, tags=tags, summary=page.text("description")
        )
        yield from names.links(name, without_code(found))


IMPORTER = Importer("letta", "memory folder of a Letta agent", recognizes, read)
