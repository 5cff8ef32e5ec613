"""The fixture that the durability tests share: a path for each kind of store on disk."""

from pathlib import Path

import pytest


@pytest.fixture(params=["memory.db", "memory.jsonl", "memory.mcpmem"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a path where no store exists yet."""
    return tmp_path / str(request.param)
