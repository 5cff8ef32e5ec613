"""Observations on every store: adding and removing."""

import pytest

from polymnia.engine import entities, observations
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Draft, Texts
from tests.behaviour.graphs import ME, create, ordinals, texts


def add(memory: Memory, *additions: Texts, skip_repeats: bool = True) -> list[tuple[str, ...]]:
    added = observations.add(memory, additions, by=ME, skip_repeats=skip_repeats)
    return [tuple(each.text for each in noted.observations) for noted in added]


def test_added_observations_follow_the_others(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a",)))
    assert add(memory, Texts("Alice", ("b", "c"))) == [("b", "c")]
    assert texts(memory, "Alice") == ("a", "b", "c")


def test_known_texts_are_skipped_when_asked(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a",)))
    assert add(memory, Texts("Alice", ("a", "b", "b"))) == [("b",)]


def test_known_texts_are_added_again_when_not_skipped(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a",)))
    assert add(memory, Texts("Alice", ("a", "b", "b")), skip_repeats=False) == [("a", "b", "b")]
    assert texts(memory, "Alice") == ("a", "a", "b", "b")


def test_one_call_may_add_to_an_entity_twice(memory: Memory) -> None:
    create(memory, Draft("Alice", "person"), Draft("Bob", "person"))
    added = add(memory, Texts("Alice", ("a",)), Texts("Bob", ("a",)), Texts("Alice", ("a", "b")))
    assert added == [("a",), ("a",), ("b",)]
    assert texts(memory, "Alice") == ("a", "b")


def test_an_unknown_name_stops_the_whole_call(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a",)))
    with pytest.raises(EntityNotFound, match="Entity with name Nobody not found"):
        add(memory, Texts("Alice", ("b",)), Texts("Nobody", ("c",)))
    assert texts(memory, "Alice") == ("a",)


def test_the_memory_works_on_after_a_call_that_failed(memory: Memory) -> None:
    create(memory, Draft("Alice", "person"))
    with pytest.raises(EntityNotFound):
        add(memory, Texts("Nobody", ("c",)))
    assert add(memory, Texts("Alice", ("b",))) == [("b",)]


def test_removing_takes_every_observation_with_that_text(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a", "b", "a", "c")))
    observations.remove(memory, [Texts("Alice", ("a", "c"))], by=ME)
    assert texts(memory, "Alice") == ("b",)


def test_removing_passes_over_unknown_names_and_texts(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a",)))
    removed = observations.remove(memory, [Texts("Nobody", ("a",)), Texts("Alice", ("z",))], by=ME)
    assert (removed, texts(memory, "Alice")) == ([], ("a",))


def test_an_ordinal_is_never_given_twice(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a", "b", "c")))
    observations.remove(memory, [Texts("Alice", ("b", "c"))], by=ME)
    add(memory, Texts("Alice", ("d",)))
    assert ordinals(memory, "Alice") == [1, 4]


def test_a_removed_text_can_be_added_again(memory: Memory) -> None:
    create(memory, Draft("Alice", "person", ("a", "b")))
    observations.remove(memory, [Texts("Alice", ("a",))], by=ME)
    add(memory, Texts("Alice", ("a",)))
    assert texts(memory, "Alice") == ("b", "a")


def test_an_entity_is_updated_when_its_observations_change(memory: Memory) -> None:
    (born,) = create(memory, Draft("Alice", "person"))
    add(memory, Texts("Alice", ("a",)))
    (alice,) = entities.open_named(memory, ["Alice"]).entities
    assert alice.updated_at >= alice.observations[0].created_at >= born.created_at
