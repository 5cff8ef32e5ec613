"""Substring search on every store."""

import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.model import EntityDraft, FactAddition
from tests.behaviour.graphs import ME, create, keys, link, names

LIBRARY = (
    EntityDraft("John_Smith", "Person", ("Works at Google", "Née Müller, straße 5")),
    EntityDraft("北京大学", "大学", ("位于北京市海淀区",)),
    EntityDraft("École", "school", ("e\u0301tude",)),
    EntityDraft("x", "y", ("", "z")),
    EntityDraft(
        "getUserName", "function", ('says "hi"', "100% sure_thing", "it's", "a AND b OR NOT c*")
    ),
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("john", ["John_Smith"]),
        ("PERSON", ["John_Smith"]),
        ("google", ["John_Smith"]),
        ("n_s", ["John_Smith"]),
        ("MÜLLER", ["John_Smith"]),
        ("STRASSE", ["John_Smith"]),
        ("北京", ["北京大学"]),
        ("京", ["北京大学"]),
        ("海淀区", ["北京大学"]),
        ("大学", ["北京大学"]),
        ("école", ["École"]),
        ("\u00e9tude", ["École"]),
        ("E\u0301COLE", ["École"]),
        ("x", ["x"]),
        ("z", ["x"]),
        ("y", ["x", "getUserName"]),
        ("ai", []),
        ("username", ["getUserName"]),
        ('"', ["getUserName"]),
        ('"hi"', ["getUserName"]),
        ("0% s", ["getUserName"]),
        ("it's", ["getUserName"]),
        ("and b or", ["getUserName"]),
        ("not c*", ["getUserName"]),
        ("smith person", []),
        ("xyznonexistent", []),
        ("", ["John_Smith", "北京大学", "École", "x", "getUserName"]),
    ],
)
def test_a_part_of_a_name_type_or_fact_is_found(
    memory: Memory, query: str, found: list[str]
) -> None:
    create(memory, *LIBRARY)
    assert names(search.containing(memory, query)) == found


def test_a_search_returns_the_relations_of_what_it_finds(memory: Memory) -> None:
    create(memory, EntityDraft("Aa", "x"), EntityDraft("Bb", "x"), EntityDraft("Cc", "x"))
    link(memory, ("Aa", "Bb", "r"), ("Bb", "Cc", "r"), ("Aa", "Cc", "r"))
    assert keys(search.containing(memory, "bb")) == [("Aa", "Bb", "r"), ("Bb", "Cc", "r")]


def test_deleted_text_is_not_found(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("plays chess", "likes tea")))
    facts.remove(memory, [("Alice", ("plays chess",))], by=ME)
    assert names(search.containing(memory, "chess")) == []
    entities.delete(memory, ["Alice"], by=ME)
    assert (
        names(search.containing(memory, "tea")) == names(search.containing(memory, "alice")) == []
    )


def test_text_added_later_is_found(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person"))
    search.containing(memory, "warm up any index that is made at the first search")
    facts.add(memory, [FactAddition("Alice", ("plays chess",))], by=ME, skip_repeats=True)
    create(memory, EntityDraft("Bob", "chess club"))
    assert names(search.containing(memory, "chess")) == ["Alice", "Bob"]


def test_a_match_does_not_span_two_facts(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("one", "two")))
    assert [
        names(search.containing(memory, query)) for query in ("netwo", "one\ntwo", "one\x00two")
    ] == [[], [], []]


def test_a_common_text_finds_every_entity_that_contains_it(memory: Memory) -> None:
    create(
        memory,
        *[EntityDraft(f"entity {number}", "thing", ("always the same",)) for number in range(500)],
    )
    assert len(search.containing(memory, "the same").entities) == 500
    assert names(search.containing(memory, "entity 123")) == ["entity 123"]
    assert len(search.containing(memory, "e").entities) == 500
