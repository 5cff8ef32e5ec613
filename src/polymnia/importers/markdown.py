"""Markdown folders that `polymnia export --format markdown` and `polymnia sync` write."""

from collections.abc import Iterator

from polymnia.engine.memory import Memory
from polymnia.engine.moving.intake import Item
from polymnia.engine.moving.reconcile import with_ordinals
from polymnia.folders.folder import has_marker, read_folder
from polymnia.folders.sync import SyncReport, read_base, sync_folder
from polymnia.importers.base import Importer, Report
from polymnia.importers.source import Source


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


def apply(source: Source, memory: Memory, *, by: str, dry_run: bool) -> SyncReport | None:
    """Bring the edits since the export into the memory, if the folder was exported from it."""
    if source.path.is_file() or read_base(memory, source.path) is None:
        return None
    return sync_folder(memory, source.path, by=by, dry_run=dry_run, write_files=False)


IMPORTER = Importer(
    "markdown",
    "Markdown folder of `polymnia export` or `polymnia sync`",
    recognizes,
    read,
    apply=apply,
)
