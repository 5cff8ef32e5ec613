"""Drawings of a graph: on a screen, and as text for Mermaid and Graphviz.

A screen shows the entities that were asked for, what is around them, and their relations.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import Entity, Graph, Relation, TypeCount
from polymnia.stores.contract import Reader, check_cancelled

# The most entities in a drawing, and how many are added around one that is expanded.
MAX_NODES = 300
MAX_ADDED = 40
MAX_STEPS = 3
# The best connected entities are looked for among so many, those that changed last.
MAX_RANKED = 2_000


class Node(Struct, frozen=True):
    """The outline of an entity in a drawing, and how many of its neighbours are not drawn."""

    entity: Entity
    hidden: int


class Drawing(Struct, frozen=True):
    """Entities, in the order of the request or as they were reached, and the relations among them.

    `is_cut` is True if more were asked for than MAX_NODES. `entities` is the number in the whole
    memory. `types` are those of all relations that touch a drawn entity, the most frequent first.
    """

    nodes: list[Node]
    relations: list[Relation]
    types: list[TypeCount]
    entities: int
    is_cut: bool = False


def draw(
    memory: Memory,
    names: Sequence[str],
    *,
    expand: Collection[str] = (),
    steps: int = 1,
    kinds: Collection[str] | None = None,
    added: int = MAX_ADDED,
) -> Drawing:
    """Return the named entities and what is around those to expand.

    Follow relations of these types; None means all. Each expanded entity gets up to `added` new
    neighbours, those with the latest relations. Ignore unknown names.
    """
    with memory.reading() as read:
        requested = dict.fromkeys((*names, *expand))
        known = read.existing_names(requested)
        present = [name for name in requested if name in known]
        shown = dict.fromkeys(present[:MAX_NODES])
        front = [name for name in dict.fromkeys(expand) if name in shown]
        for _ in range(min(steps, MAX_STEPS)):
            if not front:
                break
            front = _neighbours(read, front, shown, kinds, added)
            shown |= dict.fromkeys(front)
        return _drawing(read, shown, kinds, is_cut=len(present) > MAX_NODES)


def draw_connected(memory: Memory, count: int, *, kinds: Collection[str] | None = None) -> Drawing:
    """Return the entities with most relations, best first, then those that changed last.

    Only the MAX_RANKED entities that changed last are compared.
    """
    with memory.reading() as read:
        latest = [entity.name for entity in read.outlines(latest=MAX_RANKED)]
        degrees: Counter[str] = Counter()
        for relation in _of_kinds(read.relations(latest), kinds) if latest else ():
            degrees.update({relation.source, relation.target})
        latest.sort(key=lambda name: -degrees[name])
        return _drawing(read, dict.fromkeys(latest[: min(count, MAX_NODES)]), kinds)


def _neighbours(
    read: Reader,
    front: Sequence[str],
    shown: Collection[str],
    kinds: Collection[str] | None,
    added: int,
) -> list[str]:
    """Return neighbours of the front that are not shown, as many as there is room for."""
    check_cancelled()
    around: dict[str, dict[str, None]] = {name: {} for name in front}
    for relation in reversed(_of_kinds(read.relations(set(front)), kinds)):  # the latest first
        ends = (relation.source, relation.target)
        for this, other in (ends, ends[::-1]):
            if this in around and other not in shown:
                around[this][other] = None
    # A relation may name an entity that does not exist yet.
    known = read.existing_names({name for names in around.values() for name in names})
    reached: dict[str, None] = {}
    for names in around.values():
        room = min(added, MAX_NODES - len(shown) - len(reached))
        new = [name for name in names if name in known and name not in reached]
        reached |= dict.fromkeys(new[: max(0, room)])
    return list(reached)


def _drawing(
    read: Reader,
    shown: Collection[str],
    kinds: Collection[str] | None,
    *,
    is_cut: bool = False,
) -> Drawing:
    entities = read.counts().entities
    if not shown:
        return Drawing([], [], [], entities, is_cut)
    touching = read.relations(shown)
    among: list[Relation] = []
    others: dict[str, set[str]] = {name: set() for name in shown}
    for relation in _of_kinds(touching, kinds):
        if relation.source in others and relation.target in others:
            among.append(relation)
        elif relation.source in others:
            others[relation.source].add(relation.target)
        else:
            others[relation.target].add(relation.source)
    outside = {name for names in others.values() for name in names}
    known = read.existing_names(outside) if outside else set()
    outlines = {entity.name: entity for entity in read.outlines(shown)}
    nodes = [Node(outlines[name], len(others[name] & known)) for name in shown]
    counts = Counter([relation.type for relation in touching])
    types = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ranked = [TypeCount(kind, count) for kind, count in types]
    return Drawing(nodes, among, ranked, entities, is_cut)


def _of_kinds(relations: Iterable[Relation], kinds: Collection[str] | None) -> list[Relation]:
    if kinds is None:
        return list(relations)
    return [relation for relation in relations if relation.type in kinds]


_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def as_mermaid(graph: Graph) -> str:
    """Return a Mermaid flowchart from left to right."""
    nodes = _node_ids(graph)
    lines = ["graph LR"]
    lines += [f'  {node}["{_mermaid_text(name)}"]' for name, node in nodes.items()]
    for relation in graph.relations:
        arrow = f"-->|{_mermaid_label(relation.type)}|" if relation.type.strip() else "-->"
        lines.append(f"  {nodes[relation.source]} {arrow} {nodes[relation.target]}")
    return "\n".join(lines)


def as_dot(graph: Graph) -> str:
    """Return a directed graph in the DOT language."""
    nodes = _node_ids(graph)
    lines = ["digraph G {"]
    lines += [f'  {node} [label="{_dot_text(name)}"];' for name, node in nodes.items()]
    for relation in graph.relations:
        ends = f"{nodes[relation.source]} -> {nodes[relation.target]}"
        lines.append(f'  {ends} [label="{_dot_text(relation.type)}"];')
    return "\n".join([*lines, "}"])


def _node_ids(graph: Graph) -> dict[str, str]:
    """Return a node id for every entity, then for every name that only relations mention."""
    names = [entity.name for entity in graph.entities]
    names += [end for relation in graph.relations for end in (relation.source, relation.target)]
    return {name: f"n{number}" for number, name in enumerate(dict.fromkeys(names))}


def _mermaid_label(text: str) -> str:
    return (
        text if re.fullmatch(r"[A-Za-z0-9_ -]*[A-Za-z0-9_-]", text) else f'"{_mermaid_text(text)}"'
    )


def _mermaid_text(text: str) -> str:
    """Return the text with special characters of Mermaid and HTML as entity codes; never empty."""
    escaped = ""
    for character in _CONTROL.sub(" ", text):
        if character in _MERMAID_SPECIAL:
            escaped += f"#{ord(character)};"
        else:
            escaped += character
    return escaped.strip() or " "


_MERMAID_SPECIAL = frozenset('"#<>&;`|[]{}()\\')


def _dot_text(text: str) -> str:
    """Escape text for a quoted DOT string: keep line breaks, drop other control characters."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\r\n", "\n").replace("\n", "\\n")
    )
    return _CONTROL.sub(" ", escaped)
