"""A read ends when its client has left, and the store is as good as before."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polymnia.engine.graph import entities, traverse
from polymnia.engine.memory import Memory
from polymnia.errors import Cancelled
from polymnia.model import EntityDraft
from polymnia.stores.contract import CANCELLED
from polymnia.stores.open import open_store

MANY = 3000


@pytest.fixture(params=["memory.db", "memory.jsonl"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = open_store(str(tmp_path / request.param))
    yield Memory(store)
    store.close()


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Memory]:
    store = open_store(str(tmp_path / "memory.db"))
    memory = Memory(store)
    entities.create(
        memory, [EntityDraft(f"e{number}", "thing", ("fact",)) for number in range(MANY)], by="test"
    )
    yield memory
    store.close()


@contextmanager
def limited(cancelled: Callable[[], bool]) -> Iterator[None]:
    token = CANCELLED.set(cancelled)
    try:
        yield
    finally:
        CANCELLED.reset(token)


def test_a_read_that_nobody_waits_for_ends(large: Memory) -> None:
    with limited(lambda: True), pytest.raises(Cancelled):
        entities.read_all(large)


def test_after_an_interrupted_read_the_store_answers(large: Memory) -> None:
    for _ in range(20):
        with limited(lambda: True), pytest.raises(Cancelled):
            entities.read_all(large)
    assert len(entities.read_all(large).entities) == MANY


def test_a_read_asks_again_and_again_whether_it_is_wanted(large: Memory) -> None:
    asked = itertools.count()
    with limited(lambda: next(asked) < 0):
        entities.read_all(large)
    assert next(asked) > 10


def test_a_write_that_nobody_waits_for_is_not_made(memory: Memory) -> None:
    with limited(lambda: True), pytest.raises(Cancelled):
        entities.create(memory, [EntityDraft("Ada", "person")], by="test")
    assert entities.read_all(memory).entities == []


def test_a_traversal_that_nobody_waits_for_ends(memory: Memory) -> None:
    entities.create(memory, [EntityDraft("Ada", "person")], by="test")
    with limited(lambda: True), pytest.raises(Cancelled):
        traverse.neighbourhood(memory, "Ada", 3)
