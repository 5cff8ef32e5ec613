"""Versions of an entity: what differs from now and why, and bringing one back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import facts, relations
from polymnia.engine.graph.entities import open_named
from polymnia.engine.history.undo import undo
from polymnia.engine.history.versions import compare, restore_version, versions
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
from tests.behaviour.graphs import create, texts
from tests.conftest import STORES, WITH_HISTORY


@pytest.fixture(params=WITH_HISTORY)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = open_store(STORES[request.param](tmp_path))
    memory = Memory(store)
    create(memory, EntityDraft("Ann", "person", ("tea", "Oslo", "sails")), EntityDraft("Ben", "x"))
    relations.create(memory, [Relation("Ann", "Ben", "knows")], by="codex")
    revise(memory, "Ann", Revision(replace=(Edit(1, "coffee"),), add_tags=("vip",)), by="cursor")
    forget(memory, Unwanted(facts=(("Ann", 2),)), by="claude")
    forget(memory, Unwanted(relations=(Relation("Ann", "Ben", "knows"),)), by="claude")
    facts.add(memory, [FactAddition("Ann", ("skis",))], by="codex", skip_repeats=False)
    yield memory
    store.close()


def test_every_difference_names_its_change(memory: Memory) -> None:
    heads = versions(memory, "Ann")
    assert [head.id for head in heads] == [1, 2, 3, 4, 5, 6]
    comparison = compare(memory, "Ann", heads[1].at)
    assert comparison is not None
    facts = [(fact.how, fact.ordinal, fact.cause and fact.cause.id) for fact in comparison.facts]
    assert facts == [("changed", 1, 3), ("gone", 2, 4), ("same", 3, None), ("came", 4, 6)]
    (relation,) = comparison.relations
    assert (relation.how, relation.cause and relation.cause.id) == ("gone", 5)
    assert compare(memory, "Ann", heads[0].at - 1) is None


def test_a_version_comes_back_as_one_change(memory: Memory) -> None:
    at = versions(memory, "Ann")[1].at
    change = restore_version(memory, "Ann", at, by="me")
    assert texts(memory, "Ann") == ("tea", "Oslo", "sails", "skis")
    graph = open_named(memory, ["Ann"])
    assert graph.entities[0].tags == ()
    assert [item.key for item in graph.relations] == [("Ann", "Ben", "knows")]
    assert restore_version(memory, "Ann", at, by="me") == 0
    undo(memory, [change], by="me")
    assert texts(memory, "Ann") == ("coffee", "sails", "skis")


def test_a_version_comes_back_exactly_or_one_fact_of_it(memory: Memory) -> None:
    at = versions(memory, "Ann")[0].at
    restore_version(memory, "Ann", at, by="me", ordinals=[2])
    assert texts(memory, "Ann") == ("coffee", "Oslo", "sails", "skis")
    restore_version(memory, "Ann", at, by="me", exact=True)
    assert texts(memory, "Ann") == ("tea", "Oslo", "sails")
    with pytest.raises(BadInput):
        restore_version(memory, "Ann", at - 1, by="me")


def test_a_renamed_entity_keeps_its_versions(memory: Memory) -> None:
    at = versions(memory, "Ann")[0].at
    revise(memory, "Ann", Revision(name="Anna"), by="cursor")
    comparison = compare(memory, "Anna", at)
    assert comparison is not None
    assert (comparison.then.name, comparison.now and comparison.now.name) == ("Ann", "Anna")
    restore_version(memory, "Anna", at, by="me")
    assert texts(memory, "Anna") == ("tea", "Oslo", "sails", "skis")
