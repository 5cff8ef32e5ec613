"""The overview of the graph: the entities in at most 200 groups, and the relations between these."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from time import monotonic, time_ns
from typing import Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from polymnia.engine.curation.clusters import label_members
from polymnia.engine.curation.scan import Check, never_stop
from polymnia.engine.memory import Memory
from polymnia.model import ChangeQuery, Entity
from polymnia.search.communities import find_communities
from polymnia.stores.contract import Reader, Store

# Bounds on all groups, on the groups of entities without relations, and on the links between groups.
MAX_GROUPS = 200
MAX_LOOSE_GROUPS = 12
MAX_LINKS = 2_000
# Up to this many entities the overview is computed while a page is being loaded.
MAX_QUICK_ENTITIES = 5_000
# A cached overview is used this many times longer than it took to compute, whatever has changed since.
_REUSE_FACTOR = 20.0

GroupKind = Literal["cluster", "small", "loose"]


class Group(Struct, frozen=True):
    """Entities shown as one node, the most connected first.

    A `cluster` is held together by relations; `small` has all clusters that are not shown on their own; `loose` has
    entities of one type without relations. `inside` and `outside` count the relations among its entities and to other
    groups.
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
    """All entities in groups, the largest clusters first, and the strongest links between groups.

    `change` is the last change that it covers, 0 in a store without history. It was computed `at` that time and took
    `seconds`.
    """

    groups: list[Group]
    links: list[GroupLink]
    entities: int
    relations: int
    change: int
    at: int
    seconds: float


def graph_overview(memory: Memory, *, check: Check = never_stop) -> GraphOverview:
    """Return the overview of the whole memory. It reads every name and relation, so it may take seconds."""
    started = monotonic()
    with memory.reading() as read:
        change = last_change(memory, read)
        entities = read.outlines()
        graph = _Graph(entities, [(each.source, each.target) for each in read.relations()])
        check()
        groups = graph.groups(check)
        labels = label_members(read, [group.names for group in groups], check)
    # A type says more about unrelated entities than their words, and a name more than no words.
    named = [
        Group(each.kind, _label(each, label), each.type, each.names, each.inside, each.outside)
        for each, label in zip(groups, labels, strict=True)
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


def last_change(memory: Memory, read: Reader) -> int:
    """Return the id of the last change; 0 if there is none or the store has no history."""
    if not memory.store.capabilities.history:
        return 0
    latest = read.history.latest(ChangeQuery(limit=1))
    return latest[0].id if latest else 0


class GraphOverviews:
    """The overviews of some memories. If a memory has changed, its overview is computed again, but not all the time.

    Safe for several threads: one computes and the others wait for it.
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
        """Return the overview of a memory, or None if it must be computed first and the memory is large."""
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
        self._names = [each.name for each in entities]
        self._types = [each.type for each in entities]
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
            find_communities(self._neighbours, check), key=lambda each: (-len(each), min(each))
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
        """Return the entities without relations by type, the most frequent types first, and the rest as one group."""
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
            tuple([self._names[node] for node in ordered]),
            inside,
            outside,
        )
