"""Clusters: groups of entities that relations and similar meaning hold together."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.engine.curation.scan import Check, Progress, ignore_progress, never_stop, part_of
from polymnia.engine.curation.similar import load_points
from polymnia.engine.memory import Memory
from polymnia.errors import MissingPackage
from polymnia.search.labels import label_groups
from polymnia.stores.contract import TEXT, Reader

if TYPE_CHECKING:
    from polymnia.engine.curation.comparison import NearestPairs, Points

# Each entity is joined to its most similar ones, if they are at least this similar.
NEAREST = 5
MIN_SIMILARITY = 0.6
# What a label is made from: the most connected members of a cluster, and their first observations.
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
    resolution: float = 1.0,
    perspective: str = TEXT,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[Cluster]:
    """Return the clusters, the largest first. A higher resolution makes more and smaller ones.

    Without numpy or vectors, only relations count. Raise MissingPackage without networkx.
    """
    require_networkx()
    with memory.reading() as read:
        similar: Edges = {}
        if memory.store.capabilities.vectors and find_spec("numpy") is not None:
            from polymnia.engine.curation.comparison import compare

            points = load_points(memory, read, perspective)
            nearest = nearest_pairs(points)
            for block in compare(points.rows, progress=part_of(progress, 0, 50), check=check):
                nearest.add(block)
            similar = name_edges(points, nearest)
        progress = part_of(progress, 50, 100)
        found = clusters_in(
            read, similar, min_size=min_size, resolution=resolution, progress=progress, check=check
        )
        return found[:limit]


def require_networkx() -> None:
    """Raise MissingPackage if networkx is not installed."""
    if find_spec("networkx") is None:
        raise MissingPackage("finding clusters", "networkx", "semantic")


def nearest_pairs(points: "Points") -> "NearestPairs":
    """Return a collector of the pairs with similar meaning."""
    from polymnia.engine.curation.comparison import NearestPairs

    return NearestPairs(len(points.names), nearest=NEAREST, min_score=MIN_SIMILARITY)


def name_edges(points: "Points", nearest: "NearestPairs") -> Edges:
    """Return the pairs that were collected, by name."""
    return {_pair(points.names[a], points.names[b]): score for a, b, score in nearest.pairs()}


def clusters_in(
    read: Reader,
    similar: Edges,
    *,
    min_size: int = 3,
    resolution: float = 1.0,
    progress: Progress,
    check: Check,
) -> list[Cluster]:
    """Return the clusters of a snapshot, the largest first, with these pairs of similar entities."""
    edges = _relation_edges(read)
    edges |= {pair: score + edges.get(pair, 0) for pair, score in similar.items()}
    check()
    found = [group for group in _communities(edges, resolution, check) if len(group) >= min_size]
    progress(80, 100, "labelling clusters")
    labels = label_members(read, found, check)
    return [
        Cluster(number, tuple(group), label)
        for number, (group, label) in enumerate(zip(found, labels, strict=True), 1)
    ]


def _relation_edges(read: Reader) -> Edges:
    """Return the pairs of entities that relations join, with weight 1, whatever the number of relations."""
    pairs = {
        _pair(each.source, each.target) for each in read.relations() if each.source != each.target
    }
    known = read.known({name for pair in pairs for name in pair}) if pairs else set()
    return {(a, b): 1.0 for a, b in pairs if a in known and b in known}


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _communities(
    edges: Mapping[tuple[str, str], float], resolution: float, check: Check
) -> list[list[str]]:
    """Return groups of entities by Louvain's method, the largest first, each with its most connected entity first."""
    import networkx as nx

    names = sorted({name for pair in edges for name in pair})
    place = {name: number for number, name in enumerate(names)}
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        sorted([(place[a], place[b], weight) for (a, b), weight in edges.items()])
    )
    groups: list[set[int]] = []
    for level in (
        nx.community.louvain_partitions(graph, resolution=resolution, seed=0) if edges else ()
    ):
        check()
        groups = level
    degrees = dict(graph.degree(weight="weight"))
    ordered = [sorted(group, key=lambda number: (-degrees[number], number)) for group in groups]
    ordered.sort(key=lambda group: (-len(group), group[0]))
    return [[names[number] for number in group] for group in ordered]


def label_members(read: Reader, groups: Sequence[Sequence[str]], check: Check) -> list[str | None]:
    """Return a label for each group of names, made from its first members; None for a group without words."""
    texts = []
    for group in groups:
        check()
        members = read.find(group[:LABEL_MEMBERS])
        texts.append(
            [text for each in members for text in (each.name, *each.texts[:LABEL_OBSERVATIONS])]
        )
    return label_groups(texts)
