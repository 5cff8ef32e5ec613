"""Clusters: groups of entities that relations and similar meaning hold together."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.engine.curation.communities import find_communities, label_groups
from polymnia.engine.curation.findings import Check, Progress, ignore_progress, never_stop, part_of
from polymnia.engine.curation.similar import load_points
from polymnia.engine.graph.relations import ends_of
from polymnia.engine.memory import Memory
from polymnia.stores.contract import TEXT, Reader

if TYPE_CHECKING:
    from polymnia.engine.curation.comparison import NearestPairs, Points

# Each entity is joined to its most similar ones, if they are at least this similar.
MAX_NEAREST = 5
MIN_SIMILARITY = 0.6
# What a label is made from: the most connected members of a cluster, and their first facts.
LABEL_MEMBERS = 12
LABEL_OBSERVATIONS = 4

# Pairs of names in alphabetical order, and how strongly they are joined.
Edges = dict[tuple[str, str], float]


class Cluster(Struct, frozen=True):
    """A group of entities, the most connected first, labelled with its most distinctive words."""

    number: int
    names: tuple[str, ...]
    label: str | None


def clusters(
    memory: Memory,
    *,
    limit: int | None = None,
    min_size: int = 3,
    perspective: str = TEXT,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[Cluster]:
    """Return the clusters, the largest first. Without numpy or vectors, only relations count."""
    similar: Edges = {}
    with memory.reading() as read:
        if memory.store.capabilities.vectors and find_spec("numpy") is not None:
            from polymnia.engine.curation.comparison import compare

            points = load_points(memory, read, perspective)
            nearest = nearest_pairs(points)
            for block in compare(points.rows, progress=part_of(progress, 0, 50), check=check):
                nearest.add(block)
            similar = name_edges(points, nearest)
        progress = part_of(progress, 50, 100)
        return clusters_in(read, similar, min_size=min_size, progress=progress, check=check)[:limit]


def nearest_pairs(points: "Points") -> "NearestPairs":
    """Return a collector of the pairs with similar meaning."""
    from polymnia.engine.curation.comparison import NearestPairs

    return NearestPairs(len(points.names), nearest=MAX_NEAREST, min_score=MIN_SIMILARITY)


def name_edges(points: "Points", nearest: "NearestPairs") -> Edges:
    """Return the pairs that were collected, by name."""
    return {_pair(points.names[a], points.names[b]): score for a, b, score in nearest.pairs()}


def clusters_in(
    read: Reader, similar: Edges, *, min_size: int = 3, progress: Progress, check: Check
) -> list[Cluster]:
    """Return the clusters of a snapshot, largest first, given the pairs of similar entities."""
    edges = _relation_edges(read)
    for pair, score in similar.items():
        edges[pair] = edges.get(pair, 0) + score
    check()
    groups = [group for group in _find_groups(edges, check) if len(group) >= min_size]
    progress(80, 100, "labelling clusters")
    labels = label_members(read, groups, check)
    labelled = zip(groups, labels, strict=True)
    return [
        Cluster(number, tuple(names), label) for number, (names, label) in enumerate(labelled, 1)
    ]


def label_members(read: Reader, groups: Sequence[Sequence[str]], check: Check) -> list[str | None]:
    """Return a label for each group of names; None for a group without words."""
    texts = []
    for group in groups:
        check()
        own: list[str] = []
        for entity in read.entities(group[:LABEL_MEMBERS]):
            own += (entity.name, *entity.texts[:LABEL_OBSERVATIONS])
        texts.append(own)
    return label_groups(texts)


def _relation_edges(read: Reader) -> Edges:
    """Return the pairs of entities that relations join, with weight 1, however many join them."""
    relations = [relation for relation in read.relations() if relation.source != relation.target]
    ends = ends_of(relations)
    known = read.existing_names(ends) if ends else set()
    edges: Edges = {}
    for relation in relations:
        if known.issuperset(relation.ends):
            edges[_pair(*relation.ends)] = 1.0
    return edges


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _find_groups(edges: Mapping[tuple[str, str], float], check: Check) -> list[list[str]]:
    """Return groups of entities, the largest first, each with its most connected entity first."""
    names = sorted({name for pair in edges for name in pair})
    place = {name: number for number, name in enumerate(names)}
    links: list[dict[int, float]] = [{} for _ in names]
    # In order of the names, so that the same memory always has the same clusters.
    for (a, b), weight in sorted(edges.items()):
        links[place[a]][place[b]] = weight
        links[place[b]][place[a]] = weight
    degrees = [sum(own.values()) for own in links]
    groups = []
    for nodes in find_communities(links, check):
        groups.append(sorted(nodes, key=lambda node: (-degrees[node], node)))
    groups.sort(key=lambda nodes: (-len(nodes), nodes[0]))
    return [[names[node] for node in nodes] for nodes in groups]
