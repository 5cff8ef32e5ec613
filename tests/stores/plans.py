"""Which statements the PostgreSQL store sends, and what PostgreSQL does for each."""

from collections.abc import Iterator
from typing import Any

import psycopg

from polymnia.stores.postgres import connection as postgres
from polymnia.stores.postgres.transaction import WorkspaceConnection

# The name of a statement and its values.
Call = tuple[str, tuple[Any, ...]]


def recording(calls: list[Call]) -> Any:
    send = WorkspaceConnection.send

    def record(self: WorkspaceConnection, query: str, *values: object) -> None:
        if self.workspace is not None:
            calls.append((query, (self.workspace, *values)))
        send(self, query, *values)

    return record


def explain(
    connection: psycopg.Connection[Any], query: str, values: tuple[Any, ...]
) -> tuple[dict[str, Any], int]:
    """Run a statement, undo it, and return its plan and how many pages it touched."""
    connection.pgconn.prepare(query.encode(), postgres.QUERIES[query])
    literals = []
    for value in values:
        encoded = postgres.encode(value)
        literals.append("NULL" if encoded is None else _quote(encoded))
    with connection.transaction(force_rollback=True):
        ((document,),) = connection.execute(
            (
                "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
                f"EXECUTE {query}({', '.join(literals)})"
            ).encode()
        ).fetchall()
    plan = document[0]["Plan"]
    return plan, plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def _quote(encoded: str) -> str:
    text = encoded.replace("'", "''").replace("\\", "\\\\")
    return f"E'{text}'"


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        # A bounded sample, which is the same in a memory of any size.
        if "sample" not in (child.get("CTE Name"), child.get("Subplan Name", "")[4:]):
            yield from nodes_of(child)


def rows_made(plan: dict[str, Any]) -> int:
    """Return the most rows that a step of the plan passed on.

    Rows that a filter removed do not count.
    """
    return int(max(node["Actual Rows"] * node["Actual Loops"] for node in nodes_of(plan)))
