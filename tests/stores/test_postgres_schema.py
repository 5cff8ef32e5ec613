"""The schema in PostgreSQL: what makes it distributable, how it is migrated, and that every query fits it."""

import ast
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from polymnia.errors import StoreError, StoreTooNew
from polymnia.stores import open_catalogue, open_store, versioned
from polymnia.stores.contract import TABLES
from polymnia.stores.postgres import connection as postgres
from polymnia.stores.sqlite import rows as sqlite
from tests.postgres import new_database, shared_server

# They belong to no workspace: on several nodes every node has a copy.
REFERENCE_TABLES = {"migrations", "catalogue", "tokens", "token_edits"}
# What both stores read the graph with must have the same names.
VERSIONED = Path(versioned.__file__).parent


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with new_database(shared_server()) as url:
        open_store(f"{url}?workspace=first").close()
        yield url


@pytest.fixture
def catalog(database: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(
        database, autocommit=True, options="-c search_path=polymnia,public"
    ) as connection:
        yield connection


def test_every_table_of_a_workspace_starts_with_its_id(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    rows = catalog.execute(
        "SELECT c.relname, (SELECT a.attname FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum = 1), "
        "EXISTS (SELECT 1 FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisunique) "
        "FROM pg_class AS c WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p')"
    ).fetchall()
    assert len(rows) > 20
    tables = {
        name: (first, has_key) for name, first, has_key in rows if name not in REFERENCE_TABLES
    }
    assert {name: each for name, each in tables.items() if each != ("workspace_id", True)} == {}


def test_every_key_and_index_starts_with_the_id_of_the_workspace(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    rows = catalog.execute(
        "SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text, "
        "pg_get_indexdef(i.indexrelid, 1, true), i.indisunique, m.amname "
        "FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam "
        "WHERE c.relnamespace = 'polymnia'::regnamespace"
    ).fetchall()
    assert len(rows) > 40
    offenders = [
        index
        for index, table, first, is_unique, method in rows
        if table not in REFERENCE_TABLES
        and first != "workspace_id"
        and (is_unique or not _has_own_rows(table, method))
    ]
    assert offenders == []


def test_every_foreign_key_is_composite_and_starts_with_the_id_of_the_workspace(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    rows = catalog.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contype = 'f' AND connamespace = 'polymnia'::regnamespace"
    ).fetchall()
    assert rows
    composite = re.compile(r"FOREIGN KEY \(workspace_id, \w+\) REFERENCES \w+\(workspace_id, \w+\)")
    assert [definition for (definition,) in rows if not composite.match(definition)] == []


def test_no_row_is_inserted_with_a_subquery_among_its_values() -> None:
    values = re.compile(rb"INSERT INTO[^;]*VALUES\s*\([^;]*\bSELECT\b", re.IGNORECASE)
    assert [name for name, text in postgres.QUERIES.items() if values.search(text)] == []


def test_every_query_about_a_workspace_names_it(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    """Only queries about the catalogue and the server itself do without."""
    tables = [
        name
        for (name,) in catalog.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'polymnia'::regnamespace"
        )
    ]
    own = set(tables) - REFERENCE_TABLES
    used = re.compile(rb"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)")
    offenders = {
        name
        for name, text in postgres.QUERIES.items()
        if own & {table.decode() for table in used.findall(text)} and b"$1" not in text
    }
    assert offenders == set()


@pytest.mark.parametrize("name", sorted(postgres.QUERIES))
def test_every_query_fits_the_schema(
    catalog: psycopg.Connection[tuple[Any, ...]], name: str
) -> None:
    catalog.pgconn.prepare(b"", postgres.QUERIES[name])
    assert catalog.pgconn.error_message == b""


def test_both_databases_have_the_queries_of_the_versioned_store() -> None:
    names = {
        name for name in _texts_in(VERSIONED) if name in sqlite.QUERIES or name in postgres.QUERIES
    }
    names |= {f"{verb}_{table}" for verb in ("read", "write") for table in TABLES}
    assert len(names) > 100
    assert names - sqlite.QUERIES.keys() == set()
    assert names - postgres.QUERIES.keys() == set()


def test_processes_that_open_a_new_database_at_once_migrate_it_once() -> None:
    with new_database(shared_server()) as url:
        with ThreadPoolExecutor(4) as pool:
            stores = list(
                pool.map(
                    lambda number: open_store(f"{url}?workspace=w&connections={number + 1}"),
                    range(4),
                )
            )
        for store in stores:
            store.close()
        with psycopg.connect(url) as connection:
            applied = connection.execute("SELECT number FROM polymnia.migrations").fetchall()
            assert [number for (number,) in applied] == list(range(1, len(applied) + 1))
            assert connection.execute("SELECT name FROM polymnia.catalogue").fetchall() == [("w",)]


def test_a_database_of_a_later_version_is_refused() -> None:
    with new_database(shared_server()) as url:
        open_store(url).close()
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO polymnia.migrations (number) VALUES (99)")
        with pytest.raises(StoreTooNew, match="upgrade polymnia"):
            open_store(url)


def test_reading_alone_creates_nothing() -> None:
    with new_database(shared_server()) as url:
        with pytest.raises(StoreError, match="there is no memory"):
            open_catalogue(url, read_only=True)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT to_regnamespace('polymnia')").fetchall() == [(None,)]


def _has_own_rows(table: str, method: str) -> bool:
    """Return True for the vectors of one workspace, and for the words of a partition of workspaces."""
    return method == "hnsw" or (table.startswith("words") and method == "gin")


def _texts_in(folder: Path) -> set[str]:
    """Return the string literals in the modules of a folder."""
    texts = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    return texts
