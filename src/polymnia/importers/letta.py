"""Letta: an agent's memory folder. Each file is a block; those in `system/` are always loaded."""

from collections.abc import Iterator

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report, drop_fields
from polymnia.importers.prose import (
    LinkedNames,
    ProsePage,
    blocks,
    first_pages,
    page_entity,
    pages,
    without_code,
)
from polymnia.importers.source import Source

_SYSTEM = "system"


def recognizes(source: Source) -> bool:
    """Return True if there is a folder `system` with a file that has a description."""
    return any(_is_system(page) and page.text("description") for page in first_pages(source))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each block. Its name is its path, as agents know it."""
    names = LinkedNames()
    for page in pages(source):
        names.add(page.path.removesuffix(".md"), page.stem)
    for page in pages(source, report):
        name = page.path.removesuffix(".md")
        summary = page.text("description")
        page_blocks = list(blocks(page.body))
        if not page_blocks and not summary:
            report.drop_part(page.path, "without content")
            continue
        drop_fields(page.properties, ("description",), report, page.path)
        texts = [block.text for block in page_blocks]
        tags = [_SYSTEM] if _is_system(page) else []
        yield page_entity(page, name, "memory block", texts, report, tags=tags, summary=summary)
        yield from names.links(name, without_code(page_blocks))


def _is_system(page: ProsePage) -> bool:
    return _SYSTEM in page.path.split("/")[:-1]


IMPORTER = Importer("letta", "memory folder of a Letta agent", recognizes, read)
