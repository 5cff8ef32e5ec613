"""PgBouncer in front of the database, in session and in transaction mode."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.model import EntityDraft, FactAddition
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from tests.pgbouncer import pooled

ME = "test"


@pytest.fixture(params=["session", "transaction"])
def url(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[str]:
    with pooled(postgres_database, request.param) as url:
        yield url


def add(store: Store, text: str) -> None:
    facts.add(Memory(store), [FactAddition("Ann", (text,))], by=ME, skip_repeats=False)


def test_writers_and_readers_work_behind_a_pooler(url: str) -> None:
    first, second = open_store(url), open_store(f"{url}?connections=3")
    entities.create(Memory(first), [EntityDraft("Ann", "person")], by=ME)
    with ThreadPoolExecutor(6) as pool:
        for number in range(12):
            pool.submit(add, (first, second)[number % 2], f"text {number}")
    (ann,) = entities.open_named(Memory(second), ["Ann"]).entities
    assert sorted(ann.texts) == sorted(f"text {number}" for number in range(12))
    assert [hit.name for hit in search.containing(Memory(first), "text 7").entities] == ["Ann"]
    entities.delete(Memory(first), ["Ann"], by=ME)
    assert len(trash.items(Memory(first))) == 1
    assert first.purge(None).entities == 1
    assert first.check() == []
    first.close()
    second.close()


def test_a_snapshot_stays_the_same_behind_a_pooler(url: str) -> None:
    store, other = open_store(url), open_store(f"{url}?connections=3")
    entities.create(Memory(store), [EntityDraft("Ann", "person")], by=ME)
    with store.reading() as read:
        assert read.counts().facts == 0
        add(other, "tea")
        assert read.counts().facts == 0
    with store.reading() as read:
        assert read.counts().facts == 1
    store.close()
    other.close()


def test_changes_arrive_behind_a_pooler(url: str) -> None:
    store, other = open_store(url), open_store(f"{url}?connections=3")
    entities.create(Memory(store), [EntityDraft("Ann", "person")], by=ME)
    read_changes = other.follow()
    add(store, "tea")
    found = read_changes()
    assert [change.operation for change in found] == ["add_observations"]
    store.close()
    other.close()


def test_a_lease_is_held_behind_a_pooler(url: str) -> None:
    store, other = open_store(url), open_store(f"{url}?connections=3")
    assert store.vectors.lease("index", 60)
    assert not other.vectors.lease("index", 60)
    store.close()
    other.close()
