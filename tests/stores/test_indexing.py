"""Rows that wait for the text indexes are found all the same, by characters and by words."""

import apsw
import pytest

from polymnia.engine import entities, notes, observations
from polymnia.engine.memory import Memory
from polymnia.engine.recall import recall
from polymnia.model import VAULT, Change, EntityDraft, Note, ObservationDraft, Rows
from polymnia.stores.sqlite import store as sqlite_store
from polymnia.stores.sqlite.store import SqliteStore

ME = "ann"


def remember(store: SqliteStore, *names: str) -> None:
    entities.create(Memory(store), [EntityDraft(name, "person", (f"{name} drinks tea",)) for name in names], by=ME)


def by_characters(store: SqliteStore, text: str) -> list[str]:
    with store.reading() as graph:
        return [entity.name for entity in graph.containing(text)]


def by_words(store: SqliteStore, question: str) -> set[str]:
    return {hit.passage.entity for hit in recall(Memory(store), question).hits}


def by_expression(store: SqliteStore, query: str) -> set[str]:
    with store.reading() as graph:
        return {entity.name for entity in graph.matching(query)}


def waiting(path: str) -> int:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute("SELECT count(*) FROM unindexed").get
    connection.close()
    return int(found)


def test_a_small_write_waits_for_the_indexes(store: SqliteStore, path: str) -> None:
    remember(store, "Ann")
    assert waiting(path) == 2


def test_what_waits_is_found_by_its_characters(store: SqliteStore, path: str) -> None:
    remember(store, "Ann", "Ben")
    assert (by_characters(store, "ann drinks"), by_characters(store, "n"), waiting(path)) == (
        ["Ann"],
        ["Ann", "Ben"],
        4,
    )


def test_a_search_for_words_has_it_indexed(store: SqliteStore, path: str) -> None:
    remember(store, "Ann", "Ben")
    assert (by_words(store, "who is drinking tea"), waiting(path)) == ({"Ann", "Ben"}, 0)


def test_a_full_text_expression_has_it_indexed(store: SqliteStore, path: str) -> None:
    remember(store, "Ann", "Ben")
    assert (by_expression(store, "ben AND tea"), waiting(path)) == ({"Ben"}, 0)


def test_what_another_process_left_waiting_is_found(store: SqliteStore, path: str) -> None:
    by_words(store, "tea")
    other = SqliteStore(path)
    remember(other, "Ann")
    assert by_words(store, "tea") == {"Ann"}
    other.close()


def test_what_is_deleted_or_changed_while_it_waits_is_not_found(store: SqliteStore) -> None:
    remember(store, "Ann", "Ben")
    entities.delete(Memory(store), ["Ann"], by=ME)
    observations.remove(Memory(store), [ObservationDraft("Ben", ("Ben drinks tea",))], by=ME)
    assert (by_characters(store, "drinks"), by_words(store, "tea"), by_characters(store, "ann")) == ([], set(), [])


def test_no_more_than_some_rows_ever_wait(store: SqliteStore, path: str) -> None:
    most = 0
    for number in range(100):
        remember(store, f"Entity {number}")
        most = max(most, waiting(path))
    assert 64 < most < 128
    assert len(by_characters(store, "drinks")) == 100


def test_a_large_write_is_indexed_at_once(store: SqliteStore, path: str) -> None:
    remember(store, *[f"Entity {number}" for number in range(32)])
    assert waiting(path) == 0
    assert len(by_expression(store, "drinks")) == 32


def test_a_pause_is_used_to_index(store: SqliteStore, path: str) -> None:
    remember(store, "Ann")
    store.tidy()
    assert waiting(path) == 0


def test_a_store_that_is_closed_leaves_nothing_waiting(store: SqliteStore, path: str) -> None:
    remember(store, "Ann")
    store.close()
    assert waiting(path) == 0


def test_a_store_that_must_not_be_changed_is_searched_as_it_is(store: SqliteStore, path: str) -> None:
    remember(store, "Ann")
    store.tidy()
    remember(store, "Ben")
    reader = SqliteStore(path, read_only=True)
    assert (by_characters(reader, "drinks"), by_words(reader, "tea"), waiting(path)) == (["Ann", "Ben"], {"Ann"}, 2)
    reader.close()


def test_a_search_does_not_wait_for_a_long_write_of_another_process(
    store: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "_SEARCH_WAIT", 0)
    remember(store, "Ann")
    store.tidy()
    remember(store, "Ben")
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    assert by_words(store, "tea") == {"Ann"}
    other.close()
    assert by_words(store, "tea") == {"Ann", "Ben"}


def test_a_search_inside_a_write_sees_what_was_written_before_in_it(store: SqliteStore) -> None:
    ann = entities.born(EntityDraft("Ann", "person", ("Ann drinks tea",)), 1)
    with store.writing() as graph:
        graph.apply(Change("create", ME, 1, after=Rows(entities=(ann,))))
        assert [entity.name for entity in graph.matching("tea")] == ["Ann"]
        assert graph.word_counts(["tea"]).having == {"tea": 1}


def test_a_note_waits_and_is_found_as_everything_else_is(store: SqliteStore, path: str) -> None:
    memory = Memory(store)
    notes.commit(memory, Note("tea", "Ann drinks it"), by=ME)
    with store.reading() as graph:
        assert graph.notes is not None
        assert ([each.key for each in graph.notes.containing("inks")], waiting(path)) == (["tea"], 1)
    assert (by_words(store, "who drinks tea"), waiting(path)) == ({"tea"}, 0)


def test_a_note_that_is_deleted_while_it_waits_is_not_found(store: SqliteStore, path: str) -> None:
    memory = Memory(store)
    notes.commit(memory, Note("tea", "Ann drinks it"), by=ME)
    notes.prune(memory, [VAULT], key="tea", by=ME)
    assert (by_words(store, "tea"), waiting(path), store.check()) == (set(), 0, [])


def test_what_is_read_only_is_read_at_one_moment(store: SqliteStore, path: str) -> None:
    remember(store, "Ann")
    reader = SqliteStore(path, read_only=True)
    with reader.reading() as graph:
        graph.word_counts(["tea"])
        remember(store, "Ben")
        graph.word_counts(["tea"])
        assert [entity.name for entity in graph.entities()] == ["Ann"]
    reader.close()


def test_another_process_that_writes_is_waited_for_once(
    store: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "_SEARCH_WAIT", 0)
    remember(store, "Ann")
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    with store.reading() as graph:
        graph.word_counts(["tea"])
        other.close()
        assert graph.word_counts(["tea"]).having == {}


def test_a_row_that_waits_without_a_text_holds_up_no_search(store: SqliteStore, path: str) -> None:
    remember(store, "Ann")
    store.tidy()
    stranger = apsw.Connection(path)
    stranger.execute("INSERT INTO unindexed (id) VALUES (7 << 24), ((7 << 24) + 1), (-7)")
    stranger.close()
    assert (by_words(store, "tea"), waiting(path), store.check()) == ({"Ann"}, 0, [])
