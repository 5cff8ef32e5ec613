"""How often the PostgreSQL store waits for the server.

Over a network each wait costs more than the statements.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.graph import entities, facts, relations, traverse
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
from polymnia.stores.postgres.connection import Pipeline, Row
from tests.postgres import new_workspace

ME = "test"


def _open_one(memory: Memory) -> object:
    return entities.open_named(memory, ["Ada"])


def _open_two(memory: Memory) -> object:
    return entities.open_named(memory, ["Ada", "Bob"])


def _create(memory: Memory) -> object:
    return entities.create(memory, [EntityDraft("Eve", "person", ("likes tea",))], by=ME)


def _add(memory: Memory) -> object:
    return facts.add(memory, [FactAddition("Ada", ("likes chess",))], by=ME, skip_repeats=True)


def _relate(memory: Memory) -> object:
    return relations.create(memory, [Relation("Bob", "Ada", "knows")], by=ME)


def _upsert(memory: Memory) -> object:
    return entities.upsert(
        memory, [EntityDraft("Ada", "person", ("sings",)), EntityDraft("Eve", "person")], by=ME
    )


def _remember(memory: Memory) -> object:
    return remember(memory, [EntityFacts(name="Ada", facts=(FactDraft("likes rain"),))], by=ME)


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        pytest.param(_open_one, 3, id="open one"),
        pytest.param(_open_two, 3, id="open two"),
        pytest.param(_create, 3, id="create"),
        pytest.param(_add, 2, id="add observations"),
        pytest.param(_relate, 2, id="create relations"),
        pytest.param(_upsert, 3, id="upsert"),
        pytest.param(_remember, 2, id="remember"),
    ],
)
def test_frequent_calls_wait_for_the_server_two_or_three_times(
    monkeypatch: pytest.MonkeyPatch, verb: Callable[[Memory], object], expected: int
) -> None:
    memory = Memory(open_store(new_workspace()))
    entities.create(
        memory, [EntityDraft(name, "person", ("was here",)) for name in ("Ada", "Bob")], by=ME
    )
    relations.create(memory, [Relation("Ada", "Bob", "knows")], by=ME)
    waits = _count_waits(monkeypatch)
    verb(memory)
    memory.store.close()
    assert len(waits) == expected


def test_a_path_takes_as_many_waits_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(open_store(new_workspace()))
    names = [f"n{number}" for number in range(40)]
    entities.create(memory, [EntityDraft(name, "place") for name in names], by=ME)
    links = [Relation(one, other, "next") for one, other in pairwise(names)]
    relations.create(memory, links, by=ME)
    waits = _count_waits(monkeypatch)
    assert traverse.shortest_path(memory, "n0", "n39").names == names
    memory.store.close()
    assert len(waits) == 4


def _count_waits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    waits: list[str] = []
    fetch, end = Pipeline.fetch, Pipeline.end

    def counted_fetch(self: Pipeline) -> list[list[Row]]:
        waits.append("fetch")
        return fetch(self)

    def counted_end(self: Pipeline) -> list[list[Row]]:
        waits.append("end")
        return end(self)

    monkeypatch.setattr(Pipeline, "fetch", counted_fetch)
    monkeypatch.setattr(Pipeline, "end", counted_end)
    return waits
