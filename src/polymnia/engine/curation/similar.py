"""Similar entities: pairs whose observations mean much the same, though no relation joins them."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.engine.curation.scan import Check, Progress, ignore_progress, never_stop
from polymnia.engine.memory import Memory
from polymnia.errors import MissingPackage
from polymnia.stores.contract import TEXT, Reader

if TYPE_CHECKING:  # numpy comes with an extra and is loaded only when it is needed
    from polymnia.engine.curation.comparison import BestPairs, Points


class SimilarPair(Struct, frozen=True):
    """Two entities without a relation between them, and the cosine of their mean vectors."""

    a: str
    b: str
    similarity: float
    a_type: str
    b_type: str


def similar_pairs(
    memory: Memory,
    *,
    limit: int = 20,
    min_score: float = 0.75,
    perspective: str = TEXT,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[SimilarPair]:
    """Return the most similar unrelated pairs, best first, 10,000 at most. There are none while nothing is embedded.

    Raise MissingPackage without numpy, NotSupported in a store without vectors.
    """
    with memory.reading() as read:
        points = load_points(memory, read, perspective)
        from polymnia.engine.curation.comparison import (
            compare,
        )  # imports numpy, which is installed, as checked above

        best = best_pairs(read, points, limit=limit, min_score=min_score)
        for block in compare(points.rows, progress=progress, check=check):
            best.add(block)
        return name_pairs(read, points, best)


def load_points(memory: Memory, read: Reader, perspective: str = TEXT) -> "Points":
    """Return the entities that have vectors. Raise MissingPackage, NotSupported."""
    if find_spec("numpy") is None:
        raise MissingPackage("comparing entities", "numpy", "semantic")
    from polymnia.engine.curation import comparison

    return comparison.load_points(memory, read, perspective)


def best_pairs(read: Reader, points: "Points", *, limit: int, min_score: float) -> "BestPairs":
    """Return a collector of the most similar pairs of these entities that no relation joins."""
    from polymnia.engine.curation.comparison import BestPairs

    related = [(relation.source, relation.target) for relation in read.relations()]
    return BestPairs(points.names, related, limit=limit, min_score=min_score)


def name_pairs(read: Reader, points: "Points", best: "BestPairs") -> list[SimilarPair]:
    """Return the pairs that were collected, with names and types."""
    pairs = [(points.names[a], points.names[b], similarity) for a, b, similarity in best.pairs()]
    types = {
        each.name: each.type
        for each in read.outlines({name for a, b, _ in pairs for name in (a, b)})
    }
    return [SimilarPair(a, b, similarity, types[a], types[b]) for a, b, similarity in pairs]
