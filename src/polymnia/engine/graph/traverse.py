"""Verbs that follow relations: paths, neighbours and subgraphs.

Relations lead both ways unless a direction is given. Each step outward is one query, however many
names it starts from. Names that no entity has are not followed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import pairwise
from time import monotonic
from typing import Literal

from msgspec import Struct

from polymnia.engine.graph.entities import open_named
from polymnia.engine.graph.relations import ends_of, relations_among, require_known
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.stores.contract import Reader, check_cancelled

# A search for all paths that has seen this many names or taken this long returns what it has.
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
    """The names on a path, both ends included, and a relation per step; empty without a path."""

    names: list[str]
    relations: list[Relation]


def shortest_path(memory: Memory, source: str, target: str) -> Route:
    """Return a shortest path with a relation for each step, the oldest where there are several.

    Raise EntityNotFound, or BadInput if the search gave up.
    """
    with memory.reading() as read:
        _require_known(read, (source, target))
        if source == target:
            return Route([source], [])
        names = read.find_path(source, target)
        if not names:
            return Route([], [])
        oldest: dict[frozenset[str], Relation] = {}
        for relation in read.relations(set(names)):
            oldest.setdefault(frozenset(relation.ends), relation)
    return Route(names, [oldest[frozenset(step)] for step in pairwise(names)])


def all_paths(memory: Memory, source: str, target: str, *, max_depth: int, max_paths: int) -> Paths:
    """Return the paths of at most `max_depth` relations that visit no entity twice, shortest first.

    Raise EntityNotFound.
    """
    deadline = monotonic() + MAX_SECONDS
    with memory.reading() as read:
        _require_known(read, (source, target))
        links, is_complete = _links_around(read, source, target, max_depth)
    paths: list[list[str]] = []
    for path in _walk(links, source, target, max_depth, deadline):
        if path is None:
            return Paths(paths, f"stopped after {MAX_SECONDS:g} seconds")
        if len(paths) == max_paths:
            return Paths(paths, f"stopped at {max_paths} paths, there are more")
        paths.append(path)
    if not is_complete:
        return Paths(paths, f"looked at the nearest {MAX_NAMES} entities only")
    return Paths(paths, None)


def subgraph(memory: Memory, names: Collection[str], depth: int) -> Graph:
    """Return the entities within `depth` steps of the names and the relations among them.

    Ignore unknown names.
    """
    with memory.reading() as read:
        reached, _ = _expand(read, read.existing_names(names), depth)
        return Graph(read.entities(reached), relations_among(read, reached))


def neighbourhood(memory: Memory, name: str, depth: int) -> tuple[Graph, bool]:
    """Return the entities within `depth` steps, without facts, and the relations among them.

    The second value is False if there are more than MAX_NAMES and only those of the last whole step
    are returned. Raise EntityNotFound.
    """
    with memory.reading() as read:
        _require_known(read, (name,))
        reached, is_complete = _expand(read, {name}, depth, max_names=MAX_NAMES)
        return Graph(read.outlines(reached), relations_among(read, reached)), is_complete


def surroundings(memory: Memory, name: str, depth: int) -> tuple[Graph, bool]:
    """Return what `neighbourhood` does, with relations that lead to names without an entity.

    The name may be such an end of relations itself. Raise EntityNotFound if it is not.
    """
    with memory.reading() as read:
        reached, is_complete = _expand(read, {name}, depth, max_names=MAX_NAMES)
        nearer, _ = _expand(read, {name}, depth - 1, max_names=MAX_NAMES)
        relations = relations_among(read, reached)
        touching = read.relations(nearer)
        missing = set(ends_of(touching)) - reached
        missing -= read.existing_names(missing)
        relations += [relation for relation in touching if missing.intersection(relation.ends)]
        if not relations:
            _require_known(read, (name,))
        return Graph(read.outlines(reached), relations), is_complete


def neighbours(
    memory: Memory, name: str, depth: int, *, kind: str | None, direction: Direction
) -> Graph:
    """Return the entity and those within `depth` steps along relations of a type and direction.

    The relations of that type among them come along. Raise EntityNotFound.
    """
    with memory.reading() as read:
        _require_known(read, (name,))
        reached, _ = _expand(read, {name}, depth, kind=kind, direction=direction)
        entities = read.entities(reached)
        relations = relations_among(read, reached)
    return Graph(entities, [relation for relation in relations if kind in (None, relation.type)])


def describe(memory: Memory, name: str) -> Description:
    """Return the entity, every relation that touches it, and the names at their other ends.

    Raise EntityNotFound.
    """
    graph = open_named(memory, [name])
    if not graph.entities:
        raise EntityNotFound(name)
    others = [end for end in ends_of(graph.relations) if end != name]
    return Description(graph.entities[0], graph.relations, others)


def _require_known(read: Reader, names: Collection[str]) -> None:
    require_known(names, read.existing_names(names))


def _expand(
    read: Reader,
    names: set[str],
    depth: int,
    *,
    kind: str | None = None,
    direction: Direction = "both",
    max_names: int | None = None,
) -> tuple[set[str], bool]:
    """Return the entities within `depth` steps, and False if that are more than `max_names`."""
    reached, front = set(names), set(names)
    for _ in range(depth):
        check_cancelled()
        if not front:
            break
        ends: set[str] = set()
        for relation in read.relations(front):
            if kind is not None and relation.type != kind:
                continue
            if direction != "in" and relation.source in front:
                ends.add(relation.target)
            if direction != "out" and relation.target in front:
                ends.add(relation.source)
        front = read.existing_names(ends - reached)
        if max_names is not None and len(reached) + len(front) > max_names:
            return reached, False
        reached |= front
    return reached, True


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
        for relation in read.relations(front):
            links[relation.source][relation.target] = None
            links[relation.target][relation.source] = None
        reached = {end for name in front for end in links[name]} - seen
        front = read.existing_names(reached)
        seen |= front
    inside: Links = {}
    for name, ends in links.items():
        if name in seen:
            inside[name] = [end for end in ends if end in seen]
    return inside, len(seen) <= MAX_NAMES


def _walk(
    links: Links, source: str, target: str, max_depth: int, deadline: float
) -> Iterator[list[str] | None]:
    """Yield the paths, shortest first. After the deadline yield None and stop."""
    # How many links each name is away from the target.
    remaining = {target: 0}
    front = [target]
    while front:
        reached = [end for name in front for end in links.get(name, ()) if end not in remaining]
        remaining.update(dict.fromkeys(reached, remaining[front[0]] + 1))
        front = list(dict.fromkeys(reached))
    if source not in remaining:
        return
    if source == target:
        yield [source]
        return
    for length in range(remaining[source], max_depth + 1):
        for path in _paths_of_length(links, [source], target, length, remaining, deadline):
            yield path
            if path is None:
                return


def _paths_of_length(
    links: Links,
    path: list[str],
    target: str,
    left: int,
    remaining: dict[str, int],
    deadline: float,
) -> Iterator[list[str] | None]:
    """Yield the paths that go on from this one to the target in exactly `left` relations.

    After the deadline yield None and stop.
    """
    check_cancelled()
    if monotonic() > deadline:
        yield None
        return
    for end in links.get(path[-1], ()):
        if end == target:
            if left == 1:
                yield [*path, end]
            continue
        # Leave out branches that are too far from the target.
        if end in path or remaining.get(end, left) >= left:
            continue
        for longer in _paths_of_length(links, [*path, end], target, left - 1, remaining, deadline):
            yield longer
            if longer is None:
                return
