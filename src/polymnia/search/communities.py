"""Groups of nodes that edges hold together, found by moving nodes between groups until modularity grows no more."""

from collections.abc import Callable, Sequence

# Neighbours of each node, by number, with the weight of the edge.
Links = Sequence[dict[int, float]]

# A level ends when a pass over all nodes moves fewer than this share of them, or after this many passes.
_MIN_MOVED = 0.02
_MAX_PASSES = 6


def find_communities(links: Links, check: Callable[[], None] = lambda: None) -> list[list[int]]:
    """Return the nodes in groups by Louvain's method. Nodes without links are left out."""
    members = [[node] for node in range(len(links))]
    loops = [0.0] * len(links)
    level: Links = links
    while True:
        group_of = _move_nodes(level, loops, check)
        if len(set(group_of)) == len(level):
            break
        members, level, loops = _join(group_of, members, level, loops)
    return [group for group in members if len(group) > 1]


def _move_nodes(links: Links, loops: Sequence[float], check: Callable[[], None]) -> list[int]:
    """Return the group of each node after moving nodes to the group of a neighbour while that raises modularity."""
    degrees = [sum(own.values()) + 2 * loop for own, loop in zip(links, loops, strict=True)]
    twice = sum(degrees) or 1.0
    group_of = list(range(len(links)))
    totals = list(degrees)
    for _ in range(_MAX_PASSES):
        check()
        moved = 0
        for node, own in enumerate(links):
            if not own:
                continue
            here, degree = group_of[node], degrees[node]
            shared: dict[int, float] = {}
            for other, weight in own.items():
                group = group_of[other]
                shared[group] = shared.get(group, 0.0) + weight
            totals[here] -= degree
            best, best_gain = here, shared.get(here, 0.0) - totals[here] * degree / twice
            for group, weight in shared.items():
                gain = weight - totals[group] * degree / twice
                if gain > best_gain + 1e-12:
                    best, best_gain = group, gain
            totals[best] += degree
            if best != here:
                group_of[node] = best
                moved += 1
        if moved <= _MIN_MOVED * len(links):
            break
    return group_of


def _join(
    group_of: Sequence[int], members: Sequence[list[int]], links: Links, loops: Sequence[float]
) -> tuple[list[list[int]], Links, list[float]]:
    """Return the groups as the nodes of a smaller graph: their members, links and the weight inside each."""
    number = {group: place for place, group in enumerate(dict.fromkeys(group_of))}
    joined: list[list[int]] = [[] for _ in number]
    smaller: list[dict[int, float]] = [{} for _ in number]
    inside = [0.0] * len(number)
    for node, own in enumerate(links):
        group = number[group_of[node]]
        joined[group] += members[node]
        inside[group] += loops[node]
        for other, weight in own.items():
            place = number[group_of[other]]
            if place == group:
                inside[group] += weight / 2
            else:
                smaller[group][place] = smaller[group].get(place, 0.0) + weight
    return joined, smaller, inside
