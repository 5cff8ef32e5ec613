"""Observations on every store: adding and removing."""

import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import EntityDraft, FactAddition
from tests.behaviour.graphs import ME, create, ordinals, texts


def add(
    memory: Memory, *additions: FactAddition, skip_repeats: bool = True
) -> list[tuple[str, ...]]:
    added = facts.add(memory, additions, by=ME, skip_repeats=skip_repeats)
    return [tuple(fact.text for fact in group.facts) for group in added]


def test_added_facts_follow_the_others(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    assert add(memory, FactAddition("Alice", ("b", "c"))) == [("b", "c")]
    assert texts(memory, "Alice") == ("a", "b", "c")


def test_known_texts_are_skipped_on_request(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    assert add(memory, FactAddition("Alice", ("a", "b", "b"))) == [("b",)]


def test_known_texts_are_added_again_when_not_skipped(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    assert add(memory, FactAddition("Alice", ("a", "b", "b")), skip_repeats=False) == [
        ("a", "b", "b")
    ]
    assert texts(memory, "Alice") == ("a", "a", "b", "b")


def test_one_call_may_add_to_an_entity_twice(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person"), EntityDraft("Bob", "person"))
    added = add(
        memory,
        FactAddition("Alice", ("a",)),
        FactAddition("Bob", ("a",)),
        FactAddition("Alice", ("a", "b")),
    )
    assert added == [("a",), ("a",), ("b",)]
    assert texts(memory, "Alice") == ("a", "b")


def test_an_unknown_name_stops_the_whole_call(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    with pytest.raises(EntityNotFound, match="Entity with name Nobody not found"):
        add(memory, FactAddition("Alice", ("b",)), FactAddition("Nobody", ("c",)))
    assert texts(memory, "Alice") == ("a",)


def test_the_memory_still_works_after_a_failed_call(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person"))
    with pytest.raises(EntityNotFound):
        add(memory, FactAddition("Nobody", ("c",)))
    assert add(memory, FactAddition("Alice", ("b",))) == [("b",)]


def test_removing_a_text_removes_every_fact_with_it(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a", "b", "a", "c")))
    facts.remove(memory, [("Alice", ("a", "c"))], by=ME)
    assert texts(memory, "Alice") == ("b",)


def test_removing_ignores_unknown_names_and_texts(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    removed = facts.remove(memory, [("Nobody", ("a",)), ("Alice", ("z",))], by=ME)
    assert [(item.facts, item.missing) for item in removed] == [((), ("a",)), ((), ("z",))]
    assert texts(memory, "Alice") == ("a",)


def test_an_ordinal_is_never_reused(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a", "b", "c")))
    facts.remove(memory, [("Alice", ("b", "c"))], by=ME)
    add(memory, FactAddition("Alice", ("d",)))
    assert ordinals(memory, "Alice") == [1, 4]


def test_a_removed_text_can_be_added_again(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a", "b")))
    facts.remove(memory, [("Alice", ("a",))], by=ME)
    add(memory, FactAddition("Alice", ("a",)))
    assert texts(memory, "Alice") == ("b", "a")


def test_an_entity_is_updated_when_its_facts_change(memory: Memory) -> None:
    (created,) = create(memory, EntityDraft("Alice", "person"))
    add(memory, FactAddition("Alice", ("a",)))
    (alice,) = entities.open_named(memory, ["Alice"]).entities
    assert alice.updated_at >= alice.facts[0].created_at >= created.created_at
