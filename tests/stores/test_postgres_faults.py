"""Backends die, answers are lost, the network stalls, servers change.

No write is lost, and none is made twice.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from threading import Event

import psycopg
import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import Cancelled, ChangeInDoubt, StoreBusy, StoreError, StoreUnavailable
from polymnia.model import Change, ChangeQuery, EntityDraft, FactAddition
from polymnia.stores import open_store
from polymnia.stores.contract.reads import CANCELLED
from polymnia.stores.postgres.catalogue import PostgresCatalogue
from tests.postgres import new_workspace, shared_server
from tests.stores.proxy import Proxy, proxied

ME = "test"
ANN = EntityDraft("Ann", "person")


class Faulty:
    """A memory behind a proxy."""

    def __init__(self, memory: Memory, proxy: Proxy, url: str) -> None:
        self.memory = memory
        self.proxy = proxy
        self.url = url

    def add(self, text: str) -> None:
        facts.add(self.memory, [FactAddition("Ann", (text,))], by=ME, skip_repeats=False)

    def texts(self) -> tuple[str, ...]:
        (ann,) = entities.open_named(self.memory, ["Ann"]).entities
        return ann.texts

    def changes(self) -> list[Change]:
        with self.memory.reading() as read:
            return read.history.changes(ChangeQuery(limit=None))[::-1]


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    with proxied(f"{new_workspace()}&timeout=2&connections=2") as (proxy, url):
        store = open_store(url)
        memory = Memory(store)
        entities.create(memory, [ANN], by=ME)
        yield Faulty(memory, proxy, url)
        store.close()


def test_connections_that_were_lost_while_idle_are_replaced(faulty: Faulty) -> None:
    for _ in range(3):
        faulty.proxy.cut()
        assert faulty.texts() == ()
    faulty.proxy.cut()
    faulty.add("tea")
    assert faulty.texts() == ("tea",)


def test_a_commit_whose_request_was_lost_is_made_once(faulty: Faulty) -> None:
    faulty.proxy.lose_request = True
    faulty.add("tea")
    assert not faulty.proxy.lose_request
    assert faulty.texts() == ("tea",)
    assert [change.id for change in faulty.changes()] == [1, 2]
    assert faulty.memory.store.check() == []


def test_a_commit_whose_answer_was_lost_is_made_once(faulty: Faulty) -> None:
    faulty.proxy.lose_answer = True
    faulty.add("tea")
    assert not faulty.proxy.lose_answer
    assert faulty.texts() == ("tea",)
    assert [change.id for change in faulty.changes()] == [1, 2]
    assert faulty.memory.store.check() == []


def test_what_was_refused_is_not_there_although_backends_end_at_random_moments(
    postgres_database: str,
) -> None:
    """A backend may end right after its commit: that write was made."""
    store = open_store(f"{postgres_database}?timeout=10")
    memory = Memory(store)
    entities.create(memory, [ANN], by=ME)
    refused: list[str] = []
    done = Event()

    def write(writer: int) -> list[str]:
        acknowledged = []
        for number in range(25):
            draft = FactAddition("Ann", (f"{writer}/{number}",))
            try:
                facts.add(memory, [draft], by=ME, skip_repeats=False)
                acknowledged.append(draft.texts[0])
            except ChangeInDoubt:
                pass  # honest: it may be there or not
            except StoreError:
                refused.append(draft.texts[0])
        return acknowledged

    def end_backends() -> None:
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            while not done.wait(0.03):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    with ThreadPoolExecutor(4) as pool:
        ending = pool.submit(end_backends)
        acknowledged = [text for texts in pool.map(write, range(3)) for text in texts]
        done.set()
        ending.result()
    (ann,) = entities.open_named(memory, ["Ann"]).entities
    stored = set(ann.texts)
    assert set(acknowledged) <= stored
    assert len(stored) == len(ann.texts)
    assert stored.isdisjoint(refused)
    store.close()


def test_a_client_is_told_if_nobody_knows_whether_its_change_was_made(faulty: Faulty) -> None:
    with pytest.raises(ChangeInDoubt) as raised, faulty.memory.store.writing() as writer:
        writer.apply(Change("test", ME, writer.clock()))
        faulty.proxy.close()
    assert "check whether the change was saved" in raised.value.public


def test_a_workspace_whose_creation_was_not_confirmed_may_exist(faulty: Faulty) -> None:
    catalogue = PostgresCatalogue(faulty.url)
    name = f"test-{token_hex(8)}"
    faulty.proxy.lose_answer = True
    with pytest.raises(ChangeInDoubt, match="check whether the change was saved"):
        catalogue.create(name)
    assert catalogue.find(name).name == name
    catalogue.close()


def test_a_lost_commit_is_not_repeated_after_the_change_of_another_server(faulty: Faulty) -> None:
    """The verb read what is no longer so: only it can decide again."""
    other = Memory(open_store(faulty.url))
    with (
        pytest.raises(StoreBusy, match="nothing was changed, try again"),
        faulty.memory.store.writing() as writer,
    ):
        writer.apply(Change("test", ME, writer.clock()))
        faulty.proxy.cut()
        entities.create(other, [EntityDraft("Ben", "person")], by=ME)
    assert [change.operation for change in faulty.changes()] == [
        "create_entities",
        "create_entities",
    ]
    other.store.close()


def test_a_connection_lost_during_a_read_is_an_error_that_can_be_retried(faulty: Faulty) -> None:
    with pytest.raises(StoreUnavailable, match="try again"), faulty.memory.reading() as read:
        read.counts()
        faulty.proxy.cut()
        read.counts()
    assert faulty.texts() == ()


def test_a_stalled_network_does_not_hold_a_call_for_ever(faulty: Faulty) -> None:
    faulty.proxy.stall()
    with pytest.raises(StoreUnavailable):
        faulty.texts()
    faulty.proxy.resume()
    faulty.proxy.cut()
    assert faulty.texts() == ()


def test_a_read_that_nobody_wants_any_more_is_cancelled(faulty: Faulty) -> None:
    faulty.proxy.stall()
    limits = CANCELLED.set(lambda: True)
    try:
        with pytest.raises(Cancelled):
            faulty.texts()
    finally:
        CANCELLED.reset(limits)
        faulty.proxy.resume()
    assert faulty.texts() == ()


def test_a_server_that_cannot_be_reached_is_named_without_the_password() -> None:
    with proxied(shared_server()) as (proxy, url):
        proxy.close()
        with pytest.raises(StoreUnavailable) as raised:
            open_store(url)
    password = url.partition("postgres:")[2].partition("@")[0]
    assert f"127.0.0.1:{proxy.port}" in str(raised.value)
    assert not password or password not in str(raised.value)


def test_a_second_address_takes_over(faulty: Faulty) -> None:
    with proxied(new_workspace()) as (first, url), proxied(shared_server()) as (second, _):
        store = open_store(
            url.replace(f":{first.port}/", f":{first.port},127.0.0.1:{second.port}/")
        )
        memory = Memory(store)
        entities.create(memory, [ANN], by=ME)
        first.close()
        entities.create(memory, [EntityDraft("Ben", "person")], by=ME)
        assert [entity.name for entity in entities.read_all(memory).entities] == ["Ann", "Ben"]
        store.close()


def test_a_call_that_finds_no_free_connection_says_so(faulty: Faulty) -> None:
    with proxied(f"{new_workspace()}&timeout=1&connections=1") as (_, url):
        store = open_store(url)
        with store.reading() as read, ThreadPoolExecutor(1) as other:
            read.counts()
            waiting = other.submit(entities.read_all, Memory(store))
            with pytest.raises(StoreUnavailable, match="no connection became free"):
                waiting.result()
        with store.reading() as read:
            assert read.counts().entities == 0
        store.close()


def test_a_purge_does_not_wait_for_a_table_that_another_server_maintains(faulty: Faulty) -> None:
    entities.delete(faulty.memory, ["Ann"], by=ME)
    with psycopg.connect(shared_server()) as other:
        other.execute("LOCK TABLE polymnia.cards IN SHARE UPDATE EXCLUSIVE MODE")
        assert faulty.memory.store.purge(faulty.changes()[-1].at + 1).entities == 1


def test_writers_that_wait_for_one_another_hold_no_connection(faulty: Faulty) -> None:
    holds, done = Event(), Event()

    def hold() -> None:
        with faulty.memory.store.writing():
            holds.set()
            done.wait(30)

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(hold)]
        holds.wait(30)
        running += [pool.submit(faulty.add, f"text {number}") for number in range(3)]
        assert faulty.texts() == ()
        done.set()
        for item in running:
            item.result()
    assert sorted(faulty.texts()) == ["text 0", "text 1", "text 2"]
