"""Similar entities: the most similar unrelated pairs by the mean of their observations' vectors."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.engine.curation import comparison, similar
from polymnia.engine.curation.similar import SimilarPair, similar_pairs
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.errors import BadInput, Cancelled, MissingPackage, NotSupported
from polymnia.model import EntityDraft, Perspective
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create, link
from tests.behaviour.vectors import put_vectors
from tests.conftest import STORES

# Stores keep vectors as float16.
ROUNDING = 0.002


@pytest.fixture(params=["sqlite", "sqlite in memory", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Yield a memory on each kind of store with vectors."""
    store = open_store(STORES[request.param](tmp_path))
    yield Memory(store)
    store.close()


def put_triangle(memory: Memory) -> None:
    """Create A and B, which are near each other, and C, which is far from both."""
    create(
        memory,
        EntityDraft("A", "x", ("a1", "a2")),
        EntityDraft("B", "y", ("b",)),
        EntityDraft("C", "z", ("c",)),
    )
    put_vectors(memory, {"a1": (1, 0, 0), "a2": (0, 1, 0), "b": (1, 1, 0), "c": (0, 0, 1)})


def names(found: list[SimilarPair]) -> list[tuple[str, str]]:
    return [(item.a, item.b) for item in found]


def test_pairs_are_compared_by_the_mean_of_their_vectors(memory: Memory) -> None:
    put_triangle(memory)
    (found,) = similar_pairs(memory)
    assert (found.a, found.b, found.a_type, found.b_type) == ("A", "B", "x", "y")
    assert found.similarity == pytest.approx(1, abs=1e-3)
    assert names(similar_pairs(memory, min_score=-1)) == [("A", "B"), ("A", "C"), ("B", "C")]
    assert names(similar_pairs(memory, min_score=-1, limit=2)) == [("A", "B"), ("A", "C")]
    assert similar_pairs(memory, limit=0) == []


@pytest.mark.parametrize("relation", [("A", "B", "is"), ("B", "A", "is")])
def test_related_pairs_are_left_out(memory: Memory, relation: tuple[str, str, str]) -> None:
    put_triangle(memory)
    link(memory, relation, ("A", "Nobody", "is"))
    assert similar_pairs(memory) == []


def test_deleted_entities_are_left_out(memory: Memory) -> None:
    put_triangle(memory)
    entities.delete(memory, ["B"], by=ME)
    assert similar_pairs(memory) == []


def test_without_vectors_there_are_no_pairs(memory: Memory) -> None:
    assert similar_pairs(memory) == []
    create(memory, EntityDraft("A", "x", ("a",)), EntityDraft("B", "x", ("a",)))
    assert similar_pairs(memory) == []


def test_another_perspective_has_its_own_pairs(memory: Memory) -> None:
    put_triangle(memory)
    memory.store.vectors.set_perspective(Perspective("other", "other: {text}", "{query}"))
    put_vectors(
        memory,
        {"other: a1": (1, 0, 0), "other: c": (1, 0, 0), "other: b": (0, 0, 1)},
        perspective="other",
    )
    assert names(similar_pairs(memory, perspective="other")) == [("A", "C")]
    with pytest.raises(BadInput, match="perspective"):
        similar_pairs(memory, perspective="unknown")


def test_the_model_of_the_memory_is_preferred_and_else_the_one_with_most_vectors(
    memory: Memory,
) -> None:
    put_triangle(memory)
    put_vectors(memory, {"a1": (1, 0), "c": (1, 0)}, url="ollama:other")
    assert names(similar_pairs(memory)) == [("A", "B")]
    other = Memory(memory.store, Meaning(SharedEmbedder("ollama:other", lambda url: None)))
    assert names(similar_pairs(other)) == [("A", "C")]


@pytest.mark.parametrize("kind", ["jsonl", "binlog"])
def test_a_store_without_vectors_says_so(tmp_path: Path, kind: str) -> None:
    store = open_store(STORES[kind](tmp_path))
    with pytest.raises(NotSupported, match="no vectors"):
        similar_pairs(Memory(store))
    store.close()


def test_without_numpy_the_error_says_what_to_install(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar, "find_spec", lambda package: None)
    with pytest.raises(MissingPackage, match=r"needs the package numpy.*polymnia\[semantic\]"):
        similar_pairs(memory)


def put_clusters(memory: Memory, count: int) -> dict[str, NDArray[np.float64]]:
    """Create entities with one observation each, whose vectors lie around a few centres."""
    source = np.random.default_rng(1)
    rows = source.normal(size=(count // 10, 16))[np.arange(count) % (count // 10)]
    rows += 0.3 * source.normal(size=rows.shape)
    vectors = {f"E{number:03}": row / np.linalg.norm(row) for number, row in enumerate(rows)}
    create(memory, *[EntityDraft(name, "x", (f"about {name}",)) for name in vectors])
    put_vectors(memory, {f"about {name}": row.tolist() for name, row in vectors.items()})
    return vectors


def expected_pairs(
    vectors: dict[str, NDArray[np.float64]], min_score: float
) -> dict[tuple[str, str], float]:
    scores = {(a, b): float(vectors[a] @ vectors[b]) for a, b in combinations(vectors, 2)}
    return {pair: score for pair, score in scores.items() if score >= min_score}


@pytest.mark.parametrize("cells", [50, 2_000_000])
def test_the_best_pairs_are_found_in_blocks_of_any_size(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    monkeypatch.setattr(comparison, "_BLOCK_CELLS", cells)
    vectors = put_clusters(memory, 200)
    found = set(names(similar_pairs(memory, limit=10_000, min_score=0.8)))
    assert (
        set(expected_pairs(vectors, 0.8 + ROUNDING))
        <= found
        <= set(expected_pairs(vectors, 0.8 - ROUNDING))
    )
    best = sorted(expected_pairs(vectors, 0.8).values(), reverse=True)
    assert [pair.similarity for pair in similar_pairs(memory, limit=20)] == pytest.approx(
        best[:20], abs=ROUNDING
    )


def test_among_many_entities_nearly_all_similar_pairs_are_found(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "EXACT_LIMIT", 100)
    monkeypatch.setattr(comparison, "GROUP_SIZE", 10)
    monkeypatch.setattr(comparison, "NEAREST_GROUPS", 4)
    vectors = put_clusters(memory, 400)
    found = names(similar_pairs(memory, limit=10_000, min_score=0.8))
    assert len(set(found)) == len(found)
    assert set(found) <= set(expected_pairs(vectors, 0.8 - ROUNDING))
    assert len(found) > 0.95 * len(expected_pairs(vectors, 0.8))


def test_many_equal_entities_fill_the_list_and_no_more(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "EXACT_LIMIT", 100)
    monkeypatch.setattr(comparison, "GROUP_SIZE", 20)
    create(memory, *[EntityDraft(f"E{number}", "x", (f"t{number}",)) for number in range(200)])
    put_vectors(memory, {f"t{number}": (1.0, 0.0) for number in range(200)})
    found = similar_pairs(memory, limit=30)
    assert len(set(names(found))) == 30
    assert all(item.a != item.b and item.similarity == pytest.approx(1) for item in found)


def test_a_comparison_reports_progress_and_stops_when_told(memory: Memory) -> None:
    put_triangle(memory)
    reports: list[tuple[float, float | None]] = []
    similar_pairs(memory, progress=lambda done, total, message: reports.append((done, total)))
    assert reports == [(3, 3)]

    def stop() -> None:
        raise Cancelled("the client cancelled this call")

    with pytest.raises(Cancelled):
        similar_pairs(memory, check=stop)
