"""Markdown folders that `polymnia export --format markdown` and `polymnia sync` write."""

from collections.abc import Iterator

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report
from polymnia.importers.source import Source
from polymnia.markdown.folder import has_marker, read_folder
from polymnia.markdown.merge import with_ordinals


def recognizes(source: Source) -> bool:
    """Return True if a Markdown file has our marker."""
    return any(name.endswith(".md") and has_marker(source.head(name)) for name in source.names)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield what the files say."""
    contents = read_folder(source)
    for path in contents.others:
        report.drop_part(path, "not a file of ours: it has no `polymnia` property")
    for path, properties in contents.other_properties.items():
        for name in properties:
            report.drop_field(path, name)
    yield from map(with_ordinals, contents.entities.values())
    yield from contents.relations
    yield from contents.notes.values()


IMPORTER = Importer(
    "markdown",
    "Markdown folder of `polymnia export` or `polymnia sync`",
    recognizes,
    read,
)
