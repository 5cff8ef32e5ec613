"""Observations by ordinal on every store: appended, replaced and deleted, never renumbered."""

import pytest

from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import EntityDraft, FactAddition
from tests.behaviour.graphs import ME, create, ordinals, texts


@pytest.fixture
def people(memory: Memory) -> Memory:
    create(
        memory, EntityDraft("Ann", "person", ("one", "two", "three")), EntityDraft("Ben", "person")
    )
    return memory


def remove(memory: Memory, *removals: tuple[str, tuple[int, ...]]) -> list[tuple[object, ...]]:
    removed = facts.remove(memory, removals, by=ME)
    return [(item.entity, [one.ordinal for one in item.facts], item.missing) for item in removed]


def test_appended_facts_get_the_next_ordinals_in_the_order_given(people: Memory) -> None:
    drafts = [
        FactAddition("Ann", ("four", "one")),
        FactAddition("Ben", ("a",)),
        FactAddition("Ann", ("six",)),
    ]
    added = facts.add(people, drafts, by=ME)
    assert [[fact.ordinal for fact in new.facts] for new in added] == [
        [4, 5],
        [1],
        [6],
    ]
    assert texts(people, "Ann") == ("one", "two", "three", "four", "one", "six")


def test_an_unknown_entity_does_not_keep_the_others_from_being_appended_to(people: Memory) -> None:
    drafts = [FactAddition("nobody", ("x",)), FactAddition("Ben", ("y",))]
    added = facts.add(people, drafts, by=ME, skip_unknown=True)
    assert [item.before is None for item in added] == [True, False]
    assert texts(people, "Ben") == ("y",)


def test_a_deleted_ordinal_is_not_used_again(people: Memory) -> None:
    assert remove(people, ("Ann", (3, 2, 2, 9)), ("nobody", (1,))) == [
        ("Ann", [3, 2], (9,)),
        ("nobody", [], (1,)),
    ]
    facts.add(people, [FactAddition("Ann", ("new",))], by=ME)
    assert ordinals(people, "Ann") == [1, 4]


def test_an_ordinal_that_two_deletions_name_is_deleted_once(people: Memory) -> None:
    assert remove(people, ("Ann", (1,)), ("Ann", (1, 2))) == [
        ("Ann", [1], ()),
        ("Ann", [2], (1,)),
    ]


def test_a_replaced_fact_keeps_its_ordinal_and_its_place(people: Memory) -> None:
    old = facts.replace(people, "Ann", 2, "deux", by=ME)
    assert (old.text, texts(people, "Ann")) == ("two", ("one", "deux", "three"))
    assert ordinals(people, "Ann") == [1, 2, 3]
    with people.reading() as read:
        (ann,) = read.entities(["Ann"])
    assert ann.facts[1].created_at > old.created_at
    facts.add(people, [FactAddition("Ann", ("four",))], by=ME)
    assert ordinals(people, "Ann") == [1, 2, 3, 4]


def test_replacing_what_does_not_exist_is_an_error(people: Memory) -> None:
    with pytest.raises(BadInput, match="Ann has no observation with ordinal 7"):
        facts.replace(people, "Ann", 7, "x", by=ME)
    with pytest.raises(EntityNotFound):
        facts.replace(people, "nobody", 1, "x", by=ME)


@pytest.mark.parametrize("text", ["one", "One", " one", "one ", "one.", "o ne", "ONE"])
def test_a_text_like_another_one_is_replaced_added_and_removed_as_it_is(
    people: Memory, text: str
) -> None:
    old = facts.replace(people, "Ann", 3, text, by=ME)
    assert (old.text, texts(people, "Ann")) == ("three", ("one", "two", text))
    facts.add(people, [FactAddition("Ann", (text,))], by=ME)
    assert texts(people, "Ann") == ("one", "two", text, text)
    remove(people, ("Ann", (3, 4)))
    assert texts(people, "Ann") == ("one", "two")
