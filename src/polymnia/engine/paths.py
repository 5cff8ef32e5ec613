"""All simple paths between two entities, shortest first, within bounds of length, number, width and time."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from time import monotonic

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.engine.traverse import require
from polymnia.stores.contract import Reader

# How many names may be looked at, and for how many seconds, before the answer is given as far as it is.
MOST_NAMES = 20_000
MOST_SECONDS = 2.0

Neighbours = dict[str, list[str]]


class Paths(Struct, frozen=True):
    """The paths found and, when there may be more, why the search ended."""

    paths: list[list[str]]
    cut: str | None


def all_paths(memory: Memory, source: str, target: str, *, max_depth: int, max_paths: int) -> Paths:
    """Every way from one entity to the other that visits nothing twice, with at most so many relations.

    Raises EntityNotFound.
    """
    deadline = monotonic() + MOST_SECONDS
    with memory.reading() as read:
        require(read, (source, target))
        links, whole = _surroundings(read, source, target, max_depth)
    found = list(islice(_walks(links, source, target, max_depth, deadline), max_paths + 1))
    if found and found[-1] is None:
        return Paths([path for path in found[:max_paths] if path], f"stopped after {MOST_SECONDS:g} seconds")
    paths = [path for path in found if path]
    if len(paths) > max_paths:
        return Paths(paths[:max_paths], f"stopped at {max_paths} paths, there are more")
    return Paths(paths, None if whole else f"looked at the nearest {MOST_NAMES} entities only")


def _surroundings(read: Reader, source: str, target: str, max_depth: int) -> tuple[Neighbours, bool]:
    """Who is linked to whom near both ends: every path is within half its length of one of them."""
    links: defaultdict[str, dict[str, None]] = defaultdict(dict)
    seen = {source, target}
    front = {source, target}
    for _ in range((max_depth + 1) // 2):
        if not front or len(seen) > MOST_NAMES:
            break
        for relation in read.touching(front):
            links[relation.source][relation.target] = None
            links[relation.target][relation.source] = None
        reached = {end for name in front for end in links[name]} - seen
        front = read.known(reached)
        seen |= front
    inside = {name: [end for end in ends if end in seen] for name, ends in links.items() if name in seen}
    return inside, len(seen) <= MOST_NAMES


def _walks(links: Neighbours, source: str, target: str, max_depth: int, deadline: float) -> Iterator[list[str] | None]:
    """Paths by growing length; None, once, when time is up."""
    remaining = _distances(links, target)
    if source not in remaining:
        return
    if source == target:
        yield [source]
        return
    for length in range(remaining[source], max_depth + 1):
        for path in _of_length(links, source, target, length, remaining, deadline):
            yield path
            if path is None:
                return


def _of_length(
    links: Neighbours, source: str, target: str, length: int, remaining: dict[str, int], deadline: float
) -> Iterator[list[str] | None]:
    """Depth first, leaving every branch from which the target cannot be reached in time."""
    path = [source]
    visited = {source}
    branches = [iter(links.get(source, ()))]
    while branches:
        if monotonic() > deadline:
            yield None
            return
        left = length - len(path)
        name = next(
            (each for each in branches[-1] if each not in visited and _fits(each, target, left, remaining)), None
        )
        if name is None:
            branches.pop()
            visited.discard(path.pop())
        elif name == target:
            yield [*path, name]
        else:
            path.append(name)
            visited.add(name)
            branches.append(iter(links.get(name, ())))


def _fits(name: str, target: str, left: int, remaining: dict[str, int]) -> bool:
    """Whether stepping here, with so many steps left afterwards, can still end at the target exactly in time."""
    if name == target:
        return left == 0
    return left > 0 and remaining.get(name, left + 1) <= left


def _distances(links: Neighbours, target: str) -> dict[str, int]:
    distances = {target: 0}
    front = [target]
    while front:
        reached = [end for name in front for end in links.get(name, ()) if end not in distances]
        distances.update(dict.fromkeys(reached, distances[front[0]] + 1))
        front = list(dict.fromkeys(reached))
    return distances
