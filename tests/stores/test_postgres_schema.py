"""The schema in PostgreSQL.

What makes it distributable, how it is migrated, and that every query fits it.
"""

import ast
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.errors import StoreError, StoreTooNew
from polymnia.stores import open_catalogue, open_store, versioned
from polymnia.stores.contract import TABLES
from polymnia.stores.postgres import connection as postgres
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite import connection as sqlite
from tests.postgres import new_database, shared_server

# They belong to no workspace: on several nodes every node has a copy.
REFERENCE_TABLES = {"migrations", "catalogue", "tokens", "token_edits", "web_sessions"}
# What both stores read the graph with must have the same names.
VERSIONED = Path(versioned.__file__).parent
POSTGRES = Path(postgres.__file__).parent


# A workspace as the first schema stored it.
FIRST_ROWS = """
INSERT INTO migrations (number) VALUES (1);
INSERT INTO catalogue (uid, name, folded, description, status, created_at, updated_at)
VALUES ('u', 'old', 'old', '', 'active', 1, 1);
INSERT INTO workspaces (workspace_id, last_change, last_row, last_at, passages, words) VALUES (1, 1, 3, 5, 2, 5);
INSERT INTO templates (workspace_id, id, template) VALUES (1, 1, '{text}');
INSERT INTO perspectives (workspace_id, id, name, template, query) VALUES (1, 1, 'text', 1, '{query}');
INSERT INTO changes (workspace_id, id, at, actor, server, operation, last_row, key)
VALUES (1, 1, 5, 'me', 's', 'create', 3, gen_random_uuid());
INSERT INTO entities (workspace_id, id, uid, next_ordinal, updated_at, touched) VALUES (1, 1, 'e', 2, 5, 1);
INSERT INTO cards (workspace_id, id, entity, name, type, created_at, since) VALUES (1, 1, 1, 'Zoé', 'person', 5, 1);
INSERT INTO observations (workspace_id, id, entity, ordinal, text, created_at, since)
VALUES (1, 2, 1, 1, 'Visits the École', 5, 1);
INSERT INTO relations (workspace_id, id, source, target, type, created_at, since)
VALUES (1, 3, 'Zoé', 'Paris', 'lives_in', 5, 1);
INSERT INTO words (workspace_id, passage, length, terms)
VALUES (1, 1, 2, $$'person':3B 'zoe':1A$$), (1, 2, 3, $$'ecol':3C 'the':2C 'visit':1C$$);
"""


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


def test_few_entries_wait_to_be_sorted_into_an_inverted_index(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    rows = catalog.execute(
        "SELECT c.reloptions, count(*) FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam "
        "WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind = 'i' AND m.amname = 'gin' GROUP BY 1"
    ).fetchall()
    assert rows == [(["gin_pending_list_limit=64"], 35)]


def test_every_index_starts_with_the_workspace_or_a_key_that_holds_it(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    rows = catalog.execute(
        "SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text, "
        "pg_get_indexdef(i.indexrelid, 1, true), i.indisunique, m.amname "
        "FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam "
        "WHERE c.relnamespace = 'polymnia'::regnamespace"
    ).fetchall()
    assert len(rows) > 40
    stored_keys = catalog.execute(
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'polymnia' "
        "AND generation_expression ~ '^(row|name|relation)_key\\(workspace_id, '"
    ).fetchall()
    stored_keys.append(("best_passages", "term_key"))  # it refers to that of common_terms
    offenders = []
    for index, table, first, is_unique, method in rows:
        starts_well = first == "workspace_id" or (table, first) in stored_keys
        if table in REFERENCE_TABLES or starts_well:
            continue
        if is_unique or method != "hnsw":  # that of one workspace's vectors
            offenders.append(index)
    assert offenders == []


def test_a_new_database_can_be_distributed_by_workspace(
    catalog: psycopg.Connection[tuple[Any, ...]],
) -> None:
    assert obstacles(catalog) == []


def test_an_upgraded_database_can_be_distributed_by_workspace() -> None:
    with new_database(shared_server()) as url:
        old = [text for number, text in load_migrations(POSTGRES) if number < 15]
        with psycopg.connect(url, options="-c search_path=polymnia,public") as connection:
            if connection.info.server_version < 180_000:
                pytest.skip("the first schema needed PostgreSQL 18")
            for number, text in enumerate(old, start=1):
                connection.execute(text.encode())
                connection.execute("INSERT INTO migrations (number) VALUES (%s)", [number])
            assert obstacles(connection) != []
        open_store(url).close()
        with psycopg.connect(url, options="-c search_path=polymnia,public") as connection:
            assert obstacles(connection) == []


def obstacles(connection: psycopg.Connection[tuple[Any, ...]]) -> list[str]:
    """Return what keeps tables from being distributed by workspace, as Citus does that.

    That is a primary or unique key without `workspace_id`, a foreign key without it on both sides
    or between other tables, and a trigger.
    """
    in_schema = "= 'polymnia'::regnamespace"
    keys = connection.execute(
        "SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, NOT EXISTS ("
        "  SELECT FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
        "  AND a.attname = 'workspace_id') "
        "FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
        f"WHERE c.relnamespace {in_schema} AND i.indisunique"
    ).fetchall()
    found = [key for table, key, is_apart in keys if is_apart and table not in REFERENCE_TABLES]
    foreign = connection.execute(
        f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' AND connamespace {in_schema}"
    ).fetchall()
    by_workspace = re.compile(r"FOREIGN KEY \(workspace_id, \w+\) REFERENCES \w+\(workspace_id, ")
    found += [definition for (definition,) in foreign if not by_workspace.match(definition)]
    triggers = connection.execute(
        "SELECT t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid "
        f"WHERE NOT t.tgisinternal AND c.relnamespace {in_schema}"
    ).fetchall()
    return found + [name for (name,) in triggers]


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


def test_every_query_fits_the_schema(catalog: psycopg.Connection[tuple[Any, ...]]) -> None:
    offenders = {}
    for name, query in postgres.QUERIES.items():
        catalog.pgconn.prepare(b"", query)
        if catalog.pgconn.error_message:
            offenders[name] = catalog.pgconn.error_message
    assert offenders == {}


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
            numbers = connection.execute("SELECT number FROM polymnia.migrations").fetchall()
            names = connection.execute("SELECT name FROM polymnia.catalogue").fetchall()
    assert numbers == [(number,) for number, _ in load_migrations(POSTGRES)]
    assert names == [("w",)]


def test_a_database_of_the_first_schema_is_upgraded_with_its_rows() -> None:
    with new_database(shared_server()) as url:
        with psycopg.connect(url, options="-c search_path=polymnia,public") as connection:
            if connection.info.server_version < 180_000:
                pytest.skip("the first schema needed PostgreSQL 18")
            connection.execute(dict(load_migrations(POSTGRES))[1].encode())
            connection.execute(FIRST_ROWS)
        with closing(open_store(f"{url}?workspace=old")) as store:
            memory = Memory(store)
            graph = entities.open_named(memory, ["Zoé"])
            assert [item.text for item in graph.entities[0].facts] == ["Visits the École"]
            assert [item.target for item in graph.relations] == ["Paris"]
            assert [item.name for item in search.containing(memory, "ÉCOLE").entities] == ["Zoé"]
            assert store.check() == []


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


def _texts_in(folder: Path) -> set[str]:
    """Return the string literals in the modules of a folder."""
    texts = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    return texts
