"""Entities on every store: creating, opening, reading all, deleting."""

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import EntityDraft, Graph
from tests.behaviour.graphs import ME, create, keys, link, names, texts
from tests.conftest import VERSIONED

ALICE = EntityDraft("Alice", "person", ("Is a student", "Likes tea"))
BOB = EntityDraft("Bob", "person")


def test_create_returns_the_new_entity(memory: Memory) -> None:
    (alice,) = create(memory, ALICE)
    assert (alice.name, alice.type, alice.texts) == (
        "Alice",
        "person",
        ("Is a student", "Likes tea"),
    )


def test_a_new_entity_can_be_read(memory: Memory) -> None:
    create(memory, ALICE)
    assert texts(memory, "Alice") == ("Is a student", "Likes tea")


def test_a_known_name_is_not_created_twice(memory: Memory) -> None:
    create(memory, ALICE)
    assert create(memory, EntityDraft("Alice", "robot", ("other",))) == []
    assert texts(memory, "Alice") == ("Is a student", "Likes tea")


def test_a_name_repeated_in_one_call_is_created_once(memory: Memory) -> None:
    created = create(memory, ALICE, EntityDraft("Alice", "robot"), BOB)
    assert [(entity.name, entity.type) for entity in created] == [
        ("Alice", "person"),
        ("Bob", "person"),
    ]


def test_names_are_case_sensitive(memory: Memory) -> None:
    create(memory, EntityDraft("alice", "person"))
    assert [entity.name for entity in create(memory, EntityDraft("Alice", "person"))] == ["Alice"]


def test_repeated_facts_of_a_new_entity_are_kept_as_given(memory: Memory) -> None:
    create(memory, EntityDraft("Alice", "person", ("a", "a")))
    assert texts(memory, "Alice") == ("a", "a")


def test_entities_are_read_in_order_of_creation(memory: Memory) -> None:
    wanted = ["z", "a", "m", "Ä", "b"]
    for name in wanted:
        create(memory, EntityDraft(name, "letter"))
    assert names(entities.read_all(memory)) == wanted
    assert names(entities.open_named(memory, {"b", "z", "Ä"})) == ["z", "Ä", "b"]


def test_opening_ignores_unknown_names(memory: Memory) -> None:
    create(memory, ALICE)
    assert names(entities.open_named(memory, ["alice", "Alice", "Nobody"])) == ["Alice"]


def test_opening_returns_every_relation_that_touches_a_found_entity(memory: Memory) -> None:
    create(memory, EntityDraft("A", "x"), EntityDraft("B", "x"), EntityDraft("C", "x"))
    link(memory, ("A", "B", "r"), ("B", "C", "r"), ("A", "C", "r"), ("B", "B", "r"))
    assert keys(entities.open_named(memory, ["A", "C"])) == [
        ("A", "B", "r"),
        ("B", "C", "r"),
        ("A", "C", "r"),
    ]


def test_opening_a_name_without_an_entity_returns_nothing(memory: Memory) -> None:
    link(memory, ("A", "B", "r"))
    graph = entities.open_named(memory, ["A"])
    assert (graph.entities, graph.relations) == ([], [])


def test_deleting_an_entity_deletes_relations_in_both_directions(memory: Memory) -> None:
    create(memory, EntityDraft("A", "x"), EntityDraft("B", "x"), EntityDraft("C", "x"))
    link(memory, ("A", "B", "r"), ("B", "A", "r"), ("B", "C", "r"))
    entities.delete(memory, ["A"], by=ME)
    graph = entities.read_all(memory)
    assert (names(graph), keys(graph)) == (["B", "C"], [("B", "C", "r")])


def test_deleting_an_unknown_name_deletes_the_relations_with_that_name(memory: Memory) -> None:
    link(memory, ("Ghost", "B", "r"), ("C", "B", "r"))
    entities.delete(memory, ["Ghost"], by=ME)
    assert keys(entities.read_all(memory)) == [("C", "B", "r")]


def test_deleting_returns_what_was_deleted(memory: Memory) -> None:
    create(memory, ALICE, BOB)
    link(memory, ("Alice", "Bob", "knows"))
    deleted = entities.delete(memory, ["Alice", "Nobody"], by=ME)
    assert (names(deleted), keys(deleted)) == (["Alice"], [("Alice", "Bob", "knows")])


def test_an_entity_created_after_a_deletion_is_empty(memory: Memory) -> None:
    create(memory, ALICE, BOB)
    entities.delete(memory, ["Alice"], by=ME)
    create(memory, EntityDraft("Alice", "robot", ("new",)))
    graph = entities.read_all(memory)
    assert [(entity.name, entity.type, entity.texts) for entity in graph.entities] == [
        ("Bob", "person", ()),
        ("Alice", "robot", ("new",)),
    ]


def test_an_empty_memory_is_an_empty_graph(memory: Memory) -> None:
    graph = entities.read_all(memory)
    assert (graph.entities, graph.relations) == ([], [])


def test_creating_nothing_makes_no_change(memory: Memory) -> None:
    heard: list[object] = []
    memory.on_change(heard.append)
    create(memory)
    create(memory, ALICE)
    create(memory, ALICE)
    assert len(heard) == 1


def test_any_text_is_stored_unchanged(memory: Memory) -> None:
    strange = [
        "",
        " ",
        "a\nb",
        "tab\t",
        "'; DROP TABLE entities; --",
        '"',
        "\\",
        "🜛",
        "e\u0301",
        "[1]",
    ]
    create(memory, *[EntityDraft(text, text, (text,)) for text in strange])
    graph = entities.open_named(memory, strange)
    assert [(entity.name, entity.type, entity.texts) for entity in graph.entities] == [
        (text, text, (text,)) for text in strange
    ]


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800"])
def test_a_text_that_no_database_can_hold_is_refused_everywhere(memory: Memory, text: str) -> None:
    drafts = [
        EntityDraft(text, "t"),
        EntityDraft("n", text),
        EntityDraft("n", "t", (text,)),
        EntityDraft("n", "t", (), text),
    ]
    for draft in drafts:
        with pytest.raises(BadInput):
            create(memory, draft)
    with pytest.raises(BadInput):
        link(memory, ("a", "b", text))
    assert entities.read_all(memory) == Graph([], [])


def test_a_name_that_cannot_be_stored_is_not_found(memory: Memory) -> None:
    create(memory, ALICE)
    assert entities.open_named(memory, ["Alice\x00", "\x00"]) == Graph([], [])


def test_counts_exclude_deleted_rows(memory: Memory) -> None:
    create(memory, ALICE, BOB)
    link(memory, ("Alice", "Bob", "knows"), ("Bob", "Carol", "knows"))
    entities.delete(memory, ["Alice"], by=ME)
    with memory.reading() as read:
        counts = read.counts()
    assert (counts.entities, counts.facts, counts.relations) == (1, 0, 1)


@pytest.mark.parametrize("memory", VERSIONED, indirect=True)
def test_outlines_are_found_by_id(memory: Memory) -> None:
    drafts = [EntityDraft("a", "t"), EntityDraft("b", "t"), EntityDraft("c", "t")]
    a, b, c = entities.create(memory, drafts, by=ME)
    entities.delete(memory, ["c"], by=ME)
    with memory.reading() as read:
        named = read.outlines(ids=[a.id, b.id, c.id, "no such id"])
        assert [(entity.id, entity.name) for entity in named] == [(a.id, "a"), (b.id, "b")]
        assert read.outlines(ids=[]) == []
