"""A purge in PostgreSQL: work in proportion to the rows, and by the role that the docs describe."""

import logging
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from polymnia.stores.postgres.catalogue import migrate_schema
from polymnia.stores.postgres.connection import QUERIES

PASSWORD = "app"


def test_unused_terms_are_not_compared_one_by_one(postgres_database: str) -> None:
    open_store(postgres_database).close()
    with psycopg.connect(postgres_database) as connection:
        connection.execute("SET search_path = polymnia, public; SET work_mem = '64kB'")
        connection.execute(
            "INSERT INTO terms SELECT 1, 'term' || n FROM generate_series(1, 9999) AS n"
        )
        connection.execute("ANALYZE terms")
        text = QUERIES["delete_unused_terms"].decode().replace("$1", "1::bigint")
        plan = connection.execute(f"EXPLAIN {text}").fetchall()
    assert "SubPlan" not in str(plan)


def test_a_role_without_the_tables_purges_and_frees_the_space(
    postgres_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    role = f"app_{urlsplit(postgres_database).path[1:]}"
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, PASSWORD))
        migrate_schema(postgres_database, grant_to=role)
        is_17 = connection.info.server_version >= 170000
        login = urlsplit(postgres_database).netloc.partition("@")[0]
        store = open_store(postgres_database.replace(login, f"{role}:{PASSWORD}"))
        memory = Memory(store)
        entities.create(memory, [EntityDraft("Ann", "person", ("zebra",))], by="test")
        entities.delete(memory, ["Ann"], by="test")
        with caplog.at_level(logging.WARNING):
            assert store.purge(None).entities == 1
        assert ("may not VACUUM" in caplog.text) is not is_17
        rows = connection.execute("SELECT count(*) FROM polymnia.terms").fetchall()
        assert rows == [(0,)]
        store.close()
        connection.execute(sql.SQL("DROP OWNED BY {} CASCADE; DROP ROLE {}").format(name, name))
