"""The oldest PostgreSQL that is supported behaves like the newest, on which all other tests run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import OLDEST_PROGRAMS, PROGRAMS_VARIABLE, RUN_VARIABLE, URL_VARIABLE

ROOT = Path(__file__).parent.parent.parent
# What depends on the version: every verb, isolation, plans, searches and vectors.
TESTS = (
    "tests/behaviour",
    "tests/stores/test_postgres_isolation.py",
    "tests/stores/test_postgres_plans.py",
    "tests/stores/test_postgres_search.py",
    "tests/stores/test_postgres_vectors.py",
)


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment in which tests start servers of the oldest version."""
    library = OLDEST_PROGRAMS.parent / "lib" / "vector.so"
    if not library.exists():
        pytest.skip(f"{library} is missing: .ci/install-postgres-15 installs it on Debian 12")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in (URL_VARIABLE, RUN_VARIABLE) and not name.startswith("PYTEST_")
    }
    return {**inherited, PROGRAMS_VARIABLE: str(OLDEST_PROGRAMS)}


def test_the_oldest_version_behaves_like_the_newest(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-k", "postgres", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr
