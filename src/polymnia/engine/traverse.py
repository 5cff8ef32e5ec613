"""Verbs that follow relations: paths, neighbours and subgraphs. Relations are followed both ways unless said otherwise.

Every step out from a set of names is one question to the store, however many names are in it. Only names that
entities have are walked on.
"""

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct

from polymnia.engine.entities import open_named
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.stores.contract import Reader

Direction = Literal["out", "in", "both"]


class Description(Struct, frozen=True):
    """One entity and what it touches."""

    entity: Entity
    relations: list[Relation]
    neighbours: list[str]


def shortest_path(memory: Memory, source: str, target: str) -> list[str]:
    """The names from one entity to the other along the fewest relations; empty when nothing connects them.

    Raises EntityNotFound.
    """
    with memory.reading() as read:
        require(read, (source, target))
        if source == target:
            return [source]
        return _meet(read, source, target)


def subgraph(memory: Memory, names: Collection[str], depth: int) -> Graph:
    """The entities within so many steps of the names, and the relations among them. Unknown names are passed over."""
    with memory.reading() as read:
        reached = _reached(read, read.known(names), depth, None, "both")
        return _among(read, reached)


def neighbours(memory: Memory, name: str, depth: int, *, kind: str | None, direction: Direction) -> Graph:
    """The entity and those within so many steps along relations of a type and direction, and what relates them.

    Raises EntityNotFound.
    """
    with memory.reading() as read:
        require(read, (name,))
        reached = _reached(read, {name}, depth, kind, direction)
        graph = _among(read, reached)
    return Graph(graph.entities, [each for each in graph.relations if kind is None or each.type == kind])


def describe(memory: Memory, name: str) -> Description:
    """The entity, every relation that touches it, and who is at their other ends. Raises EntityNotFound."""
    graph = open_named(memory, [name])
    if not graph.entities:
        raise EntityNotFound(name)
    others = [_other_end(relation, name) for relation in graph.relations]
    distinct = [other for other in dict.fromkeys(others) if other != name]
    return Description(graph.entities[0], graph.relations, distinct)


def require(read: Reader, names: Iterable[str]) -> None:
    """Raises EntityNotFound for the first name that no entity has."""
    known = read.known(set(names))
    for name in names:
        if name not in known:
            raise EntityNotFound(name)


def _meet(read: Reader, source: str, target: str) -> list[str]:
    """Search from both ends, the smaller front first, until they touch."""
    came_from: dict[str, str | None] = {source: None}
    goes_to: dict[str, str | None] = {target: None}
    front, back = [source], [target]
    while front and back:
        forward = len(front) <= len(back)
        mine, other = (came_from, goes_to) if forward else (goes_to, came_from)
        stepped = _step(read, front if forward else back, mine)
        for name in stepped:
            if name in other:
                return _chain(came_from, name)[::-1] + _chain(goes_to, name)[1:]
        if forward:
            front = stepped
        else:
            back = stepped
    return []


def _step(read: Reader, names: list[str], seen: dict[str, str | None]) -> list[str]:
    """The entities one relation further, each with where it was reached from."""
    here = set(names)
    found: dict[str, str] = {}
    for relation in read.touching(here):
        for this, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if this in here and other not in seen:
                found.setdefault(other, this)
    known = read.known(found)
    fresh = {name: via for name, via in found.items() if name in known}
    seen.update(fresh)
    return list(fresh)


def _chain(links: dict[str, str | None], name: str) -> list[str]:
    chain = [name]
    while (following := links[chain[-1]]) is not None:
        chain.append(following)
    return chain


def _reached(read: Reader, names: set[str], depth: int, kind: str | None, direction: Direction) -> set[str]:
    reached, front = set(names), set(names)
    for _ in range(depth):
        if not front:
            break
        ends = [end for relation in read.touching(front) for end in _ends(relation, front, kind, direction)]
        front = read.known(set(ends) - reached)
        reached |= front
    return reached


def _ends(relation: Relation, front: set[str], kind: str | None, direction: Direction) -> list[str]:
    if kind is not None and relation.type != kind:
        return []
    ends = []
    if direction != "in" and relation.source in front:
        ends.append(relation.target)
    if direction != "out" and relation.target in front:
        ends.append(relation.source)
    return ends


def _among(read: Reader, names: set[str]) -> Graph:
    relations = [each for each in read.touching(names) if each.source in names and each.target in names]
    return Graph(read.find(names), relations)


def _other_end(relation: Relation, name: str) -> str:
    return relation.target if relation.source == name else relation.source
