"""A SQLite store in a new file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.stores.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()
