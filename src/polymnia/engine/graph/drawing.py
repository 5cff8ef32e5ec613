"""Entities on a screen: those that were asked for, what is around them, and their relations."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import Entity, Graph, Relation, TypeCount
from polymnia.stores.contract import Reader, check_cancelled

# The most entities in a drawing, and how many are added around one that is expanded.
MAX_NODES = 2_000
MAX_ADDED = 40
MAX_STEPS = 3
# Up to this many entities are drawn as they are; more are shown in groups.
MAX_WHOLE = 300


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
            front = _add_neighbours(read, front, shown, kinds, added)
        return _drawing(read, shown, kinds, is_cut=len(present) > MAX_NODES)


def draw_whole(memory: Memory, kinds: Collection[str] | None = None) -> Drawing | None:
    """Return a drawing of every entity; None if there are more than MAX_WHOLE."""
    with memory.reading() as read:
        if read.counts().entities > MAX_WHOLE:
            return None
        names = [entity.name for entity in read.outlines()]
        return _drawing(read, dict.fromkeys(names), kinds, is_cut=False)


def draw_graph(graph: Graph, kinds: Collection[str] | None = None) -> Drawing:
    """Return a drawing of a graph that was read already, such as that of an earlier time."""
    names = {entity.name for entity in graph.entities}
    counts = Counter([relation.type for relation in graph.relations])
    among, _ = _split(_of_kinds(graph.relations, kinds), names)
    nodes = [Node(entity, 0) for entity in graph.entities[:MAX_NODES]]
    is_cut = len(graph.entities) > MAX_NODES
    return Drawing(nodes, among, _rank_types(counts), len(graph.entities), is_cut)


def drawn_graph(
    memory: Memory, names: Collection[str], kinds: Collection[str] | None = None
) -> Graph:
    """Return outlines of the named entities, and the relations of these types among them."""
    with memory.reading() as read:
        shown = set(names)
        relations, _ = _split(_of_kinds(read.relations(shown), kinds), shown)
        return Graph(read.outlines(shown), relations)


def _add_neighbours(
    read: Reader,
    front: Sequence[str],
    shown: dict[str, None],
    kinds: Collection[str] | None,
    added: int,
) -> list[str]:
    """Add the neighbours of the front to the drawing until it is full, and return them."""
    check_cancelled()
    if not front:
        return []
    around = _neighbours_of(read, front, shown, kinds)
    known = read.existing_names({name for names in around.values() for name in names})
    reached: dict[str, None] = {}
    for names in around.values():
        room = min(added, MAX_NODES - len(shown) - len(reached))
        for name in names:
            if room <= 0:
                break
            if name in known and name not in reached:
                reached[name] = None
                room -= 1
    shown |= reached
    return list(reached)


def _neighbours_of(
    read: Reader, front: Sequence[str], shown: Collection[str], kinds: Collection[str] | None
) -> dict[str, list[str]]:
    """Return the hidden neighbours of each entity, those of the latest relations first."""
    around: dict[str, dict[str, None]] = {name: {} for name in front}
    for relation in reversed(_of_kinds(read.relations(set(front)), kinds)):
        ends = (relation.source, relation.target)
        for this, other in (ends, ends[::-1]):
            if this in around and other not in shown:
                around[this][other] = None
    return {name: list(neighbours) for name, neighbours in around.items()}


def _drawing(
    read: Reader, shown: Collection[str], kinds: Collection[str] | None, *, is_cut: bool
) -> Drawing:
    if not shown:
        return Drawing([], [], [], read.counts().entities, is_cut)
    touching = read.relations(shown)
    counts = Counter([relation.type for relation in touching])
    among, leaving = _split(_of_kinds(touching, kinds), shown)
    hidden = _count_hidden(read, shown, leaving)
    outlines = {entity.name: entity for entity in read.outlines(shown)}
    nodes = [Node(outlines[name], hidden[name]) for name in shown]
    return Drawing(nodes, among, _rank_types(counts), read.counts().entities, is_cut)


def _count_hidden(
    read: Reader, shown: Collection[str], leaving: Sequence[Relation]
) -> dict[str, int]:
    """Return how many neighbours of each entity exist and are not shown."""
    others: dict[str, set[str]] = {name: set() for name in shown}
    for relation in leaving:
        inner, outer = relation.source, relation.target
        if inner not in others:
            inner, outer = outer, inner
        others[inner].add(outer)
    outside = {name for names in others.values() for name in names}
    # A relation may name an entity that does not exist yet.
    known = read.existing_names(outside) if outside else set()
    return {name: len(names & known) for name, names in others.items()}


def _split(
    relations: Iterable[Relation], shown: Collection[str]
) -> tuple[list[Relation], list[Relation]]:
    """Return the relations among the shown entities, and those that lead away from them."""
    among: list[Relation] = []
    leaving: list[Relation] = []
    for relation in relations:
        if relation.source in shown and relation.target in shown:
            among.append(relation)
        else:
            leaving.append(relation)
    return among, leaving


def _rank_types(counts: Counter[str]) -> list[TypeCount]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [TypeCount(kind, count) for kind, count in ranked]


def _of_kinds(relations: Iterable[Relation], kinds: Collection[str] | None) -> list[Relation]:
    if kinds is None:
        return list(relations)
    return [relation for relation in relations if relation.type in kinds]
