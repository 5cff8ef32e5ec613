"""The SQLite file itself: schema, change log, what stays after a delete."""

import re
from pathlib import Path
from threading import Timer

import apsw
import pytest
from polymnia.stores.sqlite.layout import QUERIES

from polymnia.engine import entities, observations, relations
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import Change, EntityDraft, ObservationDraft, Passage, Relation
from polymnia.stores.sql import load_migrations
from polymnia.stores.sqlite import store as sqlite_store
from polymnia.stores.sqlite.connection import connect
from polymnia.stores.sqlite.store import SqliteStore


def rows(path: str, query: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def write_a_little(store: SqliteStore) -> list[Change]:
    memory = Memory(store)
    entities.create(memory, [EntityDraft("A", "x", ("one", "two"))], by="ann")
    relations.create(memory, [Relation("A", "B", "r")], by="ben")
    observations.remove(memory, [ObservationDraft("A", ("one",))], by="ann")
    entities.delete(memory, ["A"], by="ben")
    return store.changes()


def test_every_write_is_one_row_in_the_change_log(store: SqliteStore) -> None:
    assert [(each.id, each.actor, each.operation) for each in write_a_little(store)] == [
        (1, "ann", "create_entities"),
        (2, "ben", "create_relations"),
        (3, "ann", "delete_observations"),
        (4, "ben", "delete_entities"),
    ]


def test_the_change_log_has_what_was_before_and_after(store: SqliteStore) -> None:
    created, linked, removed, deleted = write_a_little(store)
    assert (created.before.entities, created.after.entities[0].texts) == ((), ("one", "two"))
    assert linked.after.relations[0].key == ("A", "B", "r")
    assert removed.before.observations[0].observations[0].text == "one"
    assert deleted.before.entities[0].texts == ("two",)
    assert deleted.before.relations[0].key == ("A", "B", "r")
    assert not deleted.after


def test_a_write_that_changes_nothing_is_not_logged(store: SqliteStore) -> None:
    memory = Memory(store)
    entities.delete(memory, ["Nobody"], by="ann")
    entities.create(memory, [], by="ann")
    assert store.changes() == []


def test_deleted_rows_stay_in_the_file(store: SqliteStore, path: str) -> None:
    write_a_little(store)
    assert rows(path, "SELECT name FROM entities WHERE deleted_at IS NOT NULL") == [("A",)]
    assert len(rows(path, "SELECT content FROM observations WHERE deleted_at IS NOT NULL")) == 2
    assert len(rows(path, "SELECT source FROM relations WHERE deleted_at IS NOT NULL")) == 1


def test_the_file_is_durable_by_its_settings(store: SqliteStore) -> None:
    with store.writing() as writer:
        connection = writer._connection
        assert (connection.pragma("journal_mode"), connection.pragma("synchronous")) == ("wal", 2)


def test_a_new_file_that_another_process_is_making_is_waited_for(path: str) -> None:
    """SQLite itself does not wait where two of them turn the write-ahead log on at once."""
    other = apsw.Connection(path)
    other.execute("CREATE TABLE begun (x); BEGIN IMMEDIATE")
    release = Timer(0.1, other.close)
    connect(path, lambda connection: release.start()).close()
    release.join()


def test_every_migration_is_recorded(store: SqliteStore, path: str) -> None:
    numbers = [number for number, _ in load_migrations(Path(sqlite_store.__file__).parent)]
    assert [row[0] for row in rows(path, "SELECT number FROM migrations ORDER BY number")] == numbers
    assert rows(path, "PRAGMA user_version") == [(numbers[-1],)]


def test_a_later_migration_is_applied_to_an_old_file_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = SqliteStore(path)
    entities.create(Memory(old), [EntityDraft("A", "x")], by="ann")
    old.close()
    known = load_migrations(Path(sqlite_store.__file__).parent)
    later = [*known, (known[-1][0] + 1, "ALTER TABLE entities ADD COLUMN colour TEXT;")]
    monkeypatch.setattr(sqlite_store, "load_migrations", lambda package: later)
    for _ in range(2):
        SqliteStore(path).close()
    assert rows(path, "SELECT name, colour FROM entities") == [("A", None)]
    assert rows(path, "SELECT count(*) FROM migrations") == [(len(later),)]


def test_an_old_file_gets_its_words_indexed(path: str) -> None:
    make_old_file(path, 1)
    connection = apsw.Connection(path)
    connection.execute(
        "INSERT INTO entities VALUES (1, 'u', 'getUserName', 'function', NULL, 0, '[]', 3, 5, 5, NULL),"
        " (2, 'v', 'Gone', 'x', NULL, 0, '[]', 2, 5, 5, 6);"
        "INSERT INTO observations VALUES (16777217, 'returns names', 5, NULL), (16777218, 'old names', 5, 6),"
        " (33554433, 'gone names', 5, 6);"
    )
    connection.close()
    store = SqliteStore(path)
    with store.reading() as read:
        assert {each.key for each in read.candidates(["name"], 9)} == {("getUserName", 0), ("getUserName", 1)}
        (passage,) = read.candidates(["return"], 9)
    assert passage == Passage("getUserName", "function", 1, "returns names", 5, 0, (1 << 24) + 1)
    observations.remove(Memory(store), [ObservationDraft("getUserName", ("returns names",))], by="ann")
    assert store.check() == []
    store.close()


def make_old_file(path: str, number: int) -> None:
    """A store as the version that knew only so many migrations made it."""
    known = load_migrations(Path(sqlite_store.__file__).parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_store, "load_migrations", lambda package: known[:number])
        SqliteStore(path).close()


def test_the_words_index_is_sound_after_any_write(store: SqliteStore, path: str) -> None:
    write_a_little(store)
    connection = apsw.Connection(path)
    connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    connection.close()


def test_a_valid_time_is_kept(store: SqliteStore) -> None:
    memory = Memory(store)
    entities.create(memory, [EntityDraft("A", "x", ("one",)), EntityDraft("B", "x")], by="ann")
    observations.add(memory, [ObservationDraft("A", ("two",), 7)], by="ann", skip_repeats=True)
    looked_up = store.look_up("A").entities[0]
    with store.reading() as read:
        assert read.find(["A"]) == [looked_up]
        assert read.find(["A", "B"])[0] == looked_up
        assert read.entities()[0] == looked_up
    assert [each.valid_at for each in looked_up.observations] == [0, 7]
    assert store.changes()[-1].after.observations[0].observations[0].valid_at == 7


def test_a_migration_that_fails_leaves_the_file_as_it_was(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore(path).close()
    known = load_migrations(Path(sqlite_store.__file__).parent)
    broken = [*known, (known[-1][0] + 1, "CREATE TABLE half (done TEXT); SELECT nonsense;")]
    monkeypatch.setattr(sqlite_store, "load_migrations", lambda package: broken)
    with pytest.raises(StoreError):
        SqliteStore(path)
    assert rows(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == [(0,)]


def test_one_row_of_ids_holds_an_entity_and_its_observations(store: SqliteStore, path: str) -> None:
    entities.create(Memory(store), [EntityDraft("A", "x", ("one",)), EntityDraft("B", "x", ("two", "three"))], by="ann")
    assert rows(path, "SELECT id >> 24, id & 0xFFFFFF, content FROM observations ORDER BY id") == [
        (1, 1, "one"),
        (2, 1, "two"),
        (2, 2, "three"),
    ]


def test_compacting_empties_the_write_ahead_log(store: SqliteStore, path: str) -> None:
    write_a_little(store)
    assert Path(f"{path}-wal").stat().st_size > 0
    store.compact()
    assert Path(f"{path}-wal").stat().st_size == 0
    assert not store.tidy()
    assert len(store.changes()) == 4


def test_a_store_may_be_closed_twice(store: SqliteStore) -> None:
    store.close()
    store.close()


WHOLE_TABLE = {"entities_all", "observations_all", "relations_all", "texts_of_all", "counts"} | {
    "entities_page",
    "relations_typed",
    "entity_types",
    "relation_types",
    "distinct_texts",
    "count_orphans",
    "count_lost_notes",
    "texts_of_notes",
    "weight",
    "count_vault_vectors",
    "groups_within",
    "queue_all",
    "vector_counts",
}
# Of another program's tables.
FOREIGN = {"foreign_sessions", "foreign_vault"}


@pytest.mark.parametrize("name", sorted(set(QUERIES) - WHOLE_TABLE - FOREIGN))
def test_a_query_reads_only_what_it_is_asked_for(store: SqliteStore, path: str, name: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(QUERIES["make_session_words"])
    numbered = [int(number) for number in re.findall(r"\?(\d)", QUERIES[name])]
    bindings = (None,) * (max(numbered) if numbered else QUERIES[name].count("?"))
    plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", bindings).fetchall()]
    connection.close()
    assert [
        step for step in plan if re.match(r"SCAN (entities|observations|relations|changes|notes|o|r|n|v)\b", step)
    ] == []
