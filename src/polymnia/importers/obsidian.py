"""Obsidian: a vault, or any folder of Markdown files with links, tags and properties."""

from collections import Counter
from collections.abc import Iterator

from polymnia.engine.intake import Item
from polymnia.importers.base import Importer, Report
from polymnia.importers.prose import (
    LinkedNames,
    Page,
    blocks,
    entity_of,
    first_pages,
    inline_tags,
    link_targets,
    pages,
    property_texts,
    without_code,
)
from polymnia.importers.source import Source

_SETTINGS = ".obsidian"
# Properties that say how Obsidian shows a page.
_DISPLAY_PROPERTIES = ("cssclass", "cssclasses", "publish")


def recognizes(source: Source) -> bool:
    """Return True for a folder with Obsidian's settings, or with pages that have properties or links."""
    if source.is_file:
        return False
    return is_vault(source) or any(
        page.properties or link_targets(page.body) for page in first_pages(source)
    )


def is_vault(source: Source) -> bool:
    """Return True if Obsidian's settings are there."""
    if source.is_archive:
        return any(_SETTINGS in name.split("/") for name in source.names)
    return (source.path / _SETTINGS).is_dir()


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each page: paragraphs and list items are observations, links are relations."""
    counts = Counter([page.stem for page in pages(source)])
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page, counts), page.path)
    for page in pages(source):
        names.add(
            _name(page, counts), page.stem, page.text("title"), *page.texts("aliases", "alias")
        )
    for page in pages(source):
        name = _name(page, counts)
        found = list(blocks(page.body))
        texts = [*[each.text for each in found], *property_texts(page, *_DISPLAY_PROPERTIES)]
        prose = without_code(found)
        tags = [tag.removeprefix("#") for each in page.texts("tags", "tag") for tag in each.split()]
        yield entity_of(
            page,
            name,
            page.text("type") or "note",
            texts,
            report,
            tags=[*tags, *inline_tags(prose)],
        )
        properties = [
            each
            for value in page.properties.values()
            for each in ([value] if isinstance(value, str) else value)
        ]
        yield from names.links(name, "\n".join([*properties, prose]))


def _name(page: Page, counts: Counter[str]) -> str:
    """Return the file's name; with its folder if others have the same name."""
    return page.stem if counts[page.stem] == 1 else page.path.rsplit(".", 1)[0]


IMPORTER = Importer(
    "obsidian", "Obsidian vault, or another folder of linked Markdown files", recognizes, read
)
