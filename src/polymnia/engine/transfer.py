"""Verbs that copy a memory from one store to another."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from polymnia.engine.intake import Item, take_in
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, Graph, Note

T = TypeVar("T")
Progress = Callable[[int, int], None]


def absorb(memory: Memory, graph: Graph, *, by: str, progress: Progress | None = None) -> tuple[int, int]:
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
        return reader.notes.like(VAULT, key=None, tags=(), before=None) if memory.store.capabilities.notes else []


def absorb_notes(
    memory: Memory, notes: Sequence[Note], *, by: str, progress: Progress | None = None
) -> tuple[int, int]:
    """Add notes to the vault, one transaction per batch. Return how many were new and how many replaced older ones.

    Of two notes with the same key the later one stays, so absorbing notes twice changes nothing. Raise NotSupported.
    """
    receipt = take_in(memory, notes, by=by, progress=_towards(len(notes), progress))
    return receipt.notes.new, receipt.notes.merged


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of that size; the last one may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _towards(total: int, progress: Progress | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(done, total)
