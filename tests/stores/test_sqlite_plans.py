"""Plans in SQLite: they depend on the statement, never on the values that are bound to it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from apsw.ext import query_info

from polymnia.stores import open_store
from polymnia.stores.sqlite.connection import QUERIES, connect

# What statements are given: a text, an array of texts, an array of ids, a number, nothing.
VALUES = ("alpha", '["alpha", "beta"]', "[1, 2]", 7, None)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    path = tmp_path / "memory.db"
    open_store(str(path)).close()
    with closing(connect(str(path))) as connection:
        yield connection


def test_a_statement_is_not_compiled_again_for_another_value(connection: apsw.Connection) -> None:
    questions: list[object] = []

    def authorize(*question: object) -> int:
        """Allow everything. SQLite asks while it compiles a statement."""
        questions.append(question)
        return apsw.SQLITE_OK

    connection.authorizer = authorize
    connection.execute(QUERIES["entity_named"], ("alpha",)).fetchall()
    asked = len(questions)
    for name in ("beta", "gamma"):
        connection.execute(QUERIES["entity_named"], (name,)).fetchall()
    assert asked > 0
    assert len(questions) == asked


def test_plans_do_not_depend_on_what_sqlite_may_know_of_the_values(
    connection: apsw.Connection,
) -> None:
    differing = []
    explained = 0
    for name, query in QUERIES.items():
        for value in VALUES:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            plan = explain(connection, query, value)
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 0)
            if plan != explain(connection, query, value):
                differing.append((name, value))
            explained += plan is not None
    assert differing == []
    assert explained > 4 * len(QUERIES)


def explain(connection: apsw.Connection, query: str, value: str | int | None) -> list[str] | None:
    """Return the steps of a query's plan; None if the query needs tables of another file."""
    try:
        values = (value,) * query_info(connection, query).bindings_count
        statement = f"EXPLAIN QUERY PLAN {query}"
        steps = connection.execute(statement, values, can_cache=False)
        return [detail for _, _, _, detail in steps]
    except apsw.SQLError:
        return None
