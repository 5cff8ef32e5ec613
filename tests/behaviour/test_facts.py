"""Facts on every store: added, replaced and removed, by text or ordinal, never renumbered."""

import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import EntityDraft, FactAddition
from tests.behaviour.graphs import ME, create, ordinals, texts


def add(
    memory: Memory, *additions: FactAddition, skip_repeats: bool = True
) -> list[tuple[str, ...]]:
    added = facts.add(memory, additions, by=ME, skip_repeats=skip_repeats)
    return [tuple(fact.text for fact in group.facts) for group in added]


def test_known_texts_are_skipped_on_request_also_those_of_the_same_call(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)), EntityDraft("Bob", "person"))
    more = (FactAddition("Bob", ("a",)), FactAddition("Alice", ("b", "c")))
    assert add(memory, FactAddition("Alice", ("a", "b", "b")), *more) == [("b",), ("a",), ("c",)]
    assert texts(memory, "Alice") == ("a", "b", "c")


def test_known_texts_are_added_again_when_not_skipped(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    texts_again = ("a", "b", "b")
    assert add(memory, FactAddition("Alice", texts_again), skip_repeats=False) == [texts_again]
    assert texts(memory, "Alice") == ("a", "a", "b", "b")


def test_an_unknown_name_stops_the_whole_call(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a",)))
    with pytest.raises(EntityNotFound, match="Entity with name Nobody not found"):
        add(memory, FactAddition("Alice", ("b",)), FactAddition("Nobody", ("c",)))
    assert texts(memory, "Alice") == ("a",)
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
