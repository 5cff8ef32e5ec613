"""Check replies: the parts of them that show that they are right."""

from collections.abc import Callable

import msgspec

Check = Callable[[str], bool]


class Named(msgspec.Struct):
    """An entity of a reply, as far as it is checked."""

    name: str


class Graph(msgspec.Struct):
    """A graph of a reply, as far as it is checked."""

    entities: list[Named]
    relations: list[msgspec.Raw]


def holds(right: Check, text: str) -> bool:
    """Return True if the text passes the check. Text of another shape does not."""
    try:
        return right(text)
    except msgspec.DecodeError:
        return False


def found(text: str, name: str) -> bool:
    """Return True if a graph has only this entity."""
    graph = msgspec.json.decode(text, type=Graph)
    return [entity.name for entity in graph.entities] == [name]


def names_of(text: str) -> list[str]:
    """Return the names of the entities of a graph."""
    return [entity.name for entity in msgspec.json.decode(text, type=Graph).entities]


def is_path(text: str, source: str, target: str) -> bool:
    """Return True if the text is a path between these two of at most three relations."""
    path = msgspec.json.decode(text, type=list[str])
    return path[:1] == [source] and path[-1:] == [target] and len(path) <= 4


def graph_counts(text: str) -> tuple[int, int]:
    """Return how many entities and relations a graph has."""
    graph = msgspec.json.decode(text, type=Graph)
    return len(graph.entities), len(graph.relations)


def same(text: str, value: object) -> bool:
    """Return True if the text is this JSON value."""
    return bool(msgspec.json.decode(text) == value)
