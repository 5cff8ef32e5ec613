"""Versions of an entity: what differs from now and why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import facts, relations
from polymnia.engine.history.versions import compare, versions
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
from tests.behaviour.graphs import create
from tests.conftest import STORES, VERSIONED


@pytest.fixture(params=VERSIONED)
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


def test_a_renamed_entity_keeps_its_versions(memory: Memory) -> None:
    at = versions(memory, "Ann")[0].at
    revise(memory, "Ann", Revision(name="Anna"), by="cursor")
    comparison = compare(memory, "Anna", at)
    assert comparison is not None
    assert (comparison.then.name, comparison.now and comparison.now.name) == ("Ann", "Anna")
