"""Full-text search over the SQLite store.

FTS5 syntax, words across the passages of an entity, and any text at all.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.search import full_text
from polymnia.errors import BadInput
from polymnia.model import EntityDraft
from polymnia.stores.sqlite.store import SqliteStore
from tests.oracle import MemoryStore
from tests.stores.random_queries import queries

ME = "test"
DRAFTS = [
    EntityDraft("Alice", "person", ("drinks coffee every morning", "writes compilers in Go")),
    EntityDraft("Bob", "person", ("drinks tea", "has met Alice in Paris")),
    EntityDraft("Go", "language", ("compiled and garbage collected",)),
    EntityDraft("coffee machine", "device", ("stands in the kitchen",)),
    EntityDraft("login", "service", ("authenticates the organization",)),
    EntityDraft("Zoë", "person", ("naïve résumé", "日本語を話す")),
]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    store = SqliteStore(":memory:")
    memory = Memory(store)
    entities.create(memory, DRAFTS, by=ME)
    yield memory
    store.close()


def found(memory: Memory, query: str) -> list[str]:
    return [entity.name for entity in full_text(memory, query).entities]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("tea", ["Bob"]),
        ("TEA", ["Bob"]),
        ("coffee", ["coffee machine", "Alice"]),
        ("drinks AND tea", ["Bob"]),
        ("tea OR kitchen", ["coffee machine", "Bob"]),
        ("person NOT alice", ["Bob", "Zoë"]),
        ("drinks NOT tea", ["Alice"]),
        ("compil*", ["Go", "Alice"]),
        ("authentica*", ["login"]),
        ("organiz*", ["login"]),
        ("every_mor*", ["Alice"]),
        ("_*", []),
        ("content : organization", ["login"]),
        ("person NOT natur*", ["Alice", "Bob", "Zoë"]),
        ('"every morning"', ["Alice"]),
        ('"morning every"', []),
        ("name : alice", ["Alice"]),
        ("name:alice", ["Alice"]),
        ("content : alice", ["Bob"]),
        ("entity_type : person", ["Bob", "Zoë", "Alice"]),
        ("{name entity_type} : go", ["Go"]),
        ("- name : coffee", ["Alice"]),
        ("(tea OR coffee) AND drinks", ["Alice", "Bob"]),
        ("NEAR(drinks morning, 3)", ["Alice"]),
        ("NEAR(drinks morning, 0)", []),
        ("^coffee", ["coffee machine"]),
        ("Zoe", ["Zoë"]),
        ("resume", ["Zoë"]),
        ("日本", ["Zoë"]),
    ],
)
def test_fts5_syntax_finds(memory: Memory, query: str, names: list[str]) -> None:
    assert sorted(found(memory, query)) == sorted(names)


def test_operators_do_not_count_as_words_of_a_long_query(memory: Memory) -> None:
    others = " OR ".join(f"nothing{number}" for number in range(50))
    assert found(memory, f"{others} OR kitchen") == ["coffee machine"]


def test_names_come_before_types_and_those_before_facts(memory: Memory) -> None:
    assert found(memory, "coffee") == ["coffee machine", "Alice"]
    assert found(memory, "alice OR tea")[0] == "Alice"


@pytest.mark.parametrize(
    "query", ["alice coffee", "alice AND coffee", "Alice coff*", "coffee compilers"]
)
def test_words_may_be_in_different_passages_of_an_entity(memory: Memory, query: str) -> None:
    assert found(memory, query) == ["Alice"]


def test_entities_with_some_words_are_found_if_none_has_all(memory: Memory) -> None:
    assert found(memory, "tea submarine") == ["Bob"]
    assert found(memory, "tea AND submarine") == []


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("what's Bob's tea?", ["Bob"]),
        ("tea!", ["Bob"]),
        ('"tea', ["Bob"]),
        ("tea AND", ["Bob"]),
        ("(tea", ["Bob"]),
        ("colour : tea", ["Bob"]),
        ("tea -- DROP TABLE entities; --", ["Bob"]),
        ("C++", []),
        ("", []),
        ("  ", []),
        ("***", []),
        ('""', []),
        ("*reads", []),
        ("\x00", []),
        ("\x00tea", ["Bob"]),
        ("\ud800 tea", ["Bob"]),
        ("NEAR(" + "tea " * 100 + ")", ["Bob"]),
        ("(" * 100 + "tea" + ")" * 100, ["Bob"]),
    ],
)
def test_text_that_is_not_an_expression_is_searched_as_words(
    memory: Memory, query: str, names: list[str]
) -> None:
    assert found(memory, query) == names


def test_a_page_of_text_is_a_query_too(memory: Memory) -> None:
    assert found(memory, "tea " + " ".join(f"word{number}" for number in range(5000))) == ["Bob"]
    assert found(memory, "tea, " + " ".join(f"word{number}" for number in range(5000))) == ["Bob"]


def test_an_entity_is_found_once_however_often_it_matches(memory: Memory) -> None:
    assert found(memory, "drinks OR writes OR alice").count("Alice") == 1


def test_a_hit_includes_its_relations_and_all_facts(memory: Memory) -> None:
    (entity,) = full_text(memory, "tea").entities
    assert entity.texts == ("drinks tea", "has met Alice in Paris")


def test_deleted_entities_are_not_found() -> None:
    store = SqliteStore(":memory:")
    memory = Memory(store)
    entities.create(memory, DRAFTS, by=ME)
    entities.delete(memory, ["Bob"], by=ME)
    facts.remove(memory, [("Alice", ("drinks coffee every morning",))], by=ME)
    assert (found(memory, "tea"), found(memory, "coffee")) == ([], ["coffee machine"])
    entities.create(memory, [EntityDraft("Bob", "robot", ("drinks oil",))], by=ME)
    assert (found(memory, "bob"), found(memory, "tea")) == (["Bob"], [])
    store.close()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=queries())
def test_any_text_is_an_answerable_query(memory: Memory, query: str) -> None:
    full_text(memory, query)


def test_a_store_without_a_full_text_index_says_so() -> None:
    with pytest.raises(BadInput, match="no full-text index"):
        full_text(Memory(MemoryStore()), "x")
