"""Verbs that follow relations: paths, neighbours and subgraphs. Relations lead both ways unless a direction is given.

Each step outward is one query, however many names it starts from. Names that no entity has are not followed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice, pairwise
from time import monotonic
from typing import Literal

from msgspec import Struct

from polymnia.engine.entities import open_named
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.stores.contract import Reader, check_cancelled

# A search for all paths stops when it has seen this many names or taken this long, and returns what it has found.
MAX_NAMES = 20_000
MAX_SECONDS = 2.0

Direction = Literal["out", "in", "both"]
Links = dict[str, list[str]]


class Description(Struct, frozen=True):
    """An entity, the relations that touch it, and the names at their other ends."""

    entity: Entity
    relations: list[Relation]
    neighbours: list[str]


class Paths(Struct, frozen=True):
    """The paths found and, if there may be more, why the search stopped."""

    paths: list[list[str]]
    cut: str | None


class Route(Struct, frozen=True):
    """The names on a path, both ends included, and one relation for each step; empty if there is no path."""

    names: list[str]
    relations: list[Relation]


def shortest_path(memory: Memory, source: str, target: str) -> list[str]:
    """Return the names on a shortest path, both ends included; empty if nothing connects them.

    Raise EntityNotFound.
    """
    with memory.reading() as read:
        return _shortest(read, source, target)


def shortest_route(memory: Memory, source: str, target: str) -> Route:
    """Return a shortest path with a relation for each step, the oldest where there are several.

    Raise EntityNotFound.
    """
    with memory.reading() as read:
        names = _shortest(read, source, target)
        steps = [frozenset(step) for step in pairwise(names)]
        first: dict[frozenset[str], Relation] = {}
        for each in read.touching(set(names)) if steps else ():
            first.setdefault(frozenset((each.source, each.target)), each)
    return Route(names, [first[step] for step in steps])


def all_paths(memory: Memory, source: str, target: str, *, max_depth: int, max_paths: int) -> Paths:
    """Return the paths of at most `max_depth` relations that visit no entity twice, shortest first.

    Raise EntityNotFound.
    """
    deadline = monotonic() + MAX_SECONDS
    with memory.reading() as read:
        _require(read, (source, target))
        links, is_complete = _links_around(read, source, target, max_depth)
    found = list(islice(_walk(links, source, target, max_depth, deadline), max_paths + 1))
    if found and found[-1] is None:
        return Paths(
            [path for path in found[:max_paths] if path], f"stopped after {MAX_SECONDS:g} seconds"
        )
    paths = [path for path in found if path]
    if len(paths) > max_paths:
        return Paths(paths[:max_paths], f"stopped at {max_paths} paths, there are more")
    return Paths(paths, None if is_complete else f"looked at the nearest {MAX_NAMES} entities only")


def subgraph(memory: Memory, names: Collection[str], depth: int) -> Graph:
    """Return the entities within `depth` steps of the names and the relations among them. Ignore unknown names."""
    with memory.reading() as read:
        reached = _expand(read, read.known(names), depth, None, "both")
        return _among(read, reached)


def neighbourhood(memory: Memory, name: str, depth: int) -> tuple[Graph, bool]:
    """Return the entities within `depth` steps, without their observations, and the relations among them.

    The second value is False if there are more than MAX_NAMES and only those of the last whole step are returned.
    Raise EntityNotFound.
    """
    with memory.reading() as read:
        _require(read, (name,))
        reached, front, is_complete = {name}, {name}, True
        for _ in range(depth):
            check_cancelled()
            ends = {end for each in read.touching(front) for end in (each.source, each.target)}
            front = read.known(ends - reached)
            is_complete = len(reached) + len(front) <= MAX_NAMES
            if not front or not is_complete:
                break
            reached |= front
        return Graph(read.outlines(reached), _relations_among(read, reached)), is_complete


def neighbours(
    memory: Memory, name: str, depth: int, *, kind: str | None, direction: Direction
) -> Graph:
    """Return the entity, those within `depth` steps along relations of a type and direction, and these relations.

    Raise EntityNotFound.
    """
    with memory.reading() as read:
        _require(read, (name,))
        reached = _expand(read, {name}, depth, kind, direction)
        graph = _among(read, reached)
    return Graph(
        graph.entities, [each for each in graph.relations if kind is None or each.type == kind]
    )


def describe(memory: Memory, name: str) -> Description:
    """Return the entity, every relation that touches it, and the names at their other ends. Raise EntityNotFound."""
    graph = open_named(memory, [name])
    if not graph.entities:
        raise EntityNotFound(name)
    others = [each.target if each.source == name else each.source for each in graph.relations]
    distinct = [other for other in dict.fromkeys(others) if other != name]
    return Description(graph.entities[0], graph.relations, distinct)


def _require(read: Reader, names: Iterable[str]) -> None:
    """Raise EntityNotFound for the first name that no entity has."""
    known = read.known(set(names))
    for name in names:
        if name not in known:
            raise EntityNotFound(name)


def _shortest(read: Reader, source: str, target: str) -> list[str]:
    _require(read, (source, target))
    return [source] if source == target else _meet(read, source, target)


def _meet(read: Reader, source: str, target: str) -> list[str]:
    """Return a shortest path: search from both ends, the smaller front first, until the fronts meet."""
    came_from: dict[str, str | None] = {source: None}
    goes_to: dict[str, str | None] = {target: None}
    front, back = [source], [target]
    while front and back:
        check_cancelled()
        forward = len(front) <= len(back)
        mine, other = (came_from, goes_to) if forward else (goes_to, came_from)
        reached = _step(read, front if forward else back, mine)
        for name in reached:
            if name in other:
                return _chain(came_from, name)[::-1] + _chain(goes_to, name)[1:]
        if forward:
            front = reached
        else:
            back = reached
    return []


def _step(read: Reader, names: list[str], seen: dict[str, str | None]) -> list[str]:
    """Return the entities one relation further, and record in `seen` where each was reached from."""
    here = set(names)
    found: dict[str, str] = {}
    for relation in read.touching(here):
        for this, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if this in here and other not in seen:
                found.setdefault(other, this)
    known = read.known(found)
    reached = {name: via for name, via in found.items() if name in known}
    seen.update(reached)
    return list(reached)


def _chain(links: dict[str, str | None], name: str) -> list[str]:
    chain = [name]
    while (following := links[chain[-1]]) is not None:
        chain.append(following)
    return chain


def _expand(
    read: Reader, names: set[str], depth: int, kind: str | None, direction: Direction
) -> set[str]:
    """Return the names of all entities within `depth` steps."""
    reached, front = set(names), set(names)
    for _ in range(depth):
        check_cancelled()
        if not front:
            break
        ends = [
            end
            for relation in read.touching(front)
            for end in _ends(relation, front, kind, direction)
        ]
        front = read.known(set(ends) - reached)
        reached |= front
    return reached


def _ends(relation: Relation, front: set[str], kind: str | None, direction: Direction) -> list[str]:
    """Return where the relation leads from the front."""
    if kind is not None and relation.type != kind:
        return []
    ends = []
    if direction != "in" and relation.source in front:
        ends.append(relation.target)
    if direction != "out" and relation.target in front:
        ends.append(relation.source)
    return ends


def _among(read: Reader, names: set[str]) -> Graph:
    return Graph(read.find(names), _relations_among(read, names))


def _relations_among(read: Reader, names: set[str]) -> list[Relation]:
    return [each for each in read.touching(names) if each.source in names and each.target in names]


def _links_around(read: Reader, source: str, target: str, max_depth: int) -> tuple[Links, bool]:
    """Return the links near both ends, and False if there are too many names to collect them all.

    Every entity on a path is within half of the path's length of one end.
    """
    links: defaultdict[str, dict[str, None]] = defaultdict(dict)
    seen = {source, target}
    front = {source, target}
    for _ in range((max_depth + 1) // 2):
        check_cancelled()
        if not front or len(seen) > MAX_NAMES:
            break
        for relation in read.touching(front):
            links[relation.source][relation.target] = None
            links[relation.target][relation.source] = None
        reached = {end for name in front for end in links[name]} - seen
        front = read.known(reached)
        seen |= front
    inside = {
        name: [end for end in ends if end in seen] for name, ends in links.items() if name in seen
    }
    return inside, len(seen) <= MAX_NAMES


def _walk(
    links: Links, source: str, target: str, max_depth: int, deadline: float
) -> Iterator[list[str] | None]:
    """Yield the paths, shortest first. After the deadline yield None and stop."""
    remaining = _distances(links, target)
    if source not in remaining:
        return
    if source == target:
        yield [source]
        return
    for length in range(remaining[source], max_depth + 1):
        for path in _paths_of_length(links, source, target, length, remaining, deadline):
            yield path
            if path is None:
                return


def _paths_of_length(
    links: Links, source: str, target: str, length: int, remaining: dict[str, int], deadline: float
) -> Iterator[list[str] | None]:
    """Yield the paths of exactly that length, depth first. Skip branches that are too far from the target."""
    path = [source]
    visited = {source}
    branches = [iter(links.get(source, ()))]
    while branches:
        check_cancelled()
        if monotonic() > deadline:
            yield None
            return
        left = length - len(path)
        name = next(
            (
                each
                for each in branches[-1]
                if each not in visited and _fits(each, target, left, remaining)
            ),
            None,
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
    """Return True if a path through this name can end at the target after exactly `left` more steps."""
    if name == target:
        return left == 0
    return left > 0 and remaining.get(name, left + 1) <= left


def _distances(links: Links, target: str) -> dict[str, int]:
    """Return how many links each name is away from the target."""
    distances = {target: 0}
    front = [target]
    while front:
        reached = [end for name in front for end in links.get(name, ()) if end not in distances]
        distances.update(dict.fromkeys(reached, distances[front[0]] + 1))
        front = list(dict.fromkeys(reached))
    return distances
