"""A reading inside another one is the same snapshot, on every kind of store."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores import open_store


def create(memory: Memory, name: str) -> None:
    entities.create(memory, [EntityDraft(name, "person")], by="test")


def is_known(memory: Memory, name: str) -> bool:
    with memory.reading() as read:
        return bool(read.existing_names([name]))


def test_a_reading_inside_another_one_gets_its_reader(memory: Memory) -> None:
    with memory.reading() as outer, memory.reading(may_lag=True) as inner:
        assert inner is outer


def test_a_reading_after_a_write_sees_it_even_inside_a_reading(memory: Memory) -> None:
    if memory.store.url == ":memory:":
        pytest.skip("the only connection reads")
    with memory.reading() as read:
        read.existing_names(["Ann"])
        create(memory, "Ann")
        assert is_known(memory, "Ann")
    assert is_known(memory, "Ann")


def test_the_reading_of_another_thread_is_not_shared(versioned_url: str) -> None:
    memory = Memory(open_store(versioned_url))
    with memory.reading() as read, ThreadPoolExecutor(1) as other:
        assert not read.existing_names(["Ann"])
        other.submit(create, memory, "Ann").result()
        assert other.submit(is_known, memory, "Ann").result()
        assert not is_known(memory, "Ann")  # still the snapshot from before
    assert is_known(memory, "Ann")
    memory.store.close()


def test_a_reading_that_fails_ends_for_the_next_one(memory: Memory) -> None:
    with pytest.raises(KeyError), memory.reading():
        raise KeyError
    create(memory, "Ann")
    assert is_known(memory, "Ann")
