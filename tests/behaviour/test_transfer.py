"""Carrying a graph into every store."""

from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import absorb
from polymnia.model import Draft, Entity, Graph, Observation, Relation
from tests.behaviour.graphs import ME, create, keys, names, texts

GRAPH = Graph(
    [
        Entity("Alice", "person", (Observation(1, "a"), Observation(4, "b")), next_ordinal=5),
        Entity("Bob", "person", created_at=1, updated_at=2, id="kept"),
    ],
    [Relation("Alice", "Bob", "knows", 7)],
)


def test_everything_new_is_taken_in(memory: Memory) -> None:
    assert absorb(memory, GRAPH, by=ME) == (2, 1)
    graph = entities.read_all(memory)
    assert (names(graph), keys(graph)) == (["Alice", "Bob"], [("Alice", "Bob", "knows")])


def test_taking_in_twice_changes_nothing(memory: Memory) -> None:
    absorb(memory, GRAPH, by=ME)
    before = entities.read_all(memory)
    assert absorb(memory, GRAPH, by=ME) == (0, 0)
    assert entities.read_all(memory) == before


def test_a_known_entity_gains_what_it_lacks_and_keeps_what_it_has(memory: Memory) -> None:
    create(memory, Draft("Alice", "robot", ("b", "c")))
    assert absorb(memory, GRAPH, by=ME) == (1, 1)
    (alice,) = entities.open_named(memory, ["Alice"]).entities
    assert (alice.type, texts(memory, "Alice")) == ("robot", ("b", "c", "a"))


def test_a_name_that_comes_twice_is_one_entity_with_the_observations_of_both(memory: Memory) -> None:
    twice = [Entity("A", "x", (Observation(1, "a"),), next_ordinal=2), Entity("A", "y", (Observation(1, "b"),))]
    absorb(memory, Graph(twice, []), by=ME)
    assert texts(memory, "A") == ("a", "b")


def test_progress_is_told_to_the_end(memory: Memory) -> None:
    told: list[tuple[int, int]] = []
    absorb(memory, GRAPH, by=ME, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)
