"""Obsidian: a vault, or any folder of Markdown files with links, tags and properties."""

from collections import Counter
from collections.abc import Iterator

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report
from polymnia.importers.prose import (
    LinkedNames,
    ProsePage,
    blocks,
    first_pages,
    inline_tags,
    link_targets,
    page_entity,
    pages,
    property_texts,
    without_code,
)
from polymnia.importers.source import Source

_SETTINGS = ".obsidian"


def recognizes(source: Source) -> bool:
    """Return True for a folder with Obsidian's settings, or pages with properties or links."""
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
    """Yield an entity for each page: blocks are facts, links are relations."""
    # Properties that say how Obsidian shows a page.
    display_properties = ("cssclass", "cssclasses", "publish")
    counts = Counter(page.stem for page in pages(source))
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page, counts), page.path)
    for page in pages(source):
        names.add(
            _name(page, counts), page.stem, page.text("title"), *page.texts("aliases", "alias")
        )
    for page in pages(source, report):
        name = _name(page, counts)
        page_blocks = list(blocks(page.body))
        prose = without_code(page_blocks)
        texts = [block.text for block in page_blocks]
        texts += property_texts(page, *display_properties)
        tags = [tag.removeprefix("#") for text in page.texts("tags", "tag") for tag in text.split()]
        tags += inline_tags(prose)
        yield page_entity(page, name, page.text("type") or "note", texts, report, tags=tags)
        linking: list[str] = []
        for value in page.properties.values():
            linking += [value] if isinstance(value, str) else value
        yield from names.links(name, "\n".join([*linking, prose]))


def _name(page: ProsePage, counts: Counter[str]) -> str:
    """Return the file's name; with its folder if others have the same name."""
    return page.stem if counts[page.stem] == 1 else page.path.rsplit(".", 1)[0]


IMPORTER = Importer(
    "obsidian", "Obsidian vault, or another folder of linked Markdown files", recognizes, read
)
