"""Vectors in SQLite: the queue that cannot lose anything, and what other processes see."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine import entities, notes, observations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Note, ObservationDraft, Within
from polymnia.stores.sqlite.store import SqliteStore
from polymnia.stores.sqlite.vectors import SqliteVectors

VECTOR = b"\x00\x3c" * 4


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "memory.db"))
    entities.create(Memory(store), [EntityDraft("A", "x", ("one", "two")), EntityDraft("B", "y", ("three",))], by="me")
    yield store
    store.close()


@pytest.fixture
def table(store: SqliteStore) -> SqliteVectors:
    assert store.vectors is not None
    return store.vectors


def embed_all(table: SqliteVectors, model: int) -> None:
    table.put(model, [(place, text, VECTOR) for place, text in table.queued(model, 100)])


def gone_since(table: SqliteVectors, model: int, number: int) -> tuple[int, list[int]]:
    found = table.gone_since(model, number)
    assert found is not None
    return found


def waiting(table: SqliteVectors, model: int) -> set[str | None]:
    return {text for _, text in table.queued(model, 100)}


def test_a_new_model_has_everything_to_embed(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    assert waiting(table, model.number) == {"one", "two", "three"}
    assert table.add_model("m/4", "local", 4) == model
    assert table.models() == [model]


def test_what_is_written_later_is_queued_with_it(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    embed_all(table, model.number)
    assert waiting(table, model.number) == set()
    observations.add(Memory(store), [ObservationDraft("A", ("four",))], by="me", skip_repeats=True)
    assert waiting(table, model.number) == {"four"}
    assert table.counts(model.number) == (3, 4)


def test_a_store_without_models_queues_nothing(store: SqliteStore, table: SqliteVectors) -> None:
    observations.add(Memory(store), [ObservationDraft("A", ("four",))], by="me", skip_repeats=True)
    model = table.add_model("m/4", "local", 4)
    embed_all(table, model.number)
    assert not table.remove_model(model.number, 2)
    assert table.counts(model.number)[0] == 2
    assert not table.remove_model(model.number, 2)
    assert table.remove_model(model.number, 2)
    assert table.models() == []
    assert table.since(model.number, 0, 100) == (0, [])


def test_a_vector_goes_with_its_observation(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    embed_all(table, model.number)
    _, before = table.state()
    observations.remove(Memory(store), [ObservationDraft("A", ("one",))], by="me")
    entities.delete(Memory(store), ["B"], by="me")
    number, gone = gone_since(table, model.number, before)
    assert gone == [(1 << 24) + 1, (2 << 24) + 1]
    assert gone_since(table, model.number, number) == (number, [])
    assert [row.place for row in table.since(model.number, 0, 100)[1]] == [(1 << 24) + 2]


def test_a_note_that_has_a_new_vector_has_not_gone(store: SqliteStore, table: SqliteVectors) -> None:
    notes.commit(Memory(store), Note("tea", "Ann drinks tea"), by="me")
    model = table.add_model("m/4", "local", 4)
    embed_all(table, model.number)
    _, before = table.state()
    notes.commit(Memory(store), Note("tea", "Ann drinks coffee"), by="me")
    assert gone_since(table, model.number, before)[1] == [-1]
    embed_all(table, model.number)
    assert gone_since(table, model.number, before) == (before + 1, [])


def test_notes_are_embedded_before_observations_and_the_newest_first(store: SqliteStore, table: SqliteVectors) -> None:
    for key in ("old", "new"):
        notes.commit(Memory(store), Note(key, "x"), by="me")
    model = table.add_model("m/4", "local", 4)
    assert [text for _, text in table.queued(model.number, 3)] == ["new: x", "old: x", "three"]


def test_what_was_deleted_meanwhile_gets_no_vector(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    queued = table.queued(model.number, 100)
    entities.delete(Memory(store), ["B"], by="me")
    assert (2 << 24 | 1, None) in table.queued(model.number, 100)
    table.put(model.number, [(place, text, VECTOR) for place, text in queued])
    assert table.counts(model.number) == (2, 2)
    assert table.queued(model.number, 100) == []


def test_a_vector_of_an_older_text_is_dropped(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    place = (2 << 24) + 1
    table.put(model.number, [(place, "another text", VECTOR)])
    assert table.counts(model.number) == (0, 3)


def test_vectors_are_read_on_from_the_last_one_seen(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    embed_all(table, model.number)
    last, rows = table.since(model.number, 0, 2)
    assert len(rows) == 2
    last, rows = table.since(model.number, last, 2)
    assert len(rows) == 1
    assert table.since(model.number, last, 2) == (last, [])
    assert table.state()[0] == last


def test_filters_become_groups(store: SqliteStore, table: SqliteVectors) -> None:
    assert table.groups(Within(types=("y",))) == [2]
    assert table.groups(Within(names=("A", "Nobody"))) == [1]
    assert table.groups(Within(since=5)) is None


def test_what_went_is_remembered_for_a_while_only(store: SqliteStore, table: SqliteVectors) -> None:
    model = table.add_model("m/4", "local", 4)
    memory = Memory(store)
    for _ in range(6):
        observations.add(memory, [ObservationDraft("A", ("passing",))], by="me", skip_repeats=True)
        embed_all(table, model.number)
        observations.remove(memory, [ObservationDraft("A", ("passing",))], by="me")
    table.forget_gone(4)
    assert len(gone_since(table, model.number, 0)[1]) == 6
    table.forget_gone(2)
    assert table.gone_since(model.number, 3) is None
    assert len(gone_since(table, model.number, 4)[1]) == 2
    assert table.places(model.number) == {row.place for row in table.since(model.number, 0, 100)[1]}
