"""What a store holds now, read part by part from one snapshot."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from polymnia.model import VAULT, Entity, Note, Relation
from polymnia.stores.contract import Capabilities, Reader

T = TypeVar("T")
# Rows that are read at once.
_PAGE_SIZE = 2_000


class Content:
    """The living rows of a store, and how many of each kind were read so far."""

    def __init__(self, read: Reader, capabilities: Capabilities) -> None:
        self._read = read
        self._capabilities = capabilities
        self._counts = {"entities": 0, "relations": 0, "notes": 0}

    def entities(self) -> Iterator[Entity]:
        """Yield the entities in order of creation."""
        pages = _read_pages(lambda offset: self._read.entities(offset=offset, limit=_PAGE_SIZE))
        return self._count("entities", pages)

    def relations(self) -> Iterator[Relation]:
        """Yield the relations in order of creation."""
        return self._count("relations", self._relations())

    def notes(self) -> Iterator[Note]:
        """Yield the vault's notes with their embeddings, oldest first; none without notes."""
        return self._count("notes", self._notes())

    def counts(self) -> dict[str, int]:
        """Return how many of each kind were read."""
        return self._counts

    def _relations(self) -> Iterator[Relation]:
        if not self._capabilities.tables:
            yield from self._read.relations()
            return
        # A table is read row by row: a large graph has more relations than fit in memory.
        for _, source, target, kind, created_at, _, until in self._read.read_rows("relations"):
            if until is None:
                yield Relation(source, target, kind, created_at)

    def _notes(self) -> Iterator[Note]:
        if not self._capabilities.notes:
            return
        notes = self._read.notes
        yield from _read_pages(lambda offset: notes.notes(VAULT, offset=offset, limit=_PAGE_SIZE))

    def _count(self, kind: str, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self._counts[kind] += 1
            yield item


def _read_pages(read: Callable[[int], list[T]]) -> Iterator[T]:
    """Yield the items of all pages until one is empty."""
    offset = 0
    while page := read(offset):
        yield from page
        offset += len(page)
