"""Claude's memory folders: a file for each memory, and `MEMORY.md`, which lists them."""

from collections.abc import Iterator

from polymnia.engine.intake import Item
from polymnia.importers.base import Importer, Report, leave_fields
from polymnia.importers.prose import LinkedNames, Page, blocks, entity_of, pages, without_code
from polymnia.importers.source import Source

_INDEX = "MEMORY.md"
_KNOWN = ("name", "description", "type", "metadata.type", "tags")


def recognizes(source: Source) -> bool:
    """Return True if the index is there."""
    return source.path.name == _INDEX if source.is_file else bool(source.find(_INDEX))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each memory. What the index says itself is an entity of its own."""
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page), page.stem)
    for page in pages(source):
        name = _name(page)
        found = list(blocks(page.body))
        if page.stem == "MEMORY":
            found = [
                each for each in found if "](" not in each.text
            ]  # lines that lead to the other files repeat them
        texts = [each.text for each in found]
        if not texts and not page.properties:
            report.skip(
                page.path, "lists other files only" if page.stem == "MEMORY" else "without content"
            )
            continue
        leave_fields(page.properties, _KNOWN, report, page.path)
        kind = page.text("metadata.type", "type") or "memory"
        yield entity_of(
            page,
            name,
            kind,
            texts,
            report,
            tags=page.texts("tags"),
            summary=page.text("description"),
        )
        yield from names.links(name, without_code(found))


def _name(page: Page) -> str:
    return page.text("name") or ("Claude memory" if page.stem == "MEMORY" else page.stem)


IMPORTER = Importer("claude-memory", "memory folder of Claude", recognizes, read)
