"""Looking into a store from the test's own process, past every server."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Graph
from polymnia.stores import open_store


@contextmanager
def opened(path: Path) -> Iterator[Memory]:
    """The memory at that path for the length of the block."""
    store = open_store(str(path))
    try:
        yield Memory(store)
    finally:
        store.close()


def create(memory: Memory, *names: str, observations: Iterable[str] = ("a fact",)) -> None:
    """Entities of these names, each with the same observations, in one change."""
    drafts = [EntityDraft(name, "thing", tuple(observations)) for name in names]
    entities.create(memory, drafts, by="a test")


def read(memory: Memory) -> Graph:
    """Everything the memory holds."""
    return entities.read_all(memory)


def names(memory: Memory) -> list[str]:
    """The names of all entities, oldest first."""
    return [entity.name for entity in read(memory).entities]


def names_at(path: Path) -> list[str]:
    """The names of all entities in the store at that path, opened afresh."""
    with opened(path) as memory:
        return names(memory)


def problems_at(path: Path) -> list[str]:
    """What is wrong with the store at that path, opened afresh."""
    with opened(path) as memory:
        return memory.store.check()
