"""A server whose calls wait, for the tests of several modules."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def blocking_port(tmp_path: Path) -> Iterator[int]:
    """Yield the port of a server whose calls block until they are released."""
    store = str(tmp_path / "memory.db")
    command = [sys.executable, "-m", "tests.transports.blocking_server", store]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r":(\d+)/mcp", server.stderr.readline())
        assert found
        yield int(found[1])
        server.terminate()
