"""Plans in PostgreSQL: no statement may depend on what the planner knows of the tables.

A memory is used with every kind of verb, and the statements are recorded. Each one then runs on a
copy of the database without statistics, with statistics from when all workspaces were tiny, and
with good ones. Pages are counted, not seconds.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from polymnia.engine import notes
from polymnia.engine.facts.merge import merge
from polymnia.engine.graph import entities, facts, relations, traverse
from polymnia.engine.history import changes, trash, undo
from polymnia.engine.memory import Memory
from polymnia.engine.recall import passages, search
from polymnia.model import VAULT, EntityDraft, FactAddition, Note, NoteQuery, Relation, Within
from polymnia.stores import open_store
from polymnia.stores.contract import MAX_CONVERSATION_STEPS, TABLES
from polymnia.stores.postgres import connection as postgres
from polymnia.stores.postgres.store import PostgresStore
from polymnia.stores.postgres.transaction import WorkspaceConnection
from polymnia.stores.postgres.url import parse_url
from tests.postgres import new_database, shared_server
from tests.stores.plans import Call, explain, nodes_of, recording, rows_made

ME = "test"
TINY_WORKSPACES = 40
ENTITIES = 400
# Pages that a statement may read, and how many more for each row that it is given, returns or
# changes.
FIXED_PAGES = 120
PAGES_PER_ROW = 25
# Rows that a statement may read and drop, and how many more for each row that it is given or
# returns.
FIXED_ROWS = 50
ROWS_PER_ROW = 4
# What a function reads is not in the plan: more than 1,000 passages have the common word.
FUNCTION_PAGES = 4_000
# Rows of these belong to no workspace, or there is one per workspace.
SMALL_TABLES = {"catalogue", "migrations", "workspaces", "followers", "models", "templates"}
RANKED = {"best_names", "match_words", "best_words", "best_words_within", "nearest_vectors"}
PLAIN_INSERTS = {
    "insert_entities",
    "insert_cards",
    "insert_observations",
    "insert_relations",
    "insert_notes",
    "insert_words",
    "insert_note_tags",
    "record_change",
}
STATES = {
    "stale": [],
    "missing": [
        "DELETE FROM pg_statistic",
        "UPDATE pg_class SET reltuples = -1, relpages = 0 "
        "WHERE relnamespace = 'polymnia'::regnamespace AND relkind IN ('r', 'p')",
    ],
    "good": ["ANALYZE"],
}


@pytest.fixture(scope="module")
def used() -> Iterator[tuple[str, list[Call]]]:
    """Yield a database with a large workspace among tiny ones, and the statements that were sent to
    it.
    """
    with new_database(shared_server()) as url:
        for number in range(TINY_WORKSPACES):
            with closing(open_store(f"{url}?workspace=tiny-{number}")) as store:
                entities.create(Memory(store), [EntityDraft("only", "thing", ("one",))], by=ME)
                relations.create(Memory(store), [Relation("only", "only", "is")], by=ME)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT polymnia.analyze_tables()")
            _stop_autovacuum(connection)
        calls: list[Call] = []
        with (
            pytest.MonkeyPatch.context() as patch,
            closing(open_store(f"{url}?workspace=large")) as store,
        ):
            patch.setattr(WorkspaceConnection, "send", recording(calls))
            assert isinstance(store, PostgresStore)
            store.analyze_after = sys.maxsize  # the statistics stay those of the tiny workspaces
            _use(store)
        yield url, _largest(calls)


def _stop_autovacuum(connection: psycopg.Connection[Any]) -> None:
    rows = connection.execute(
        "SELECT oid::regclass::text FROM pg_class "
        "WHERE relnamespace = 'polymnia'::regnamespace AND relkind = 'r'"
    ).fetchall()
    for (table,) in rows:
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")


def _use(store: PostgresStore) -> None:
    """Call verbs of every kind."""
    memory = Memory(store)
    texts = ("common word here", "another Émile text")
    names = [f"entity {number}" for number in range(ENTITIES)]
    drafts = [EntityDraft(name, "thing", (*texts, f"unique{name[7:]} of it")) for name in names]
    entities.create(memory, drafts, by=ME)
    many = tuple(f"common fact {number}" for number in range(600))
    facts.add(memory, [FactAddition("entity 0", many)], by=ME)
    links = [Relation(one, other, "next") for one, other in pairwise(names)]
    relations.create(memory, links, by=ME)
    for number in range(40):
        note = Note(f"key {number}", f"common note {number}", ("tagged",))
        notes.commit(memory, note, by=ME)
    _read(memory, names)
    facts.remove(memory, [("entity 0", many[:300])], by=ME)
    relations.delete(memory, links[:200], by=ME)
    merge(memory, ["entity 5"], "entity 6", by=ME)
    entities.delete(memory, names[100:300], by=ME)
    notes.prune(memory, [VAULT], tags=("tagged",), by=ME)
    last = changes.latest(memory).changes[0].id
    undo.undo(memory, [last, last - 1], by=ME)
    _look_back(memory, names)
    store.purge(10)
    for table in TABLES:
        with store.reading() as read:
            list(read.read_rows(table))


def _read(memory: Memory, names: list[str]) -> None:
    entities.open_named(memory, names[:1])
    entities.open_named(memory, names)
    entities.outlines(memory, names)
    entities.read_all(memory)
    entities.page(memory, kind="thing", offset=10, limit=10)
    entities.types(memory)
    relations.types(memory)
    relations.find(memory, source="entity 3", target=None, kind=None)
    relations.find(memory, source=None, target=None, kind="next")
    traverse.shortest_path(memory, "entity 0", "entity 20")
    traverse.describe(memory, "entity 4")
    for text in ("common", "mile t", "é", "xy"):
        search.containing(memory, text)
    for question in ("unique77", "common word", "what about entity 7", "another common"):
        passages.recall(memory, question, context=2)
    passages.recall(memory, "common", within=Within(names=("entity 0",), types=("thing",)))
    notes.search(memory, NoteQuery(text="common note 3"), [VAULT])
    notes.page(memory, VAULT, limit=10)
    notes.keys(memory, VAULT, "key 1")


def _look_back(memory: Memory, names: list[str]) -> None:
    changes.latest(memory)
    changes.latest(memory, names=("entity 0",))
    changes.authors(memory, [("entity 1", 1), ("entity 2", 0)])
    changes.as_of(memory, changes.latest(memory).changes[-1].at, names[:10])
    trash.items(memory)


def _largest(calls: list[Call]) -> list[Call]:
    """Return the call with most values of each statement.

    Plain inserts cannot run twice, and have one plan.
    """
    largest: dict[str, Call] = {}
    for query, values in calls:
        if query in PLAIN_INSERTS:
            continue
        if query not in largest or _rows_given(values) > _rows_given(largest[query][1]):
            largest[query] = (query, values)
    return list(largest.values())


def _rows_given(values: tuple[Any, ...]) -> int:
    sizes = [len(value) for value in values if isinstance(value, list | tuple | set | dict)]
    return max(sizes, default=0)


@pytest.fixture(scope="module", params=list(STATES))
def planned(request: pytest.FixtureRequest, used: tuple[str, list[Call]]) -> Iterator[Any]:
    """Yield a connection to a copy of the database in one state, and the statements."""
    url, calls = used
    name = urlsplit(url).path[1:]
    with psycopg.connect(shared_server(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}_{request.param} TEMPLATE {name}")
        copy = urlsplit(url)._replace(path=f"/{name}_{request.param}").geturl()
        settings = parse_url(copy).settings | {"search_path": "polymnia,public"}
        try:
            with psycopg.connect(copy, autocommit=True) as connection:
                for statement in STATES[request.param]:
                    connection.execute(statement)
            raw = psycopg.RawCursor
            with psycopg.connect(copy, autocommit=True, cursor_factory=raw) as connection:
                postgres.apply_settings(connection, settings)
                yield connection, calls
        finally:
            admin.execute(f"DROP DATABASE {name}_{request.param} WITH (FORCE)")


def test_the_recorded_statements_are_most_of_those_about_a_workspace(
    used: tuple[str, list[Call]],
) -> None:
    assert len(used[1]) >= 80


def test_no_statement_reads_more_than_it_needs(planned: Any) -> None:
    connection, calls = planned
    offenders: dict[str, object] = {}
    for query, values in calls:
        plan, pages = explain(connection, query, values)
        rows = _rows_given(values) + rows_made(plan)
        if query == "neighbour_ids":  # a function looks at so many around each
            rows *= 2 * MAX_CONVERSATION_STEPS
        allowed = FIXED_PAGES + PAGES_PER_ROW * rows
        if query in RANKED:
            allowed += FUNCTION_PAGES
        if query in ("count_living", "keep_counts"):
            allowed += FIXED_PAGES  # the indexes of past rows are small, and one is read whole
        if pages > allowed:
            offenders[query] = (pages, rows)
        compared = _rows_dropped(plan)
        if compared > FIXED_ROWS + ROWS_PER_ROW * (_rows_given(values) + int(plan["Actual Rows"])):
            offenders[f"{query}: compares"] = (compared, _rows_given(values), plan["Actual Rows"])
        scans = [
            node["Relation Name"] for node in nodes_of(plan) if node["Node Type"] == "Seq Scan"
        ]
        if set(scans) - SMALL_TABLES:
            offenders[f"{query}: sequential scan"] = scans
        # It has the rows of all workspaces, and would be read for each answer.
        whole = [
            node["Index Name"]
            for node in nodes_of(plan)
            if node["Node Type"] in ("Index Scan", "Index Only Scan")
            and "Index Cond" not in node
            and node["Relation Name"] != "notes"  # there are few here
            and not node["Index Name"].endswith(("_past", "_ended"))  # few rows have ended
        ]
        if whole:
            offenders[f"{query}: whole index"] = whole
    assert not offenders, offenders


def _rows_dropped(plan: dict[str, Any]) -> int:
    """Return the most rows that a step read to compare them with others, or to put them into a
    bitmap, and then dropped.
    """
    dropped = 0
    for node in nodes_of(plan):
        if node["Node Type"] == "BitmapAnd":
            dropped = max(dropped, *[int(part["Actual Rows"]) for part in node["Plans"]])
        unequal = node.get("Rows Removed by Join Filter", 0)
        dropped = max(dropped, int(unequal * node["Actual Loops"]))
    return dropped
