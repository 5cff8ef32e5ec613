"""How often the PostgreSQL store waits for the server.

Over a network each wait costs more than the statements.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.graph import entities, facts, relations, traverse
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
from polymnia.stores.postgres import database
from tests.growth.counting import client_of, fill
from tests.postgres import new_database, new_workspace, shared_server
from tests.stores.proxy import Requests, proxied

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


# How often a tool of the default dialect may wait for the server, for a project and a personal
# workspace.
TOOL_TRIPS: list[tuple[str, dict[str, Any], int]] = [
    ("open", {"names": ["Known 3"]}, 5),
    ("recall", {"query": "who keeps the qx4jw register"}, 12),
    ("briefing", {}, 10),
    ("remember", {"entities": [{"name": "Known 2", "facts": ["was seen today"]}]}, 4),
    ("remember", {"entities": [{"name": "Zoe", "type": "cat", "facts": ["sleeps"]}]}, 5),
]


def test_a_request_that_arrives_in_pieces_is_one_wait() -> None:
    start = b"\x00\x00\x00\x09\x00\x03\x00\x00\x00"
    flushed = b"B\x00\x00\x00\x06ab" + b"H\x00\x00\x00\x04"
    synced = b"S\x00\x00\x00\x04" + b"H\x00\x00\x00\x04"  # the flush asks for nothing new
    messages = start + flushed + synced
    requests = Requests()
    assert sum(requests.count_waits(bytes([byte])) for byte in messages) == 2


def test_a_tool_waits_for_the_server_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every five seconds a call also looks whether the schema has changed.
    monkeypatch.setattr(database, "_SCHEMA_CHECK_S", 1e9)
    with (
        new_database(shared_server()) as server,
        proxied(server) as (proxy, url),
        client_of("native", url) as client,
    ):
        for workspace in ("shop", "personal"):
            client.session.server.workspaces.create(workspace)
        fill(f"{server}?workspace=shop", 20)
        client.session.client.workspace = "shop"
        client.text("remember", {"entities": [{"name": "Known 4", "facts": ["was here"]}]})
        client.text("briefing")  # now both workspaces are open
        counted = []
        for tool, arguments, most in TOOL_TRIPS:
            before = proxy.trips
            client.text(tool, arguments)
            counted.append((tool, proxy.trips - before, most))
    assert [(tool, trips) for tool, trips, most in counted if trips > most] == []


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        pytest.param(_open_one, 2, id="open one"),
        pytest.param(_open_two, 2, id="open two"),
        pytest.param(_create, 2, id="create"),
        pytest.param(_add, 2, id="add observations"),
        pytest.param(_relate, 2, id="create relations"),
        pytest.param(_upsert, 2, id="upsert"),
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
