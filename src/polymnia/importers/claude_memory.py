"""Claude's memory folders: a file for each memory, and `MEMORY.md`, which lists them."""

from collections.abc import Iterator

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report, drop_fields
from polymnia.importers.prose import (
    LinkedNames,
    ProsePage,
    blocks,
    page_entity,
    pages,
    without_code,
)
from polymnia.importers.source import Source

_INDEX = "MEMORY"


def recognizes(source: Source) -> bool:
    """Return True if the index is there."""
    index = f"{_INDEX}.md"
    return source.path.name == index if source.is_file else bool(source.find(index))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each memory. What the index says itself is an entity of its own."""
    known = ("name", "description", "type", "metadata.type", "tags")
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page), page.stem)
    for page in pages(source, report):
        name = _name(page)
        page_blocks = list(blocks(page.body))
        if page.stem == _INDEX:
            # Lines that link to the other files repeat them.
            page_blocks = [block for block in page_blocks if "](" not in block.text]
        if not page_blocks and not page.properties:
            reason = "lists other files only" if page.stem == _INDEX else "without content"
            report.drop_part(page.path, reason)
            continue
        drop_fields(page.properties, known, report, page.path)
        yield page_entity(
            page,
            name,
            page.text("metadata.type", "type") or "memory",
            [block.text for block in page_blocks],
            report,
            tags=page.texts("tags"),
            summary=page.text("description"),
        )
        yield from names.links(name, without_code(page_blocks))


def _name(page: ProsePage) -> str:
    return page.text("name") or ("Claude memory" if page.stem == _INDEX else page.stem)


IMPORTER = Importer("claude-memory", "memory folder of Claude", recognizes, read)
