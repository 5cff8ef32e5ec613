"""The files that the web interface offers to save a memory: the formats of `polymnia export`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO

from msgspec import Struct

from polymnia.dialects.document import document_lines
from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import Content
from polymnia.errors import BadInput
from polymnia.stores.open import encode_json_lines

# A larger export is written to a temporary file.
_MAX_IN_MEMORY_BYTES = 8 << 20


class Export(Struct, frozen=True, kw_only=True):
    """One format: its key, what it is called and good for, the ending and media type of its file, and its content."""

    key: str
    title: str
    purpose: str
    ending: str
    content_type: str
    pieces: Callable[[Memory], Iterator[bytes]]


def _document(memory: Memory) -> Iterator[bytes]:
    store = memory.store
    with store.reading() as read:
        content = Content(read, store.capabilities)
        tables = read.tables if store.capabilities.tables else None
        yield from document_lines(content.entities(), content.relations(), content.notes(), tables)


def _json_lines(memory: Memory) -> Iterator[bytes]:
    yield from encode_json_lines(entities.read_all(memory))


EXPORTS = {
    each.key: each
    for each in (
        Export(
            key="json",
            title="JSON document",
            purpose="everything, to move to another Polymnia",
            ending="json",
            content_type="application/json",
            pieces=_document,
        ),
        Export(
            key="jsonl",
            title="JSON lines",
            purpose="entities and relations, as the reference server has them",
            ending="jsonl",
            content_type="application/jsonl",
            pieces=_json_lines,
        ),
    )
}


def export_file(memory: Memory, key: str) -> IO[bytes]:
    """Return a file with the memory in a format, at its beginning. Raise BadInput for an unknown format."""
    if key not in EXPORTS:
        raise BadInput(f"there is no format {key!r}: use {', '.join(EXPORTS)}")
    with ExitStack() as stack:
        file = stack.enter_context(SpooledTemporaryFile(_MAX_IN_MEMORY_BYTES))
        for piece in EXPORTS[key].pieces(memory):
            file.write(piece)
        file.seek(0)
        stack.pop_all()  # the caller closes it
    return file
