"""Check what a server loads until it answers `initialize`: imports are most of its start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transports.running import initialize

# Each needs some of the 50 ms of a start, and only servers of other kinds use it.
HEAVY = {"asyncio", "json", "numpy", "psycopg", "random", "sqlite3", "ssl", "starlette", "uvicorn"}


@pytest.mark.parametrize(
    ("dialect", "most_modules"),
    [("reference", 90), ("native", 138)],
)
def test_a_stdio_server_loads_few_modules_to_start(
    dialect: str, most_modules: int, tmp_path: Path
) -> None:
    serve = ["-m", "polymnia", "serve", "--dialect", dialect, "--embedder", "none"]
    store = ["--store", str(tmp_path / "memory.db")]
    server = subprocess.run(
        [sys.executable, "-X", "importtime", *serve, *store],
        input=json.dumps(initialize()).encode() + b"\n",
        capture_output=True,
        check=True,
    )
    assert b'"serverInfo"' in server.stdout
    lines = server.stderr.decode().splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    ours = {name for name in loaded if name.startswith("polymnia")}
    assert HEAVY & loaded == set()
    assert len(ours) <= most_modules, sorted(ours)
