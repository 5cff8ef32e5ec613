"""The copy in memory of a small SQLite store: it says what the file says, whoever wrote it, or it says nothing."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from polymnia.engine import curate, entities, observations, relations
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import EntityDraft, Graph, ObservationDraft, Relation, Rows
from polymnia.stores.sqlite import replica
from polymnia.stores.sqlite.graph import look_up
from polymnia.stores.sqlite.store import SqliteStore
from polymnia.stores.sqlite.walindex import is_next
from tests.behaviour.test_model import DRAFTS, StoreMachine
from tests.durability.faults import SqliteDisk

NAMES = ("A", "B", "C", "nobody")

WRITES: dict[str, Callable[[Memory], object]] = {
    "create": lambda memory: entities.create(memory, [EntityDraft("C", "x", ("one",))], by="ann"),
    "relate": lambda memory: relations.create(memory, [Relation("B", "A", "r"), Relation("A", "A", "r")], by="ann"),
    "unrelate": lambda memory: relations.delete(memory, [Relation("A", "B", "r")], by="ann"),
    "add": lambda memory: observations.add(memory, [ObservationDraft("A", ("more",))], by="ann", skip_repeats=True),
    "remove": lambda memory: observations.remove(memory, [ObservationDraft("A", ("one",))], by="ann"),
    "delete": lambda memory: entities.delete(memory, ["A"], by="ann"),
    "upsert": lambda memory: curate.upsert(memory, [EntityDraft("A", "y", ("two", "new"))], by="ann"),
    "merge": lambda memory: curate.merge(memory, source="A", target="B", by="ann"),
    "nothing": lambda memory: entities.delete(memory, ["nobody"], by="ann"),
    "tidy": lambda memory: memory.store.tidy(),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica is made by the first read."""
    monkeypatch.setattr(replica, "_FIRST", 1)
    monkeypatch.setattr(replica, "_BYTES_PER_READ", replica.MOST)


@pytest.fixture
def store(path: str, eager: None) -> Iterator[SqliteStore]:
    """A store of two related entities that has been read."""
    store = SqliteStore(path)
    memory = Memory(store)
    entities.create(memory, [EntityDraft("A", "x", ("one", "two")), EntityDraft("B", "x")], by="ann")
    relations.create(memory, [Relation("A", "B", "r"), Relation("A", "gone", "s")], by="ann")
    store.look_up("A")
    yield store
    store.close()


def kept(store: SqliteStore, name: str) -> Graph | None:
    """What the replica says."""
    return store._replica.look_up(name)


def filed(path: str, name: str) -> Graph:
    """What the file says."""
    connection = apsw.Connection(path)
    try:
        return look_up(connection, name)
    finally:
        connection.close()


def test_what_was_read_often_is_answered_from_memory(store: SqliteStore, path: str) -> None:
    assert [kept(store, name) for name in NAMES] == [filed(path, name) for name in NAMES]


def test_a_store_that_is_seldom_read_has_no_replica(path: str) -> None:
    store = SqliteStore(path)
    store.look_up("A")
    assert kept(store, "A") is None
    store.close()


def test_a_larger_store_is_read_more_often_before_it_is_copied(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "_FIRST", 2)
    monkeypatch.setattr(replica, "_BYTES_PER_READ", 1000)
    store = SqliteStore(path)
    entities.create(Memory(store), [EntityDraft("A", "x", ("x" * 6000,))], by="ann")
    reads = 0
    while kept(store, "A") is None:
        store.look_up("A")
        reads += 1
    assert reads == 6
    store.close()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_own_writes_are_carried_over(store: SqliteStore, path: str, write: Callable[[Memory], object]) -> None:
    write(Memory(store))
    assert [kept(store, name) for name in NAMES] == [filed(path, name) for name in NAMES]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_of_others_are_seen_at_once(store: SqliteStore, path: str, write: Callable[[Memory], object]) -> None:
    other = SqliteStore(path)
    write(Memory(other))
    assert [store.look_up(name) for name in NAMES] == [filed(path, name) for name in NAMES]
    other.close()


def test_an_own_write_after_one_of_another_does_not_hide_it(store: SqliteStore, path: str) -> None:
    other = SqliteStore(path)
    observations.add(Memory(other), [ObservationDraft("A", ("theirs",))], by="ben", skip_repeats=True)
    observations.add(Memory(store), [ObservationDraft("A", ("ours",))], by="ann", skip_repeats=True)
    assert store.look_up("A").entities[0].texts == ("one", "two", "theirs", "ours")
    other.close()


def test_an_edit_that_no_change_tells_of_is_seen_at_once(store: SqliteStore, path: str) -> None:
    """As somebody makes who opens the file with SQLite's own tools."""
    script = "import apsw, sys; apsw.Connection(sys.argv[1]).execute(\"UPDATE entities SET type = 'edited'\")"
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert store.look_up("A").entities[0].type == "edited"


def test_after_a_write_of_another_the_replica_is_made_again(store: SqliteStore, path: str) -> None:
    other = SqliteStore(path)
    entities.create(Memory(other), [EntityDraft("C", "x")], by="ben")
    store.look_up("A")
    assert kept(store, "C") == filed(path, "C")
    other.close()


def test_a_write_that_fails_is_not_carried_over(store: SqliteStore, path: str) -> None:
    with pytest.raises(ZeroDivisionError), Memory(store).writing("test", "ann") as transaction:
        transaction.apply(before=_rows(store))
        raise ZeroDivisionError
    assert kept(store, "A") == filed(path, "A") != Graph([], [])


def test_of_a_group_only_what_was_not_taken_back_is_carried_over(store: SqliteStore, path: str) -> None:
    memory = Memory(store)
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        for turn in range(10):
            name = f"{number}.{turn}"
            with pytest.raises(ZeroDivisionError), memory.writing("test", "ann") as transaction:
                born = entities.born(EntityDraft(f"doomed {name}", "x"), transaction.at)
                transaction.apply(after=Rows(entities=(born,)))
                raise ZeroDivisionError
            entities.create(memory, [EntityDraft(name, "x")], by="ann")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = [f"{number}.{turn}" for number in range(8) for turn in range(10)]
    names = [*written, *[f"doomed {name}" for name in written]]
    assert [kept(store, name) for name in names] == [filed(path, name) for name in names]


def test_a_thread_that_has_written_can_look_up_what_it_wrote(store: SqliteStore) -> None:
    memory = Memory(store)
    missing: list[str] = []

    def write_and_look(thread: int) -> None:
        for number in range(25):
            name = f"{thread}.{number}"
            entities.create(memory, [EntityDraft(name, "x")], by="ann")
            if not store.look_up(name).entities:
                missing.append(name)

    threads = [threading.Thread(target=write_and_look, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == []


def test_a_commit_that_the_disk_does_not_confirm_is_not_carried_over(path: str, eager: None) -> None:
    disk = SqliteDisk()
    try:
        store = SqliteStore(path)
        entities.create(Memory(store), [EntityDraft("A", "x")], by="ann")
        store.look_up("A")
        disk.fail()
        with pytest.raises(StoreError):
            entities.create(Memory(store), [EntityDraft("B", "x")], by="ann")
        disk.heal()
        assert (kept(store, "A"), kept(store, "B")) == (filed(path, "A"), Graph([], []))
        store.close()
    finally:
        disk.unregister()


def test_a_store_that_weighs_too_much_has_no_replica(path: str, eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST", 10_000)
    store = SqliteStore(path)
    entities.create(Memory(store), [EntityDraft("A", "x", ("x" * 10_000,))], by="ann")
    store.look_up("A")
    assert kept(store, "A") is None
    store.close()


def test_a_replica_that_grows_too_heavy_is_let_go(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST", 10_000)
    observations.add(Memory(store), [ObservationDraft("A", ("x" * 10_000,))], by="ann", skip_repeats=True)
    assert kept(store, "A") is None
    assert store.look_up("A").entities[0].texts[-1] == "x" * 10_000


def test_a_sound_entity_of_a_damaged_store_can_still_be_read(path: str, eager: None) -> None:
    store = SqliteStore(path)
    entities.create(Memory(store), [EntityDraft("A", "x", ("one",)), EntityDraft("B", "x", ("two",))], by="ann")
    connection = apsw.Connection(path)
    connection.execute("UPDATE observations SET content = CAST(x'ff' AS TEXT) WHERE content = 'two'")
    connection.close()
    assert [store.look_up("A").entities[0].texts for _ in range(3)] == [("one",)] * 3
    with pytest.raises(StoreError):
        store.look_up("B")
    store.close()


def test_a_closed_store_is_not_answered_for(store: SqliteStore) -> None:
    store.close()
    assert kept(store, "A") is None


def test_a_head_that_is_being_written_is_never_the_next() -> None:
    first, second = (bytes(8) + number.to_bytes(4, sys.byteorder) + bytes(36) for number in (7, 8))
    assert is_next(first * 2, second * 2)
    assert not is_next(first * 2, first + second)
    assert not is_next(first * 2, first * 2)


class ReplicaMachine(StoreMachine):
    """What the model does, with a replica that is made at once, and another store on the same file."""

    kind = "sqlite"

    @rule(drafts=DRAFTS)
    def another_creates(self, drafts: list[EntityDraft]) -> None:
        other = SqliteStore(self.url)
        entities.create(Memory(other), drafts, by="other")
        other.close()
        entities.create(self.oracle, drafts, by="other")

    @invariant()
    def replica_and_file_agree(self) -> None:
        store = self.memory.store
        assert isinstance(store, SqliteStore)
        for name in ("a", "A", "abc", "É", "", "straße"):
            assert store.look_up(name) == filed(self.url, name)
            assert kept(store, name) is not None


def test_replica_and_file_agree_whatever_is_done(eager: None) -> None:
    profile = settings(max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(ReplicaMachine, settings=profile)


def _rows(store: SqliteStore) -> Rows:
    """All there is, to be deleted."""
    with store.reading() as read:
        return Rows(entities=tuple(read.entities()), relations=tuple(read.relations()))
