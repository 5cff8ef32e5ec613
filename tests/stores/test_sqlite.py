"""The SQLite file itself.

Schema, settings, snapshots, query plans, and files that are replaced under a store.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from struct import pack
from threading import Timer

import apsw
import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, StoreError, StoreForeign, StoreSealed, StoreTooNew
from polymnia.model import (
    MAX_ORDINAL,
    VAULT,
    ChangeQuery,
    EntityDraft,
    FactAddition,
    Note,
    NoteQuery,
    NoteScope,
    Relation,
)
from polymnia.search.fulltext import TextQuery
from polymnia.stores.contract import Reader, find_note
from polymnia.stores.sql import load_migrations, read_queries
from polymnia.stores.sqlite import schema
from polymnia.stores.sqlite.connection import QUERIES, SEALED_ID, connect
from polymnia.stores.sqlite.store import SqliteStore

KNOWN = load_migrations(Path(schema.__file__).parent)
NEWEST = KNOWN[-1][0]
VECTOR = pack("<4f", 1, 0, 0, 0)

# Every way to read.
READS: dict[str, Callable[[Reader], object]] = {
    "find": lambda read: read.entities(["A"]),
    "find several": lambda read: read.entities(["A", "B"]),
    "known": lambda read: read.existing_names(["A"]),
    "entities": lambda read: read.entities(),
    "page": lambda read: read.entities(offset=0, limit=10),
    "counts": lambda read: read.counts(),
    "touching": lambda read: read.relations(["A"]),
    "relations like": lambda read: read.relations(source="A", target=None, kind=None),
    "containing": lambda read: read.containing("one"),
    "match": lambda read: read.match(TextQuery(("one",)), ("fact", "entity", "note")),
    "word counts": lambda read: read.word_counts(["one"]),
    "vocabulary": lambda read: read.vocabulary("a", "z", 10),
    "candidates": lambda read: read.candidates(["one"], 10),
    "names with": lambda read: read.names_with(["a"], 10),
    "between": lambda read: read.facts_between(0, 2**60, 10),
    "notes": lambda read: read.notes.notes(VAULT),
    "note": lambda read: find_note(read.notes, VAULT, "key"),
    "note search": lambda read: read.notes.search(NoteQuery(text="words", vector=VECTOR)),
    "session note search": lambda read: read.notes.search(
        NoteQuery(text="words", scope=NoteScope("session"))
    ),
    "history": lambda read: read.history.changes(ChangeQuery(limit=None))[::-1],
    "history at a time": lambda read: read.history.state_at(2**60),
    "trash": lambda read: read.history.trash(),
    "models": lambda read: read.vectors.models(),
    "nearest": lambda read: read.vectors.nearest(1, VECTOR, 10),
    "pending": lambda read: read.vectors.pending(1, 10),
    "coverage": lambda read: read.vectors.coverage(1),
}
reading_by = pytest.mark.parametrize("look", READS.values(), ids=READS)


@pytest.fixture
def filled(store: SqliteStore) -> Iterator[SqliteStore]:
    """A store with something of every kind, which is all in the log."""
    memory = Memory(store)
    entities.create(
        memory, [EntityDraft("A", "x", ("one", "two")), EntityDraft("B", "x")], by="ann"
    )
    relations.create(memory, [Relation("A", "B", "r")], by="ann")
    for scope in (VAULT, NoteScope("session")):
        notes.commit(memory, Note("key", "a few words", (), scope, VECTOR), by="ann")
    model = store.vectors.add_model("m/4", "local", 4).number
    with store.reading() as read:
        waiting = read.vectors.pending(model, 1)
    store.vectors.put(model, [(passage, VECTOR) for passage, _ in waiting])
    yield store


def run_sql(path: str, query: str) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(path)) as connection:
        return connection.execute(query).fetchall()


def test_the_file_is_durable_by_its_settings(store: SqliteStore) -> None:
    with store._commit.transaction() as connection:
        settings = [
            connection.pragma(name) for name in ("journal_mode", "synchronous", "secure_delete")
        ]
    assert settings == ["wal", 2, 1]


def test_a_new_file_that_another_process_is_creating_is_waited_for(path: str) -> None:
    """SQLite itself does not wait if two processes turn the write-ahead log on at once."""
    other = apsw.Connection(path)
    other.execute("CREATE TABLE begun (x); BEGIN IMMEDIATE")
    release = Timer(0.1, other.close)
    connect(path, lambda connection: release.start()).close()
    release.join()


def test_every_migration_is_recorded(store: SqliteStore, path: str) -> None:
    numbers = [number for number, _ in KNOWN]
    assert [
        row[0] for row in run_sql(path, "SELECT number FROM migrations ORDER BY number")
    ] == numbers
    assert run_sql(path, "PRAGMA user_version") == [(NEWEST,)]


def test_a_later_migration_is_applied_to_an_old_file_once(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SqliteStore(path)
    entities.create(Memory(old), [EntityDraft("A", "x")], by="ann")
    old.close()
    later = [*KNOWN, (NEWEST + 1, "ALTER TABLE cards ADD COLUMN colour TEXT;")]
    monkeypatch.setattr(schema, "load_migrations", lambda package: later)
    for _ in range(2):
        SqliteStore(path).close()
    assert run_sql(path, "SELECT name, colour FROM cards") == [("A", None)]
    assert run_sql(path, "SELECT count(*) FROM migrations") == [(len(later),)]


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(path).close()
    broken = [*KNOWN, (NEWEST + 1, "CREATE TABLE half (done TEXT); SELECT nonsense;")]
    monkeypatch.setattr(schema, "load_migrations", lambda package: broken)
    with pytest.raises(StoreError):
        SqliteStore(path)
    assert run_sql(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == [(0,)]


def test_a_file_with_an_older_schema_cannot_be_opened_read_only(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(path).close()
    monkeypatch.setattr(schema, "load_migrations", lambda package: [*KNOWN, (NEWEST + 1, "")])
    with pytest.raises(StoreError, match="without --read-only"):
        SqliteStore(path, read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (f"PRAGMA user_version = {NEWEST + 1}", StoreTooNew),
        ("PRAGMA application_id = 7", StoreForeign),
        (f"PRAGMA application_id = {SEALED_ID}", StoreSealed),
    ],
    ids=["later schema", "another program", "archived"],
)
def test_a_file_that_is_not_for_this_version_is_refused(
    path: str, change: str, error: type[StoreError], read_only: bool
) -> None:
    SqliteStore(path).close()
    run_sql(path, change)
    before = Path(path).read_bytes()
    with pytest.raises(error):
        SqliteStore(path, read_only=read_only)
    assert Path(path).read_bytes() == before


def test_ids_of_rows_come_from_one_counter(store: SqliteStore, path: str) -> None:
    memory = Memory(store)
    entities.create(
        memory, [EntityDraft("A", "x", ("one",)), EntityDraft("B", "x", ("two",))], by="ann"
    )
    relations.create(memory, [Relation("A", "B", "r")], by="ann")
    notes.commit(memory, Note("key", "text"), by="ann")
    tables = ("cards", "observations", "relations", "notes")
    ids = sorted(
        int(str(row[0])) for table in tables for row in run_sql(path, f"SELECT id FROM {table}")
    )
    assert ids == list(range(1, 7))
    assert run_sql(path, "SELECT last_row FROM changes") == [(4,), (5,), (6,)]


def test_ended_rows_stay_in_the_file(store: SqliteStore, path: str) -> None:
    memory = Memory(store)
    entities.create(memory, [EntityDraft("A", "x", ("one", "two"))], by="ann")
    relations.create(memory, [Relation("A", "B", "r")], by="ben")
    entities.delete(memory, ["A"], by="ann")
    for table, count in (("cards", 1), ("observations", 2), ("relations", 1)):
        assert run_sql(path, f"SELECT count(*) FROM {table} WHERE until = 3") == [(count,)]


def test_the_text_indexes_are_sound_after_any_write(filled: SqliteStore, path: str) -> None:
    memory = Memory(filled)
    facts.remove(memory, [("A", ("one",))], by="ann")
    entities.delete(memory, ["B"], by="ann")
    for index in ("words", "trigrams"):
        run_sql(path, f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
    assert filled.check() == []


def test_compacting_empties_the_write_ahead_log(filled: SqliteStore, path: str) -> None:
    assert Path(f"{path}-wal").stat().st_size > 0
    filled.compact()
    assert Path(f"{path}-wal").stat().st_size == 0
    with filled.reading() as read:
        assert read.counts().entities == 2


def test_a_store_may_be_closed_twice(store: SqliteStore) -> None:
    store.close()
    store.close()


@reading_by
def test_a_read_never_writes(
    filled: SqliteStore, path: str, look: Callable[[Reader], object]
) -> None:
    before = [Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")]
    with filled.reading() as read:
        look(read)
    assert [Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")] == before


@reading_by
def test_a_read_does_not_wait_for_a_writer(
    filled: SqliteStore, path: str, look: Callable[[Reader], object]
) -> None:
    with closing(apsw.Connection(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with filled.reading() as read:
            look(read)


@reading_by
def test_a_block_of_reads_is_one_snapshot(
    filled: SqliteStore, path: str, look: Callable[[Reader], object]
) -> None:
    with closing(SqliteStore(path)) as other, filled.reading() as read:
        before = look(read)
        memory = Memory(other)
        entities.create(memory, [EntityDraft("C", "x", ("one", "a third one"))], by="ben")
        entities.delete(memory, ["B"], by="ben")
        notes.commit(memory, Note("key", "other words"), by="ben")
        assert look(read) == before
        assert read.existing_names(["B", "C"]) == {"B"}


def test_a_snapshot_begins_with_its_block(filled: SqliteStore, path: str) -> None:
    with closing(SqliteStore(path)) as other, filled.reading() as read:
        entities.create(Memory(other), [EntityDraft("C", "x")], by="ben")
        assert read.existing_names(["C"]) == set()


@reading_by
@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_every_read_notices_that_the_file_is_not_the_one_it_opened(
    filled: SqliteStore, path: str, look: Callable[[Reader], object], replaced: bool
) -> None:
    with filled.reading() as read:
        look(read)
    if replaced:
        SqliteStore(f"{path}.other").close()
        Path(f"{path}.other").replace(path)
    else:
        Path(path).unlink()
    with pytest.raises(StoreError, match="moved, deleted or replaced"), filled.reading() as read:
        look(read)


def test_a_change_feed_notices_that_the_file_is_gone(filled: SqliteStore, path: str) -> None:
    feed = filled.follow()
    assert feed() == []
    Path(path).unlink()
    for read in (feed, filled.follow):
        with pytest.raises(StoreError, match="moved, deleted or replaced"):
            read()


def test_the_last_ordinal_can_be_used(store: SqliteStore, path: str) -> None:
    memory = _memory_near_the_limit(store, path)
    facts.add(memory, [FactAddition("A", ("the last",))], by="ann", skip_repeats=False)
    with store.reading() as read:
        assert [fact.ordinal for fact in read.entities(["A"])[0].facts] == [
            1,
            MAX_ORDINAL,
        ]


def test_beyond_the_last_ordinal_nothing_is_written(store: SqliteStore, path: str) -> None:
    memory = _memory_near_the_limit(store, path)
    with pytest.raises(BadInput, match="create another entity"):
        facts.add(
            memory, [FactAddition("A", ("the last", "too many"))], by="ann", skip_repeats=False
        )
    with store.reading() as read:
        assert [entity.texts for entity in read.entities()] == [("one",), ("two",)]
        assert len(read.history.changes(ChangeQuery(limit=None))) == 1


def _memory_near_the_limit(store: SqliteStore, path: str) -> Memory:
    """Two entities; the first has one ordinal left.

    The second one's observation is the next row.
    """
    memory = Memory(store)
    entities.create(
        memory, [EntityDraft("A", "x", ("one",)), EntityDraft("B", "x", ("two",))], by="ann"
    )
    run_sql(path, f"UPDATE entities SET next_ordinal = {MAX_ORDINAL} WHERE id = 1")
    return memory


# Queries that need a whole table, or a table of another program.
WHOLE_TABLE = {
    "erase_observations",
    "erase_summaries",
    "erase_cards",
    "erase_relations",
    "count_embeddable",
    "count_vectors",
    "note_texts",
    "notes_at",
    "notes_listed",
    "passages_within",
    "purge_entities",
    "relations_at",
    "sessions",
    "texts_of_all",
    "all_cards_until",
    "all_observations_until",
    "count_orphans",
    "count_unindexed",
    "count_broken_vectors",
    "delete_broken_vectors",
    "facts_with_texts",
    "count_living",
    "entities_all",
    "entities_page",
    "entity_types",
    "foreign_sessions",
    "foreign_vault",
    "observation_owners",
    "observations_all",
    "outlines_all",
    "recent_entities",
    "relation_types",
    "relations_typed",
}


# Queries that scan an index of few rows.
SMALL_INDEX = {"aliased_entities"}

# Queries that copy whole tables to another store.
TABLES = Path(schema.__file__).parent / "tables.sql"

# Queries that scan in order and stop at a limit.
LIMITED = {
    "any_note",
    "delete_unused_vectors",
    "delete_vectors_of_model",
    "last_change",
    "last_changed_row",
    "newest_notes",
}


def test_a_query_reads_only_what_it_is_asked_for(store: SqliteStore) -> None:
    tables = "entities|cards|observations|relations|changes|notes|vectors|session_notes|e|c|o|r|n|v"
    offenders = set()
    with store._snapshot() as connection:
        connection.execute(QUERIES["create_session_words"])
        for name in set(QUERIES) - WHOLE_TABLE - LIMITED - SMALL_INDEX - set(read_queries(TABLES)):
            query = QUERIES[name]
            numbered = [int(number) for number in re.findall(r"\?(\d)", query)]
            bindings = (None,) * (max(numbered) if numbered else query.count("?"))
            for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", bindings).fetchall():
                if re.match(rf"SCAN ({tables})\b", str(row[3])):
                    offenders.add((name, row[3]))
    assert offenders == set()


def test_neighbours_are_found_without_a_scan(store: SqliteStore) -> None:
    with store._snapshot() as connection:
        query = f"EXPLAIN QUERY PLAN {QUERIES['neighbour_ids']}"
        plan = [str(row[3]) for row in connection.execute(query, ("[]", 1, 1)).fetchall()]
    assert [step.rpartition("rowid")[2] for step in plan if step.startswith("SEARCH n ")] == [
        "<?)",
        ">?)",
    ] * 2
    assert not any(step.startswith(("SCAN n ", "SCAN o ", "SCAN made ")) for step in plan)


def test_the_totals_follow_every_kind_of_change(store: SqliteStore) -> None:
    memory = Memory(store)

    def differences() -> list[str]:
        connection = apsw.Connection(store.url)
        ((change, *totals),) = connection.execute(
            "SELECT change, entities, facts, relations, notes FROM totals"
        ).fetchall()
        counted = connection.execute(QUERIES["count_living"]).fetchall()[0]
        ((last,),) = connection.execute("SELECT max(id) FROM changes").fetchall()
        connection.close()
        return (
            [f"{change} {last} {totals} {counted}"]
            if (last, totals) != (change, [*counted])
            else []
        )

    drafts = [EntityDraft(name, "person", ("one", "two")) for name in ("Ann", "Ben", "Cid")]
    entities.create(memory, drafts, by="me")
    assert differences() == []
    relations.create(memory, [Relation("Ann", "Ben", "knows")], by="me")
    entities.delete(memory, ["Ben"], by="me")
    assert differences() == []
    notes.commit(memory, Note("key", "text"), by="me")
    trash.restore(memory, trash.items(memory)[0].id, by="me")
    assert differences() == []
    entities.delete(memory, ["Cid"], by="me")
    store.purge(None)
    entities.create(memory, [EntityDraft("Cid", "person", ("three",))], by="me")
    assert differences() == []
