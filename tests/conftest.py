"""Fixtures everything shares: a memory on every kind of store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from polymnia.engine.memory import Memory
from polymnia.stores import open_store

# The same examples in every run: a change is judged by what it does. `--hypothesis-profile=explore` looks further.
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("same")

# What a store's URL is, given an empty directory.
STORES: dict[str, Callable[[Path], str]] = {
    "memory": lambda directory: "memory:",
    "jsonl": lambda directory: str(directory / "memory.jsonl"),
    "binlog": lambda directory: str(directory / "memory.mcpmem"),
    "sqlite": lambda directory: str(directory / "memory.db"),
    "sqlite in memory": lambda directory: ":memory:",
}
ON_DISK = ("jsonl", "binlog", "sqlite")


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """An empty memory, once on every kind of store."""
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


@pytest.fixture(params=ON_DISK)
def store_path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store would be, once for every kind that is kept on disk."""
    return STORES[request.param](tmp_path)
