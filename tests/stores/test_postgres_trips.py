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
from tests.postgres import new_workspace
from tests.stores.proxy import proxied

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
    verb: Callable[[Memory], object], expected: int
) -> None:
    with proxied(new_workspace()) as (proxy, url):
        memory = Memory(open_store(url))
        drafts = [EntityDraft(name, "person", ("was here",)) for name in ("Ada", "Bob")]
        entities.create(memory, drafts, by=ME)
        relations.create(memory, [Relation("Ada", "Bob", "knows")], by=ME)
        before = proxy.trips
        verb(memory)
        assert proxy.trips - before == expected
        memory.store.close()


def test_a_path_takes_as_many_waits_however_long_it_is() -> None:
    with proxied(new_workspace()) as (proxy, url):
        memory = Memory(open_store(url))
        names = [f"n{number}" for number in range(40)]
        entities.create(memory, [EntityDraft(name, "place") for name in names], by=ME)
        links = [Relation(one, other, "next") for one, other in pairwise(names)]
        relations.create(memory, links, by=ME)
        before = proxy.trips
        assert traverse.shortest_path(memory, "n0", "n39").names == names
        assert proxy.trips - before == 4
        memory.store.close()
