"""The graph on a screen: entities and their surroundings, all entities in groups, and diagrams."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Lock
from time import monotonic, time_ns
from typing import Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from polymnia.engine.curation.clusters import label_members
from polymnia.engine.curation.findings import Check, never_stop
from polymnia.engine.history.changes import last_change
from polymnia.engine.memory import Memory
from polymnia.model import Entity, Graph, Relation, TypeCount
from polymnia.search.communities import find_communities
from polymnia.stores.contract import Reader, Store, check_cancelled

# The most entities in a drawing, and how many are added around one that is expanded.
MAX_NODES = 2_000
MAX_ADDED = 40
MAX_STEPS = 3


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
        known = read.existing_names({*names, *expand})
        wanted = [name for name in dict.fromkeys((*names, *expand)) if name in known]
        shown = dict.fromkeys(wanted[:MAX_NODES])
        front = [name for name in dict.fromkeys(expand) if name in shown]
        for _ in range(min(steps, MAX_STEPS)):
            front = _step(read, front, shown, kinds, added)
        return _drawing(read, shown, kinds, is_cut=len(wanted) > MAX_NODES)


def drawn_graph(
    memory: Memory, names: Collection[str], kinds: Collection[str] | None = None
) -> Graph:
    """Return outlines of the named entities, and the relations of these types among them."""
    with memory.reading() as read:
        wanted = set(names)
        touching = _of_kinds(read.relations(wanted), kinds)
        relations = [
            relation
            for relation in touching
            if relation.source in wanted and relation.target in wanted
        ]
        return Graph(read.outlines(wanted), relations)


def _step(
    read: Reader,
    front: Sequence[str],
    shown: dict[str, None],
    kinds: Collection[str] | None,
    added: int,
) -> list[str]:
    """Add the neighbours of the front to the drawing until it is full, and return them."""
    check_cancelled()
    around: dict[str, list[str]] = {name: [] for name in front}
    for kind in reversed(_of_kinds(read.relations(set(front)), kinds)) if front else ():
        for this, other in ((kind.source, kind.target), (kind.target, kind.source)):
            if this in around and other not in shown:
                around[this].append(other)
    known = read.existing_names({name for names in around.values() for name in names})
    reached: dict[str, None] = {}
    for names in around.values():
        new = [name for name in dict.fromkeys(names) if name in known and name not in reached]
        reached |= dict.fromkeys(new[: min(added, MAX_NODES - len(shown) - len(reached))])
    shown |= reached
    return list(reached)


def _drawing(
    read: Reader, shown: Collection[str], kinds: Collection[str] | None, *, is_cut: bool
) -> Drawing:
    all_touching = read.relations(shown) if shown else []
    counts = Counter([item.type for item in all_touching])
    touching = _of_kinds(all_touching, kinds)
    among: list[Relation] = []
    leaving: list[Relation] = []
    for relation in touching:
        (among if relation.source in shown and relation.target in shown else leaving).append(
            relation
        )
    known = (
        read.existing_names({end for item in leaving for end in (item.source, item.target)})
        if leaving
        else set()
    )
    others: dict[str, set[str]] = {name: set() for name in shown}
    for entry in leaving:
        inner, outer = (
            (entry.source, entry.target) if entry.source in shown else (entry.target, entry.source)
        )
        if outer in known:
            others[inner].add(outer)
    outlines = {entity.name: entity for entity in read.outlines(shown)} if shown else {}
    nodes = [Node(outlines[name], len(others[name])) for name in shown]
    types = [
        TypeCount(kind, count)
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return Drawing(nodes, among, types, read.counts().entities, is_cut)


def _of_kinds(relations: Iterable[Relation], kinds: Collection[str] | None) -> list[Relation]:
    return [relation for relation in relations if kinds is None or relation.type in kinds]


# Bounds on all groups, on the groups of entities without relations, and on the links between
# groups.
MAX_GROUPS = 200
MAX_LOOSE_GROUPS = 12
MAX_LINKS = 2_000
# Up to this many entities the overview is computed while a page is being loaded.
MAX_QUICK_ENTITIES = 5_000
# A cached overview is used this many times longer than it took to compute, whatever has changed
# since.
_REUSE_FACTOR = 20.0

GroupKind = Literal["cluster", "small", "loose"]


class Group(Struct, frozen=True):
    """Entities shown as one node, the most connected first.

    A `cluster` is held together by relations; `small` has all clusters that are not shown on their
    own; `loose` has entities of one type without relations. `inside` and `outside` count the
    relations among its entities and to other groups.
    """

    kind: GroupKind
    label: str
    type: str  # the most common type of its entities
    names: tuple[str, ...]
    inside: int = 0
    outside: int = 0


class GroupLink(Struct, frozen=True, gc=False):
    """How many relations join two groups, given by their positions in the list of groups."""

    one: int
    other: int
    count: int


class GraphOverview(Struct, frozen=True):
    """All entities in groups, the largest clusters first, and the strongest links between them.

    `change` is the last change that it covers, 0 in a store without history. It was computed `at`
    that time and took `seconds`.
    """

    groups: list[Group]
    links: list[GroupLink]
    entities: int
    relations: int
    change: int
    at: int
    seconds: float


def graph_overview(memory: Memory, *, check: Check = never_stop) -> GraphOverview:
    """Return the overview of the whole memory.

    It reads every name and relation, so it may take seconds.
    """
    started = monotonic()
    with memory.reading() as read:
        change = last_change(memory, read)
        entities = read.outlines()
        graph = _Graph(
            entities, [(relation.source, relation.target) for relation in read.relations()]
        )
        check()
        groups = graph.groups(check)
        labels = label_members(read, [group.names for group in groups], check)
    # A type says more about unrelated entities than their words, and a name more than no words.
    named = [
        Group(
            group.kind, _label(group, label), group.type, group.names, group.inside, group.outside
        )
        for group, label in zip(groups, labels, strict=True)
    ]
    links = graph.links()
    return GraphOverview(
        named,
        links,
        len(entities),
        graph.relations,
        change,
        time_ns() // 1000,
        monotonic() - started,
    )


class GraphOverviews:
    """The overviews of some memories.

    If a memory has changed, its overview is computed again, but not all the time. Safe for several
    threads: one computes and the others wait for it.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        # By open store, not by name: another workspace may get the name of a deleted one.
        self._found: WeakKeyDictionary[Store, tuple[float, GraphOverview]] = WeakKeyDictionary()
        self._computing: WeakKeyDictionary[Store, Lock] = WeakKeyDictionary()

    def find(self, memory: Memory, *, refresh: bool = False) -> GraphOverview:
        """Return the overview of a memory; with `refresh` a new one if anything has changed."""
        with self._lock:
            computing = self._computing.setdefault(memory.store, Lock())
        with computing:
            at, found = self._found.get(memory.store, (0.0, None))
            if found is None or self._is_outdated(memory, at, found, refresh):
                found = graph_overview(memory)
                with self._lock:
                    self._found[memory.store] = (self._clock(), found)
        return found

    def find_soon(self, memory: Memory) -> GraphOverview | None:
        """Return the overview of a memory; None if it is large and not computed yet."""
        with self._lock:
            is_cached = memory.store in self._found
        if not is_cached:
            with memory.reading() as read:
                if read.counts().entities > MAX_QUICK_ENTITIES:
                    return None
        return self.find(memory)

    def _is_outdated(self, memory: Memory, at: float, found: GraphOverview, refresh: bool) -> bool:
        if not refresh and self._clock() - at < _REUSE_FACTOR * found.seconds:
            return False
        with memory.reading() as read:
            return not found.change or last_change(memory, read) != found.change


def _label(group: Group, words: str | None) -> str:
    return group.label or words or group.names[0]


class _Graph:
    """Entities by number, and the relations between them."""

    def __init__(self, entities: Sequence[Entity], ends: Iterable[tuple[str, str]]) -> None:
        self._names = [entity.name for entity in entities]
        self._types = [entity.type for entity in entities]
        place = {name: number for number, name in enumerate(self._names)}
        self._pairs = [(place[a], place[b]) for a, b in ends if a in place and b in place]
        self.relations = len(self._pairs)
        self._degrees: Counter[int] = Counter()
        self._neighbours: list[dict[int, float]] = [{} for _ in self._names]
        for a, b in self._pairs:
            if a != b:
                self._degrees.update((a, b))
                self._neighbours[a][b] = self._neighbours[b][a] = 1.0
        self._group_of: dict[int, int] = {}

    def groups(self, check: Check) -> list[Group]:
        """Return all entities in groups."""
        loose = self._loose()
        clusters = sorted(
            find_communities(self._neighbours, check),
            key=lambda community: (-len(community), min(community)),
        )
        room = MAX_GROUPS - len(loose)
        shown = clusters if len(clusters) <= room else clusters[: room - 1]
        small = [node for group in clusters[len(shown) :] for node in group]
        kinds: list[tuple[GroupKind, list[int], str]] = [("cluster", group, "") for group in shown]
        kinds += (
            [("small", small, f"{len(clusters) - len(shown):,} small clusters")] if small else []
        )
        kinds += [("loose", group, label) for label, group in loose]
        self._group_of = {
            node: number for number, (_, group, _) in enumerate(kinds) for node in group
        }
        inside, outside = self._count_ends()
        return [
            self._group(kind, group, label, inside[number], outside[number])
            for number, (kind, group, label) in enumerate(kinds)
        ]

    def links(self) -> list[GroupLink]:
        """Return how many relations join each pair of groups, the strongest first."""
        counts: Counter[tuple[int, int]] = Counter()
        for a, b in self._pairs:
            one, other = sorted((self._group_of[a], self._group_of[b]))
            if one != other:
                counts[one, other] += 1
        strongest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_LINKS]
        return [GroupLink(one, other, count) for (one, other), count in strongest]

    def _loose(self) -> list[tuple[str, list[int]]]:
        """Return the entities without relations: the most frequent types, then the rest."""
        by_type: defaultdict[str, list[int]] = defaultdict(list)
        for node, kind in enumerate(self._types):
            if not self._neighbours[node]:
                by_type[kind].append(node)
        ranked = sorted(by_type.items(), key=lambda item: (-len(item[1]), item[0]))
        found = [(f"{kind} without relations", nodes) for kind, nodes in ranked[:MAX_LOOSE_GROUPS]]
        rest = [node for _, nodes in ranked[MAX_LOOSE_GROUPS:] for node in nodes]
        return [*found, ("other types without relations", rest)] if rest else found

    def _count_ends(self) -> tuple[Counter[int], Counter[int]]:
        inside: Counter[int] = Counter()
        outside: Counter[int] = Counter()
        for a, b in self._pairs:
            one, other = self._group_of[a], self._group_of[b]
            if one == other:
                inside[one] += 1
            else:
                outside.update((one, other))
        return inside, outside

    def _group(
        self, kind: GroupKind, nodes: list[int], label: str, inside: int, outside: int
    ) -> Group:
        ordered = sorted(nodes, key=lambda node: (-self._degrees[node], node))
        types = Counter([self._types[node] for node in nodes])
        return Group(
            kind,
            label,
            types.most_common(1)[0][0],
            tuple(self._names[node] for node in ordered),
            inside,
            outside,
        )


_PLAIN_LABEL = re.compile(r"[A-Za-z0-9_ -]*[A-Za-z0-9_-]")
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
    return text if _PLAIN_LABEL.fullmatch(text) else f'"{_mermaid_text(text)}"'


def _mermaid_text(text: str) -> str:
    """Return the text with special characters of Mermaid and HTML as entity codes; never empty."""
    escaped = [
        f"#{ord(item)};" if item in _MERMAID_SPECIAL else item for item in _CONTROL.sub(" ", text)
    ]
    return "".join(escaped).strip() or " "


_MERMAID_SPECIAL = frozenset('"#<>&;`|[]{}()\\')


def _dot_text(text: str) -> str:
    """Escape text for a quoted DOT string: keep line breaks, drop other control characters."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\r\n", "\n").replace("\n", "\\n")
    )
    return _CONTROL.sub(" ", escaped)
