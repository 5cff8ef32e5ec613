"""Groups of nodes that edges hold together."""

from hypothesis import given
from hypothesis import strategies as st

from polymnia.engine.curation.communities import find_communities


def links(size: int, *edges: tuple[int, int]) -> list[dict[int, float]]:
    found: list[dict[int, float]] = [{} for _ in range(size)]
    for a, b in edges:
        if a != b:
            found[a][b] = found[b][a] = 1.0
    return found


def clique(first: int, size: int) -> list[tuple[int, int]]:
    nodes = range(first, first + size)
    return [(a, b) for a in nodes for b in nodes if a < b]


def test_two_cliques_with_one_edge_between_them_are_two_groups() -> None:
    found = find_communities(links(8, *clique(0, 4), *clique(4, 4), (0, 4)))
    assert sorted(map(sorted, found)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_many_cliques_in_a_ring_stay_apart() -> None:
    edges = [edge for number in range(20) for edge in clique(5 * number, 5)]
    ring = [(5 * number, 5 * ((number + 1) % 20) + 1) for number in range(20)]
    groups = [frozenset(group) for group in find_communities(links(100, *edges, *ring))]
    assert all(
        any(set(range(5 * number, 5 * number + 5)) <= group for group in groups)
        for number in range(20)
    )
    assert len(groups) >= 8


def test_nodes_without_links_are_in_no_group() -> None:
    assert find_communities(links(4, (1, 2))) == [[1, 2]]
    assert find_communities([]) == []


@given(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40))
def test_every_linked_node_is_in_one_group(edges: list[tuple[int, int]]) -> None:
    given_links = links(15, *edges)
    found = [node for group in find_communities(given_links) for node in group]
    assert sorted(found) == [node for node, own in enumerate(given_links) if own]
