"""All entities in groups that relations hold together, computed once for each state of a memory."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from math import cos, hypot, sin, sqrt
from threading import Lock
from time import monotonic, time_ns
from typing import Literal
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.curation.findings import Check, never_stop
from polymnia.engine.graph.drawing import MAX_WHOLE
from polymnia.engine.history.changes import last_change
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Entity
from polymnia.search.communities import find_communities
from polymnia.stores.contract import Store

# Groups that are shown on their own. Smaller clusters are shown as one.
MAX_GROUPS = 40
MIN_GROUP_ENTITIES = 20
# A group of fewer entities may be shown where there are not many: one for so many.
_ENTITIES_PER_MIN = 100
MAX_LOOSE_GROUPS = 6
# Links of a group that are kept, the strongest ones: all of them are a grey hairball.
MAX_LINKS = 3
# Types that are named beside a group.
MAX_TYPES = 3
# Steps of the layout; it has come to rest long before.
_LAYOUT_STEPS = 160
# A new overview is computed after this many times as long as the last one took.
_PAUSE_FACTOR = 20.0

GroupKind = Literal["cluster", "small", "loose"]
# The way to a group: its place in the overview, then in that of the group, and so on.
GroupPath = tuple[int, ...]


class Group(Struct, frozen=True):
    """Entities shown as one node, the most connected first.

    A `cluster` is held together by relations; `small` has all clusters that are not shown on their
    own; `loose` has entities of one type without relations. `inside` and `outside` count the
    relations among its entities and to other groups. `x` and `y` are its place in a drawing.
    """

    kind: GroupKind
    label: str
    types: tuple[str, ...]  # the most common ones of its entities
    names: tuple[str, ...]
    inside: int = 0
    outside: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def type(self) -> str:
        return self.types[0]


class GroupLink(Struct, frozen=True, gc=False):
    """How many relations join two groups, given by their positions in the list of groups."""

    one: int
    other: int
    count: int


class GraphOverview(Struct, frozen=True):
    """Entities in groups, the largest clusters first, and the strongest links between them.

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

    def group_of(self, name: str) -> int | None:
        """Return the place of the group that has an entity."""
        for place, group in enumerate(self.groups):
            if name in group.names:
                return place
        return None


def graph_overview(
    memory: Memory, names: Sequence[str] | None = None, *, check: Check = never_stop
) -> GraphOverview:
    """Return the overview of the whole memory, or of some entities.

    It reads every name and relation, so it may take seconds.
    """
    began = monotonic()
    with memory.reading() as read:
        change = last_change(memory, read)
        entities = read.outlines(names)
        relations = read.relations(names)
    check()
    ends = [(relation.source, relation.target) for relation in relations]
    grouping = _Grouping(entities, ends)
    groups = grouping.groups(check)
    links = grouping.links()
    return GraphOverview(
        _place(groups, links),
        links,
        len(entities),
        grouping.relations,
        change,
        time_ns() // 1000,
        monotonic() - began,
    )


class GraphOverviews:
    """The overviews of some memories, and of their large groups. Thread-safe.

    A worker thread computes an overview, once for each state of a memory. Meanwhile the last one
    is used.
    """

    def __init__(self, pool: Executor, clock: Callable[[], float] = monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._lock = Lock()
        # By open store, not by name: another workspace may get the name of a deleted one.
        self._runs: WeakKeyDictionary[Store, _Run] = WeakKeyDictionary()

    def find(self, memory: Memory, path: GroupPath = (), *, refresh: bool = False) -> GraphOverview:
        """Return the latest overview, or that of a group in it. Wait for a first one.

        With `refresh`, wait for one of the present state. Raise BadInput if there is no such group.
        """
        run = self._start(memory, refresh=refresh)
        must_wait = refresh or run.former is None
        overview = run.task.result() if must_wait else run.latest
        for depth in range(len(path)):
            overview = run.part(memory, overview, path[: depth + 1])
        return overview

    def find_soon(self, memory: Memory) -> GraphOverview | None:
        """Return the latest overview; None if the first one is still being computed."""
        run = self._start(memory)
        return run.latest if run.former is not None or run.task.done() else None

    def prepare(self, memory: Memory) -> None:
        """Let the overview of a large memory be computed before somebody asks for it."""
        with self._lock:
            is_known = memory.store in self._runs
        if not is_known:
            with memory.reading() as read:
                is_known = read.counts().entities > MAX_WHOLE
        if is_known:
            self._start(memory)

    def _start(self, memory: Memory, *, refresh: bool = False) -> "_Run":
        """Return the latest run, or a new one if the memory has changed and it is time for it."""
        with memory.reading() as read:
            change = last_change(memory, read)
        with self._lock:
            run = self._runs.get(memory.store)
            if run is not None and run.has_failed:
                run = None
            if run is not None and (not run.task.done() or not self._is_due(run, change, refresh)):
                return run
            former = run.latest if run is not None else None
            task = self._pool.submit(graph_overview, memory)
            self._runs[memory.store] = _Run(task, former, self._clock())
            return self._runs[memory.store]

    def _is_due(self, run: "_Run", change: int, refresh: bool) -> bool:
        overview = run.latest
        if overview.change and overview.change == change:
            return False
        return refresh or self._clock() - run.began >= _PAUSE_FACTOR * overview.seconds


class _Run:
    """One computation of an overview, the overview before it, and those of large groups."""

    def __init__(
        self, task: Future[GraphOverview], former: GraphOverview | None, began: float
    ) -> None:
        self.task = task
        self.former = former
        self.began = began
        self._parts: dict[tuple[int, GroupPath], GraphOverview] = {}

    @property
    def has_failed(self) -> bool:
        return self.task.done() and self.task.exception() is not None

    @property
    def latest(self) -> GraphOverview:
        if self.former is not None and not self.task.done():
            return self.former
        return self.task.result()

    def part(self, memory: Memory, overview: GraphOverview, path: GroupPath) -> GraphOverview:
        """Return the overview of a group. A change of the memory may lead to another group."""
        if path[-1] >= len(overview.groups):
            raise BadInput("there is no such cluster any more: open the overview again")
        key = (overview.change, path)
        if key not in self._parts:
            self._parts[key] = graph_overview(memory, overview.groups[path[-1]].names)
        return self._parts[key]


class _Grouping:
    """Entities by number, the relations between them, and the group of each."""

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
        self._clusters = 0

    def groups(self, check: Check) -> list[Group]:
        """Return all entities in groups."""
        clusters = find_communities(self._neighbours, check)
        clusters.sort(key=lambda cluster: (-len(cluster), min(cluster)))
        parts: list[tuple[GroupKind, str, list[int]]] = []
        small: list[int] = []
        small_clusters = 0
        least = min(MIN_GROUP_ENTITIES, len(self._names) // _ENTITIES_PER_MIN)
        for cluster in clusters:
            if len(parts) < MAX_GROUPS and len(cluster) >= least:
                parts.append(("cluster", "", cluster))
            else:
                small += cluster
                small_clusters += 1
        self._clusters = len(parts)
        if small:
            parts.append(("small", f"{small_clusters:,} small clusters", small))
        for label, nodes in self._loose():
            parts.append(("loose", label, nodes))
        for number, (_, _, nodes) in enumerate(parts):
            self._group_of.update(dict.fromkeys(nodes, number))
        inside, outside = self._count_ends()
        groups = []
        for number, (kind, label, nodes) in enumerate(parts):
            groups.append(self._group(kind, label, nodes, inside[number], outside[number]))
        return groups

    def links(self) -> list[GroupLink]:
        """Return how many relations join two groups, the strongest links of each group."""
        counts: Counter[tuple[int, int]] = Counter()
        for a, b in self._pairs:
            one, other = sorted((self._group_of[a], self._group_of[b]))
            # What the small clusters have to do with others says nothing about any of them.
            if one != other and other < self._clusters:
                counts[one, other] += 1
        links = []
        kept: Counter[int] = Counter()
        for (one, other), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            if min(kept[one], kept[other]) < MAX_LINKS:
                kept.update((one, other))
                links.append(GroupLink(one, other, count))
        return links

    def _loose(self) -> list[tuple[str, list[int]]]:
        """Return the entities without relations: the most frequent types, then the rest."""
        by_type: defaultdict[str, list[int]] = defaultdict(list)
        for node, kind in enumerate(self._types):
            if not self._neighbours[node]:
                by_type[kind].append(node)
        ranked = sorted(by_type.items(), key=lambda item: (-len(item[1]), item[0]))
        loose = []
        for kind, nodes in ranked[:MAX_LOOSE_GROUPS]:
            loose.append((f"{kind} without relations", nodes))
        rest = [node for _, nodes in ranked[MAX_LOOSE_GROUPS:] for node in nodes]
        if rest:
            loose.append(("other types without relations", rest))
        return loose

    def _count_ends(self) -> tuple[Counter[int], Counter[int]]:
        """Return the relations inside each group, and those that lead to others."""
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
        self, kind: GroupKind, label: str, nodes: list[int], inside: int, outside: int
    ) -> Group:
        """Return a group. A cluster has the name of its best connected entity."""
        ordered = sorted(nodes, key=lambda node: (-self._degrees[node], node))
        counts = Counter([self._types[node] for node in nodes])
        types = tuple(name for name, _ in counts.most_common(MAX_TYPES))
        names = tuple(self._names[node] for node in ordered)
        return Group(kind, label or names[0], types, names, inside, outside)


def group_radius(group: Group) -> float:
    """Return the radius of a group in a drawing: its area is its number of entities."""
    return 1.0 + sqrt(len(group.names))


def _place(groups: Sequence[Group], links: Sequence[GroupLink]) -> list[Group]:
    """Return the groups with places: linked ones near each other, none over another.

    Each step pulls linked groups together and the whole to the middle, then pushes apart what
    overlaps. It is the same for the same groups.
    """
    radii = [group_radius(group) for group in groups]
    gap = max(radii, default=0.0) * 0.5
    spread = 3 * max(radii, default=0.0)
    xs = [spread * sqrt(place) * cos(2.4 * place) for place in range(len(groups))]
    ys = [spread * sqrt(place) * sin(2.4 * place) for place in range(len(groups))]
    strongest = max((link.count for link in links), default=1)
    for step in range(_LAYOUT_STEPS):
        heat = 0.1 * (1 - step / _LAYOUT_STEPS)
        for link in links:
            pull = heat * sqrt(link.count / strongest)
            dx, dy = xs[link.other] - xs[link.one], ys[link.other] - ys[link.one]
            xs[link.one] += pull * dx
            ys[link.one] += pull * dy
            xs[link.other] -= pull * dx
            ys[link.other] -= pull * dy
        for place in range(len(groups)):
            xs[place] *= 1 - 0.3 * heat
            ys[place] *= 1 - 0.3 * heat
        _push_apart(xs, ys, radii, gap)
    for _ in range(_LAYOUT_STEPS):
        _push_apart(xs, ys, radii, gap)
    placed = []
    for group, x, y in zip(groups, xs, ys, strict=True):
        placed.append(replace(group, x=round(x, 2), y=round(y, 2)))
    return placed


def _push_apart(xs: list[float], ys: list[float], radii: Sequence[float], gap: float) -> None:
    for one in range(len(xs)):
        for other in range(one + 1, len(xs)):
            dx, dy = xs[other] - xs[one], ys[other] - ys[one]
            distance = hypot(dx, dy) or 1e-6
            overlap = radii[one] + radii[other] + gap - distance
            if overlap > 0:
                push = 0.5 * overlap / distance
                xs[one] -= push * dx
                ys[one] -= push * dy
                xs[other] += push * dx
                ys[other] += push * dy
