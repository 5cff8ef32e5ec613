"""The PostgreSQL server that the tests start: its extensions, its databases, and how it ends."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.processes import TIMEOUT_S

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("extension", ["vector", "pg_trgm", "btree_gin"])
def test_the_server_has_the_extensions_that_the_store_needs(
    postgres_database: str, extension: str
) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute(f"CREATE EXTENSION {extension}")
        row = connection.execute(
            "SELECT count(*) FROM pg_extension WHERE extname = %s", (extension,)
        ).fetchone()
    assert row == (1,)


def test_the_server_folds_case_as_unicode_does(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        row = connection.execute(
            "SELECT casefold('STRASSE É ẞ' COLLATE pg_unicode_fast)"
        ).fetchone()
    assert row == ("STRASSE É ẞ".casefold(),)


def test_a_server_ends_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with owner:
        assert owner.stdout is not None
        connection = psycopg.connect(owner.stdout.readline().strip(), autocommit=True)
        connection.execute("LISTEN anything")
        owner.kill()
        with pytest.raises(psycopg.OperationalError):
            list(connection.notifies(timeout=TIMEOUT_S))
            connection.execute("SELECT 1")
