"""Upsert, merge and compact on every store."""

import pytest

from polymnia.engine.facts.merge import merge
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import EntityDraft
from tests.behaviour.graphs import ME, create, keys, link, names, texts


def upsert(memory: Memory, *drafts: EntityDraft) -> list[tuple[str, bool, tuple[str, ...]]]:
    return [
        (item.name, item.created, item.added) for item in entities.upsert(memory, drafts, by=ME)
    ]


def test_an_upsert_creates_new_entities(memory: Memory) -> None:
    assert upsert(memory, EntityDraft("A", "x", ("a", "a"))) == [("A", True, ("a",))]
    assert texts(memory, "A") == ("a",)


def test_an_upsert_adds_missing_facts_and_keeps_the_type(memory: Memory) -> None:
    create(memory, EntityDraft("A", "x", ("a",)))
    assert upsert(memory, EntityDraft("A", "y", ("b", "a", "b"))) == [("A", False, ("b",))]
    (entity,) = entities.open_named(memory, ["A"]).entities
    assert (entity.type, entity.texts) == ("x", ("a", "b"))


def test_an_upsert_may_name_an_entity_twice(memory: Memory) -> None:
    create(memory, EntityDraft("B", "x"))
    results = upsert(
        memory,
        EntityDraft("A", "x", ("a",)),
        EntityDraft("B", "x", ("a",)),
        EntityDraft("A", "y", ("a", "b")),
        EntityDraft("B", "x", ("b",)),
    )
    assert results == [
        ("A", True, ("a",)),
        ("B", False, ("a",)),
        ("A", False, ("b",)),
        ("B", False, ("b",)),
    ]
    assert (texts(memory, "A"), texts(memory, "B")) == (("a", "b"), ("a", "b"))


def test_repeating_an_upsert_changes_nothing(memory: Memory) -> None:
    upsert(memory, EntityDraft("A", "x", ("a",)))
    before = entities.read_all(memory)
    assert upsert(memory, EntityDraft("A", "x", ("a",))) == [("A", False, ())]
    assert entities.read_all(memory) == before


def test_a_merge_moves_facts_and_relations_and_deletes_the_source(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Alice", "person", ("a", "b")),
        EntityDraft("Alicia", "person", ("b", "c")),
        EntityDraft("Bob", "person"),
    )
    link(memory, ("Alice", "Bob", "knows"), ("Bob", "Alice", "likes"), ("Bob", "Alicia", "likes"))
    merged = merge(memory, ["Alice"], "Alicia", by=ME)
    assert (merged.facts, merged.known, merged.relations) == (1, 1, 1)
    graph = entities.read_all(memory)
    assert (names(graph), texts(memory, "Alicia")) == (["Alicia", "Bob"], ("b", "c", "a"))
    assert sorted(keys(graph)) == [("Alicia", "Bob", "knows"), ("Bob", "Alicia", "likes")]


def test_a_merge_deletes_relations_between_the_two(memory: Memory) -> None:
    create(memory, EntityDraft("A", "x"), EntityDraft("B", "x"))
    link(memory, ("A", "B", "r"), ("B", "A", "r"), ("A", "A", "r"), ("A", "C", "r"))
    merge(memory, ["A"], "B", by=ME)
    assert keys(entities.read_all(memory)) == [("B", "C", "r")]


@pytest.mark.parametrize(("source", "target"), [("A", "Nobody"), ("Nobody", "A")])
def test_both_entities_of_a_merge_must_exist(memory: Memory, source: str, target: str) -> None:
    create(memory, EntityDraft("A", "x", ("a",)))
    with pytest.raises(EntityNotFound, match="Nobody"):
        merge(memory, [source], target, by=ME)
    assert texts(memory, "A") == ("a",)


def test_an_entity_cannot_be_merged_with_itself(memory: Memory) -> None:
    create(memory, EntityDraft("A", "x", ("a",)))
    with pytest.raises(BadInput, match="the same entity"):
        merge(memory, ["A"], "A", by=ME)
    assert texts(memory, "A") == ("a",)


def test_compacting_keeps_the_graph(memory: Memory) -> None:
    create(memory, *[EntityDraft(f"e{number}", "x", ("a", "b")) for number in range(20)])
    link(memory, ("e1", "e2", "r"), ("e3", "e4", "r"))
    entities.delete(memory, [f"e{number}" for number in range(4, 20)], by=ME)
    before = entities.read_all(memory)
    memory.store.compact()
    assert entities.read_all(memory) == before
