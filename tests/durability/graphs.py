"""Read and write a store in the test's own process, without a server."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Graph
from polymnia.stores import open_store


@contextmanager
def opened(path: Path) -> Iterator[Memory]:
    """Open the memory at that path for the duration of the block."""
    store = open_store(str(path))
    try:
        yield Memory(store)
    finally:
        store.close()


def create(memory: Memory, *names: str, facts: Iterable[str] = ("a fact",)) -> None:
    """Create entities with these names in one change, each with the same observations."""
    drafts = [EntityDraft(name, "thing", tuple(facts)) for name in names]
    entities.create(memory, drafts, by="a test")


def read(memory: Memory) -> Graph:
    """Return the whole graph."""
    return entities.read_all(memory)


def names(memory: Memory) -> list[str]:
    """Return the names of all entities, oldest first."""
    return [entity.name for entity in read(memory).entities]


def names_at(path: Path) -> list[str]:
    """Open the store at that path and return the names of its entities."""
    with opened(path) as memory:
        return names(memory)


def problems_at(path: Path) -> list[str]:
    """Open the store at that path and return what its check finds."""
    with opened(path) as memory:
        return memory.store.check()
