"""What Polymnia itself writes: stores, JSON documents and Markdown folders."""

from collections.abc import Callable, Iterator
from pathlib import Path

from polymnia.engine.graph import entities
from polymnia.engine.notes import vault_notes
from polymnia.engine.transfer.document import (
    HEADER,
    VERSION,
    parse_entity,
    parse_note,
    parse_relation,
)
from polymnia.engine.transfer.intake import Item
from polymnia.engine.workspaces import existing_default, open_workspaces
from polymnia.errors import BadInput
from polymnia.importers.base import Importer, Report, decode_part
from polymnia.importers.source import Source, parts_of
from polymnia.markdown.folder import has_marker, read_folder
from polymnia.markdown.merge import with_ordinals
from polymnia.stores.open import holds_a_store


def recognizes_store(source: Source) -> bool:
    """Return True for a file or directory that one of our stores can read."""
    return holds_a_store(str(source.path))


def read_chosen_store(source: Source, report: Report) -> Iterator[Item]:
    """Yield the living entities, relations and vault notes."""
    yield from read_store(str(source.path), report, source.workspace)


def read_store(url: str, report: Report, workspace: str = "") -> Iterator[Item]:
    """Yield what a store holds, or one workspace of it.

    Raise BadInput if it has several, StoreError.
    """
    workspaces = open_workspaces(url, read_only=True)
    try:
        name = workspace or workspaces.sole or existing_default(workspaces, Path.cwd())
        if name is None:
            active = workspaces.find_all("active")
            names = ", ".join(workspace.name for workspace in active) or "none"
            raise BadInput(
                f"{url} holds several workspaces ({names}); choose one with --from-workspace"
            )
        memory = workspaces.memory(name)
        graph = entities.read_all(memory)
        yield from report.count_parts(graph.entities)
        yield from report.count_parts(graph.relations)
        yield from vault_notes(memory)
    finally:
        workspaces.close()


STORE = Importer(
    "store",
    "another store of Polymnia (.db, .mcpmem, a directory)",
    recognizes_store,
    read_chosen_store,
)


_PARSERS: dict[str, Callable[[bytes, str], Item]] = {
    "entities": parse_entity,
    "relations": parse_relation,
    "notes": parse_note,
}


def recognizes_document(source: Source) -> bool:
    """Return True for our header, or an object that says that it is ours."""
    if not source.is_file:
        return False
    name = source.names[0]
    if source.head(name).startswith(HEADER):
        return True
    outline = source.outline(name)
    if not isinstance(outline, dict) or "format" not in outline:
        return False
    return bool(decode_part(outline["format"]) == "polymnia")


def read_document(source: Source, report: Report) -> Iterator[Item]:
    """Yield what is in the document. Raise BadInput for a mistake anywhere in it."""
    outline = source.outline(source.names[0])
    if not isinstance(outline, dict):
        raise BadInput(f"{source.path}: not a valid export, or its end is missing")
    version = decode_part(outline["version"]) if "version" in outline else VERSION
    if version != VERSION:
        raise BadInput(
            f"{source.path}: a document of version {version!r}, "
            f"and this program reads version {VERSION}; "
            "upgrade it, or export the document again with this version"
        )
    if "history" in outline:
        report.drop_part("history", "it is not imported; `polymnia migrate` keeps it")
    parts = []
    for section, parse in _PARSERS.items():
        for number, part in enumerate(parts_of(outline[section]) if section in outline else ()):
            parts.append((parse, part, f"{section}[{number}]"))

    def items() -> Iterator[Item]:
        for parse, part, place in parts:
            try:
                yield parse(bytes(part), place)
            except BadInput as exc:
                raise BadInput(f"{source.path}: not a valid export: {exc}") from exc

    # Find the mistakes before anything is imported: a document is taken whole or not at all.
    for _ in items():
        pass
    yield from report.count_known(len(parts), items())


DOCUMENT = Importer(
    "document",
    "JSON document of `polymnia export --format json`",
    recognizes_document,
    read_document,
)


def recognizes_folder(source: Source) -> bool:
    """Return True if a Markdown file has our marker."""
    return any(name.endswith(".md") and has_marker(source.head(name)) for name in source.names)


def read_markdown(source: Source, report: Report) -> Iterator[Item]:
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


MARKDOWN = Importer(
    "markdown",
    "Markdown folder of `polymnia export` or `polymnia sync`",
    recognizes_folder,
    read_markdown,
)
