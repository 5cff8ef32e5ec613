"""No call of a point kind reads more in a larger memory in PostgreSQL.

The named statements of each call run again under EXPLAIN (ANALYZE, BUFFERS). Pages and rows are
counted, so the result does not depend on the machine.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg.errors import UniqueViolation

from polymnia.dialects import DIALECTS
from polymnia.stores.postgres import connection as postgres
from polymnia.stores.postgres.transaction import WorkspaceConnection
from polymnia.stores.postgres.url import parse_url
from tests.growth.calls import CALLS, POSTGRES_DEBT, READS_EVERYTHING, UNDO_LAST
from tests.growth.counting import client_of, fill
from tests.postgres import new_database, shared_server
from tests.stores.plans import Call, explain, recording, rows_made

SMALL, LARGE = 200, 2_000
MAX_GROWTH = 1.5
# A deeper index, and the pages of a sample of the newest 500 passages, which searches look at in a
# memory of 2,000. Up to 250 rows are counted one by one before their number is stored.
MAX_ADDED_PAGES, MAX_ADDED_ROWS = 250, 300


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[str, str]]:
    """Yield the URLs of a small and a large workspace, in databases of their own."""
    with ExitStack() as databases:
        urls = []
        for size in (SMALL, LARGE):
            database = databases.enter_context(new_database(shared_server()))
            urls.append(f"{database}?workspace=default")
            fill(urls[-1], size)
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
        yield urls[0], urls[1]


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "project"])
def test_a_call_reads_the_same_in_a_large_memory(dialect: str, filled: tuple[str, str]) -> None:
    calls = [call for call in CALLS[dialect] if call[1] != UNDO_LAST]
    in_small, in_large = (count_reads(dialect, url, calls) for url in filled)
    grown: dict[str, list[str]] = {}
    for (tool, arguments), small, large in zip(calls, in_small, in_large, strict=True):
        more_pages = large[0] > MAX_GROWTH * small[0] + MAX_ADDED_PAGES
        more_rows = large[1] > MAX_GROWTH * small[1] + MAX_ADDED_ROWS
        if (more_pages or more_rows) and tool not in READS_EVERYTHING[dialect]:
            found = f"{arguments}: {small} -> {large} pages and rows"
            grown.setdefault(tool, []).append(found)
    new = {tool: calls for tool, calls in grown.items() if tool not in POSTGRES_DEBT[dialect]}
    assert new == {}
    assert POSTGRES_DEBT[dialect] - grown.keys() == set(), "no longer grows: remove it"


def count_reads(
    dialect: str, url: str, calls: list[tuple[str, dict[str, Any]]]
) -> list[tuple[int, int]]:
    """Return how many pages and rows the statements of each call read."""
    counts = []
    settings = parse_url(url).settings | {"search_path": "polymnia,public"}
    database = url.partition("?")[0]
    sent: list[Call] = []
    with (
        psycopg.connect(database, autocommit=True, cursor_factory=psycopg.RawCursor) as again,
        pytest.MonkeyPatch.context() as patch,
        client_of(dialect, url) as client,
    ):
        postgres.apply_settings(again, settings)
        patch.setattr(WorkspaceConnection, "send", recording(sent))
        for tool, arguments in calls:
            sent.clear()
            client.text(tool, arguments)
            pages = rows = 0
            for query, values in list(sent):
                try:
                    plan, touched = explain(again, query, values)
                except UniqueViolation:
                    continue  # what a call has written cannot be written again
                pages += touched
                rows += rows_made(plan)
            counts.append((pages, rows))
    return counts
