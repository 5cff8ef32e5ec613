"""Verbs that copy a memory from one store to another."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from polymnia.engine.intake import Item, take_in
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, Entity, Graph, Note, Relation
from polymnia.stores.contract import Capabilities, Reader

T = TypeVar("T")
Progress = Callable[[int, int], None]
# Rows that are read at once.
_PAGE_SIZE = 2_000


def absorb(
    memory: Memory, graph: Graph, *, by: str, progress: Progress | None = None
) -> tuple[int, int]:
    """Add a graph to the memory, one transaction per batch. Return how many entities and relations were new.

    Known entities keep what they have and gain missing observations, so absorbing a graph twice changes nothing.
    """
    total = len(graph.entities) + len(graph.relations)
    items: Iterable[Item] = chain[Item](graph.entities, graph.relations)
    receipt = take_in(memory, items, by=by, progress=_towards(total, progress))
    return receipt.entities.new, receipt.relations.new


def count_notes(memory: Memory) -> int:
    """Return how many notes the vault has."""
    with memory.reading() as reader:
        return reader.notes.count(VAULT, ()) if memory.store.capabilities.notes else 0


def vault_notes(memory: Memory) -> list[Note]:
    """Return the vault's notes with their embeddings, oldest first; none if the store cannot hold notes."""
    with memory.reading() as reader:
        return (
            reader.notes.like(VAULT, key=None, tags=(), before=None)
            if memory.store.capabilities.notes
            else []
        )


def absorb_notes(
    memory: Memory, notes: Sequence[Note], *, by: str, progress: Progress | None = None
) -> tuple[int, int]:
    """Add notes to the vault, one transaction per batch. Return how many were new and how many replaced older ones.

    Of two notes with the same key the later one stays, so absorbing notes twice changes nothing. Raise NotSupported.
    """
    receipt = take_in(memory, notes, by=by, progress=_towards(len(notes), progress))
    return receipt.notes.new, receipt.notes.merged


class Content:
    """What is living in a store, read from one snapshot a part at a time, and how much of it was read."""

    def __init__(self, read: Reader, capabilities: Capabilities) -> None:
        self._read = read
        self._capabilities = capabilities
        self._counts = {"entities": 0, "relations": 0, "notes": 0}

    def entities(self) -> Iterator[Entity]:
        """Yield the entities in order of creation."""
        return self._count(
            "entities", _read_pages(lambda offset: self._read.page(None, offset, _PAGE_SIZE))
        )

    def relations(self) -> Iterator[Relation]:
        """Yield the relations in order of creation."""
        return self._count("relations", self._relations())

    def notes(self) -> Iterator[Note]:
        """Yield the vault's notes with their embeddings, oldest first; none if the store cannot hold notes."""
        return self._count("notes", self._notes())

    def counts(self) -> dict[str, int]:
        """Return how many of each kind were read."""
        return self._counts

    def _relations(self) -> Iterator[Relation]:
        if not self._capabilities.tables:
            yield from self._read.relations()
            return
        for _, source, target, kind, created_at, _, until in self._read.tables.read("relations"):
            if until is None:
                yield Relation(source, target, kind, created_at)

    def _notes(self) -> Iterator[Note]:
        if not self._capabilities.notes:
            return
        for each in _read_pages(lambda offset: self._read.notes.page(VAULT, offset, _PAGE_SIZE)):
            note = self._read.notes.find(VAULT, each.key)
            if note is not None:
                yield note

    def _count(self, kind: str, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self._counts[kind] += 1
            yield item


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of that size; the last one may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _read_pages(read: Callable[[int], list[T]]) -> Iterator[T]:
    """Yield the items of all pages until one is empty."""
    offset = 0
    while page := read(offset):
        yield from page
        offset += len(page)


def _towards(total: int, progress: Progress | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(done, total)
