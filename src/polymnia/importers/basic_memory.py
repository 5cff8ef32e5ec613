"""basic-memory: notes with `- [category] text #tag (context)` and `- relation [[Target]]`."""

import re
from collections import Counter
from collections.abc import Iterator

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report
from polymnia.importers.prose import (
    LinkedNames,
    ProseBlock,
    ProsePage,
    blocks,
    first_pages,
    page_entity,
    pages,
    property_texts,
    without_code,
)
from polymnia.importers.source import Source
from polymnia.model import Relation

# A type of several words is in quotes; without them the line is a sentence with a link.
_TYPE = r"""(?:"([^"\[\]]{1,200})"|'([^'\[\]]{1,200})'|([^\s\[\]"']{1,200}))?"""
_RELATION = re.compile(
    _TYPE
    + r"\s*\[\[(?P<target>[^\[\]|#^\n]{1,400})(?:[|#^][^\[\]\n]{0,400})?\]\]"
    + r"\s*(?:\((?P<context>.*)\))?"
)


def recognizes(source: Source) -> bool:
    """Return True if a page has a title and a permalink, which basic-memory gives to every note."""
    return any({"title", "permalink"} <= page.properties.keys() for page in first_pages(source))


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each note, with its relations. Lines keep category, tags and context."""
    default_relation = "relates_to"
    counts = Counter(_title(page) for page in pages(source))
    names = LinkedNames()
    for page in pages(source):
        names.add(_name(page, counts), _title(page), page.stem, page.text("permalink"), page.path)
    for page in pages(source, report):
        name = _name(page, counts)
        prose: list[ProseBlock] = []
        relations: list[re.Match[str]] = []
        for block in blocks(page.body):
            relation = _RELATION.fullmatch(block.text) if block.is_item else None
            if relation:
                relations.append(relation)
            else:
                prose.append(block)
        texts = [block.text for block in prose]
        texts += property_texts(page, "title", "permalink")
        kind = page.text("type") or "note"
        yield page_entity(page, name, kind, texts, report, tags=page.texts("tags"))
        for relation in relations:
            if relation["context"]:
                report.drop_field(page.path, "context of a relation")
            relation_type = relation[1] or relation[2] or relation[3] or default_relation
            yield Relation(name, names.resolve(relation["target"].strip()), relation_type.strip())
        yield from names.links(name, without_code(prose))


def _name(page: ProsePage, counts: Counter[str]) -> str:
    """Return the title of a note; with its place if others have the same title."""
    title = _title(page)
    return title if counts[title] == 1 else f"{title} ({page.text('permalink') or page.path})"


def _title(page: ProsePage) -> str:
    return page.text("title") or page.stem


IMPORTER = Importer("basic-memory", "folder of basic-memory", recognizes, read)
