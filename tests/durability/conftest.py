"""What the durability tests share: a path for each kind of store that keeps its data on disk."""

from pathlib import Path

import pytest


@pytest.fixture(params=["memory.db", "memory.jsonl", "memory.mcpmem"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where a store will be; nothing is there yet."""
    return tmp_path / str(request.param)
