"""basic-memory: a folder of notes with `- [category] text #tag (context)` and `- relation [[Target]]`."""

import re
from collections import Counter
from collections.abc import Iterator

from polymnia.engine.intake import Item
from polymnia.importers.base import Importer, Report
from polymnia.importers.prose import (
    Block,
    LinkedNames,
    Page,
    blocks,
    entity_of,
    first_pages,
    pages,
    property_texts,
    without_code,
)
from polymnia.importers.source import Source
from polymnia.model import Relation

# A type of several words is in quotes; without them the line is a sentence with a link.
_TYPE = r"""(?:"([^"\[\]]{1,200})"|'([^'\[\]]{1,200})'|([^\s\[\]"']{1,200}))?"""
_RELATION = re.compile(
    _TYPE + r"\s*\[\[([^\[\]|#^\n]{1,400})(?:[|#^][^\[\]\n]{0,400})?\]\]\s*(?:\((.*)\))?"
)
_DEFAULT_RELATION = "relates_to"


def recognizes(source: Source) -> bool:
    """Return True if a page has a title and a permalink, which basic-memory gives to every note."""
    return any({"title", "permalink"} <= page.properties.keys() for page in first_pages(source))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each note, with its relations. Lines keep their category, tags and context."""
    counts = Counter([_title(page) for page in pages(source)])
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page, counts), _title(page), page.stem, page.text("permalink"), page.path)
    for page in pages(source):
        name, found = _name(page, counts), list(blocks(page.body))
        relations = {each: relation for each in found if (relation := _relation(each))}
        prose = [each for each in found if each not in relations]
        texts = [*[each.text for each in prose], *property_texts(page, "title", "permalink")]
        yield entity_of(
            page, name, page.text("type") or "note", texts, report, tags=page.texts("tags")
        )
        for kind, target, context in relations.values():
            if context:
                report.leave(page.path, "context of a relation")
            yield Relation(name, names.resolve(target), kind or _DEFAULT_RELATION)
        yield from names.links(name, without_code(prose))


def _name(page: Page, counts: Counter[str]) -> str:
    """Return the title of a note; with its place if others have the same title."""
    title = _title(page)
    return title if counts[title] == 1 else f"{title} ({page.text('permalink') or page.path})"


def _title(page: Page) -> str:
    return page.text("title") or page.stem


def _relation(block: Block) -> tuple[str, str, str] | None:
    """Return the type, the target and the context of a relation; None for any other line."""
    found = _RELATION.fullmatch(block.text) if block.is_item else None
    return (
        ((found[1] or found[2] or found[3] or "").strip(), found[4].strip(), found[5] or "")
        if found
        else None
    )


IMPORTER = Importer("basic-memory", "folder of basic-memory", recognizes, read)
