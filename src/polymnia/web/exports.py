"""The files that the web interface offers to save a memory: the formats of `polymnia export`."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile

from msgspec import Struct

from polymnia.dialects.document import document_lines
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import Content
from polymnia.errors import BadInput
from polymnia.folders.sync import export_folder
from polymnia.stores.open import encode_json_lines

# A larger export is written to a temporary file.
_MAX_IN_MEMORY_BYTES = 8 << 20


class Export(Struct, frozen=True, kw_only=True):
    """One format: its key, title and purpose, the suffix and type of its file, and the function that writes it."""

    key: str
    title: str
    purpose: str
    ending: str
    content_type: str
    write: Callable[[Memory, IO[bytes]], None]


def _write_document(memory: Memory, file: IO[bytes]) -> None:
    store = memory.store
    with store.reading() as read:
        content = Content(read, store.capabilities)
        tables = read.tables if store.capabilities.tables else None
        file.writelines(
            document_lines(content.entities(), content.relations(), content.notes(), tables)
        )


def _write_json_lines(memory: Memory, file: IO[bytes]) -> None:
    file.writelines(encode_json_lines(entities.read_all(memory)))


def _write_archive(memory: Memory, file: IO[bytes]) -> None:
    """Write a zip archive with a Markdown file for each entity and note."""
    with (
        TemporaryDirectory(prefix="polymnia-export-") as scratch,
        ZipFile(file, "w", ZIP_DEFLATED) as archive,
    ):
        root = Path(scratch) / "memory"
        export_folder(memory, root)
        for path in sorted(root.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(root.parent))


EXPORTS = {
    each.key: each
    for each in (
        Export(
            key="json",
            title="JSON document",
            purpose="everything, to move to another Polymnia",
            ending="json",
            content_type="application/json",
            write=_write_document,
        ),
        Export(
            key="jsonl",
            title="JSON lines",
            purpose="entities and relations, as the reference server has them",
            ending="jsonl",
            content_type="application/jsonl",
            write=_write_json_lines,
        ),
        Export(
            key="markdown",
            title="Markdown",
            purpose="a zip archive with a file for each entity and note, for Obsidian and editors",
            ending="zip",
            content_type="application/zip",
            write=_write_archive,
        ),
    )
}


def export_file(memory: Memory, key: str) -> IO[bytes]:
    """Return a file with the memory in a format, at its beginning. Raise BadInput for an unknown format."""
    if key not in EXPORTS:
        raise BadInput(f"there is no format {key!r}: use {', '.join(EXPORTS)}")
    with ExitStack() as stack:
        file = stack.enter_context(SpooledTemporaryFile(_MAX_IN_MEMORY_BYTES))
        EXPORTS[key].write(memory, file)
        file.seek(0)
        stack.pop_all()  # the caller closes it
    return file
