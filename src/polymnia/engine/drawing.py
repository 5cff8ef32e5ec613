"""Parts of the graph to draw: some entities, what is around them, and how much of it is left out."""

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


class Node(Struct, frozen=True):
    """An entity in a drawing, without its observations, and how many of its neighbours are not drawn."""

    entity: Entity
    hidden: int


class Drawing(Struct, frozen=True):
    """Entities, in the order in which they were asked for or reached, and the relations among them.

    `is_cut` is True if more were asked for than MAX_NODES. `entities` is the number in the whole memory. `types` are
    those of all relations that touch a drawn entity, the most frequent first.
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
    """Return the named entities and what is around those to expand, along relations of some types; None means all.

    Each expanded entity gets up to `added` new neighbours, those with the latest relations. Ignore unknown names.
    """
    with memory.reading() as read:
        known = read.known({*names, *expand})
        wanted = [name for name in dict.fromkeys((*names, *expand)) if name in known]
        shown = dict.fromkeys(wanted[:MAX_NODES])
        front = [name for name in dict.fromkeys(expand) if name in shown]
        for _ in range(min(steps, MAX_STEPS)):
            front = _step(read, front, shown, kinds, added)
        return _drawing(read, shown, kinds, is_cut=len(wanted) > MAX_NODES)


def drawn_graph(
    memory: Memory, names: Collection[str], kinds: Collection[str] | None = None
) -> Graph:
    """Return the named entities without their observations, and the relations of these types among them."""
    with memory.reading() as read:
        wanted = set(names)
        touching = _of_kinds(read.touching(wanted), kinds)
        relations = [each for each in touching if each.source in wanted and each.target in wanted]
        return Graph(read.outlines(wanted), relations)


def _step(
    read: Reader,
    front: Sequence[str],
    shown: dict[str, None],
    kinds: Collection[str] | None,
    added: int,
) -> list[str]:
    """Add the neighbours of the front to the shown entities until the drawing is full, and return them."""
    check_cancelled()
    around: dict[str, list[str]] = {name: [] for name in front}
    for each in reversed(_of_kinds(read.touching(set(front)), kinds)) if front else ():
        for this, other in ((each.source, each.target), (each.target, each.source)):
            if this in around and other not in shown:
                around[this].append(other)
    known = read.known({name for names in around.values() for name in names})
    reached: dict[str, None] = {}
    for names in around.values():
        new = [name for name in dict.fromkeys(names) if name in known and name not in reached]
        reached |= dict.fromkeys(new[: min(added, MAX_NODES - len(shown) - len(reached))])
    shown |= reached
    return list(reached)


def _drawing(
    read: Reader, shown: Collection[str], kinds: Collection[str] | None, *, is_cut: bool
) -> Drawing:
    all_touching = read.touching(shown) if shown else []
    counts = Counter([each.type for each in all_touching])
    touching = _of_kinds(all_touching, kinds)
    among: list[Relation] = []
    leaving: list[Relation] = []
    for each in touching:
        (among if each.source in shown and each.target in shown else leaving).append(each)
    known = (
        read.known({end for each in leaving for end in (each.source, each.target)})
        if leaving
        else set()
    )
    others: dict[str, set[str]] = {name: set() for name in shown}
    for each in leaving:
        inner, outer = (
            (each.source, each.target) if each.source in shown else (each.target, each.source)
        )
        if outer in known:
            others[inner].add(outer)
    outlines = {each.name: each for each in read.outlines(shown)} if shown else {}
    nodes = [Node(outlines[name], len(others[name])) for name in shown]
    types = [
        TypeCount(kind, count)
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return Drawing(nodes, among, types, read.counts().entities, is_cut)


def _of_kinds(relations: Iterable[Relation], kinds: Collection[str] | None) -> list[Relation]:
    return [each for each in relations if kinds is None or each.type in kinds]
