"""Following relations on every store: paths, neighbours, subgraphs, descriptions."""

import itertools

import pytest

from polymnia.engine.graph import traverse
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import EntityDraft
from tests.behaviour.graphs import create, keys, link, names


@pytest.fixture
def river(memory: Memory) -> Memory:
    """a - b - c - d - e, a short cut from a to d, an island x - y, and z linked to a name without
    an entity.
    """
    create(memory, *[EntityDraft(name, "place") for name in "abcdexyz"])
    link(
        memory, ("a", "b", "r"), ("c", "b", "r"), ("c", "d", "s"), ("e", "d", "r"), ("a", "d", "t")
    )
    link(memory, ("x", "y", "r"), ("z", "ghost", "r"), ("ghost", "a", "r"), ("a", "a", "self"))
    return memory


@pytest.mark.parametrize(
    ("source", "target", "path"),
    [
        ("a", "c", ["a", "b", "c"]),
        ("e", "a", ["e", "d", "a"]),
        ("b", "e", ["b", "c", "d", "e"]),
        ("a", "a", ["a"]),
        ("a", "x", []),
        ("z", "a", []),
    ],
)
def test_the_shortest_path_follows_relations_in_both_directions(
    river: Memory, source: str, target: str, path: list[str]
) -> None:
    found = traverse.shortest_path(river, source, target).names
    assert len(found) == len(path)
    assert found[:1] == path[:1]
    assert found[-1:] == path[-1:]


def test_a_path_needs_entities_at_both_ends(river: Memory) -> None:
    with pytest.raises(EntityNotFound, match="ghost"):
        traverse.shortest_path(river, "a", "ghost")


def test_a_long_chain_is_followed_to_its_end(memory: Memory) -> None:
    chain = [f"n{number}" for number in range(200)]
    create(memory, *[EntityDraft(name, "x") for name in chain])
    link(memory, *[(one, two, "next") for one, two in itertools.pairwise(chain)])
    assert traverse.shortest_path(memory, chain[0], chain[-1]).names == chain


def test_all_paths_come_shortest_first(river: Memory) -> None:
    found = traverse.all_paths(river, "a", "c", max_depth=6, max_paths=50)
    assert (found.paths, found.cut) == ([["a", "b", "c"], ["a", "d", "c"]], None)
    found = traverse.all_paths(river, "b", "d", max_depth=6, max_paths=50)
    assert sorted(found.paths) == [["b", "a", "d"], ["b", "c", "d"]]


def test_paths_longer_than_the_maximum_are_left_out(river: Memory) -> None:
    assert traverse.all_paths(river, "b", "e", max_depth=2, max_paths=50).paths == []
    assert len(traverse.all_paths(river, "b", "e", max_depth=3, max_paths=50).paths) == 2


def test_a_search_for_a_path_gives_up_after_many_names(
    river: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polymnia.stores.paths.MAX_PATH_NAMES", 3)
    monkeypatch.setattr("polymnia.stores.postgres.port.MAX_PATH_NAMES", 3)
    with pytest.raises(BadInput, match="among the nearest 3 entities; there may be a longer one"):
        traverse.shortest_path(river, "b", "e")


def test_no_path_visits_an_entity_twice(memory: Memory) -> None:
    clique(memory, 6)
    found = traverse.all_paths(memory, "n0", "n5", max_depth=5, max_paths=1000).paths
    assert all(len(set(path)) == len(path) for path in found)
    assert len(found) == 1 + 4 + 4 * 3 + 4 * 3 * 2 + 4 * 3 * 2 * 1
    assert [len(path) for path in found] == sorted(len(path) for path in found)


def test_a_search_with_too_many_paths_stops_and_says_so(memory: Memory) -> None:
    clique(memory, 15)
    found = traverse.all_paths(memory, "n0", "n14", max_depth=14, max_paths=50)
    assert len(found.paths) == 50
    assert found.cut == "stopped at 50 paths, there are more"


def test_a_search_that_takes_too_long_stops_and_says_so(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    clique(memory, 12)
    monkeypatch.setattr(traverse, "MAX_SECONDS", 20)
    monkeypatch.setattr(traverse, "monotonic", itertools.count().__next__)  # a second for each look
    found = traverse.all_paths(memory, "n0", "n11", max_depth=11, max_paths=100_000_000)
    assert found.paths[0] == ["n0", "n11"]
    assert found.cut is not None
    assert "seconds" in found.cut


def clique(memory: Memory, size: int) -> None:
    create(memory, *[EntityDraft(f"n{number}", "x") for number in range(size)])
    link(
        memory,
        *[(f"n{one}", f"n{two}", "r") for one, two in itertools.combinations(range(size), 2)],
    )


@pytest.mark.parametrize(
    ("depth", "reached"),
    [(0, "a"), (1, "abd"), (2, "abcde"), (9, "abcde")],
)
def test_a_subgraph_has_the_given_depth(river: Memory, depth: int, reached: str) -> None:
    graph = traverse.subgraph(river, ["a", "nobody"], depth)
    assert names(graph) == list(reached)
    assert all(source in reached and target in reached for source, target, _ in keys(graph))


def test_a_subgraph_may_start_in_several_places(river: Memory) -> None:
    graph = traverse.subgraph(river, ["x", "e"], 1)
    assert (names(graph), keys(graph)) == (["d", "e", "x", "y"], [("e", "d", "r"), ("x", "y", "r")])


def test_neighbours_can_be_filtered_by_type_and_direction(river: Memory) -> None:
    def around(kind: str | None, direction: traverse.Direction) -> list[str]:
        return names(traverse.neighbours(river, "d", 1, kind=kind, direction=direction))

    assert around(None, "both") == ["a", "c", "d", "e"]
    assert around("r", "both") == ["d", "e"]
    assert around(None, "in") == ["a", "c", "d", "e"]
    assert around(None, "out") == ["d"]


def test_neighbours_include_the_relations_among_them(river: Memory) -> None:
    graph = traverse.neighbours(river, "b", 1, kind=None, direction="both")
    assert keys(graph) == [("a", "b", "r"), ("c", "b", "r"), ("a", "a", "self")]


def test_a_description_has_all_relations_and_neighbours(river: Memory) -> None:
    description = traverse.describe(river, "a")
    assert description.entity.name == "a"
    assert [relation.key for relation in description.relations] == [
        ("a", "b", "r"),
        ("a", "d", "t"),
        ("ghost", "a", "r"),
        ("a", "a", "self"),
    ]
    assert description.neighbours == ["b", "d", "ghost"]


@pytest.mark.parametrize("verb", ["describe", "neighbours"])
def test_the_error_for_an_unknown_entity_names_it(river: Memory, verb: str) -> None:
    with pytest.raises(EntityNotFound, match="Entity with name nobody not found"):
        if verb == "describe":
            traverse.describe(river, "nobody")
        else:
            traverse.neighbours(river, "nobody", 1, kind=None, direction="both")


def test_a_route_has_a_relation_for_each_step(memory: Memory) -> None:
    create(memory, *[EntityDraft(name, "x", ("text",)) for name in "abcd"])
    link(memory, ("a", "b", "r"), ("a", "b", "s"), ("c", "b", "t"), ("d", "d", "u"))
    route = traverse.shortest_path(memory, "a", "c")
    assert route.names == ["a", "b", "c"]
    assert [relation.key for relation in route.relations] == [("a", "b", "r"), ("c", "b", "t")]
    assert traverse.shortest_path(memory, "a", "d") == traverse.Route([], [])
    assert traverse.shortest_path(memory, "d", "d") == traverse.Route(["d"], [])


def test_a_neighbourhood_has_outlines_and_the_relations_among_them(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(memory, *[EntityDraft(name, "x", ("text",)) for name in "abcd"])
    link(memory, ("a", "b", "r"), ("c", "b", "t"), ("c", "d", "u"), ("a", "nobody", "r"))
    graph, is_complete = traverse.neighbourhood(memory, "a", 2)
    assert (names(graph), is_complete) == (["a", "b", "c"], True)
    assert keys(graph) == [("a", "b", "r"), ("c", "b", "t")]
    assert {entity.facts for entity in graph.entities} == {()}
    assert names(traverse.neighbourhood(memory, "a", 0)[0]) == ["a"]
    monkeypatch.setattr(traverse, "MAX_NAMES", 2)
    graph, is_complete = traverse.neighbourhood(memory, "a", 2)
    assert (names(graph), is_complete) == (["a", "b"], False)
    with pytest.raises(EntityNotFound):
        traverse.neighbourhood(memory, "nobody", 1)
