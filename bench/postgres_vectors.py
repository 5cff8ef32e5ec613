"""Vectors in PostgreSQL.

What a search costs and what it finds, below and above the number that gets an index.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bench.recall.vectors import DIMENSION, make_vectors
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from polymnia.stores.postgres.store import PostgresStore
from polymnia.stores.postgres.vector_index import INDEXED_FROM

Floats = NDArray[np.float32]

K = 20
_QUESTIONS = 100
_BATCH = 1_000
_OBSERVATIONS = 100


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches in one workspace.

    How vectors were compared, the median seconds, and the share of the nearest found.
    """

    vectors: int
    by: str
    seconds: float
    recall: float


@dataclass(frozen=True, slots=True)
class Filled:
    """A workspace and its vectors, and questions about them."""

    store: PostgresStore
    model: int
    passages: list[int]
    vectors: Floats
    questions: Floats

    def search(self, by: str) -> Searches:
        """Ask all questions, and compare the answers with those of numpy."""
        spent, shares = [], []
        for question in self.questions:
            nearest = np.argsort(-(self.vectors @ question), kind="stable")[:K]
            began = perf_counter()
            with self.store.reading() as read:
                found = read.vectors.nearest(self.model, question.tobytes(), K)
            spent.append(perf_counter() - began)
            shares.append(len(found.keys() & {self.passages[at] for at in nearest}) / len(nearest))
        return Searches(len(self.vectors), by, median(spent), sum(shares) / len(shares))

    def put(self) -> None:
        """Write the vectors. Those that are there stay."""
        for start in range(0, len(self.passages), _BATCH):
            batch = zip(self.passages[start:][:_BATCH], self.vectors[start:][:_BATCH], strict=True)
            self.store.vectors.put(
                self.model, [(passage, vector.tobytes()) for passage, vector in batch]
            )

    def build_index(self) -> None:
        """Let the store see that there are many vectors, and wait until it has built the index."""
        self.store.vector_indexes.indexed_from = INDEXED_FROM
        self.put()
        self.store.vector_indexes.wait()


def measure_vectors(url: str, sizes: Sequence[int]) -> list[Searches]:
    """Fill a workspace of one database with each number of vectors, then search all of them.

    Those that are many are searched one by one, and by their index.
    """
    with ExitStack() as stack:
        workspaces = [
            stack.enter_context(_filled(f"{url}?workspace=v{size}", size)) for size in sizes
        ]
        searches = [workspace.search("one by one") for workspace in workspaces]
        for workspace in workspaces:
            if len(workspace.vectors) > INDEXED_FROM:
                began = perf_counter()
                workspace.build_index()
                print(
                    f"index of {len(workspace.vectors):,} vectors: "
                    f"built in {perf_counter() - began:.0f} s",
                    flush=True,
                )
                searches.append(workspace.search("an index"))
    return searches


def report_vectors(searches: Sequence[Searches]) -> float:
    """Print the searches. Return the smallest share of the nearest that was found."""
    print(f"| the {K} nearest vectors | compared by | ms, median | found |\n|---|---|---|---|")
    for search in searches:
        print(
            f"| of {search.vectors:,} | {search.by} | {1e3 * search.seconds:.1f} | "
            f"{100 * search.recall:.2f} % |"
        )
    print()
    return min([search.recall for search in searches])


@contextmanager
def _filled(url: str, size: int) -> Iterator[Filled]:
    store = open_store(url)
    assert isinstance(store, PostgresStore)
    store.vector_indexes.indexed_from = sys.maxsize
    texts = [
        tuple([f"text {start + at}" for at in range(_OBSERVATIONS)])
        for start in range(0, size, _OBSERVATIONS)
    ]
    drafts = [EntityDraft(f"entity {number}", "thing", each) for number, each in enumerate(texts)]
    for start in range(0, len(drafts), _BATCH // _OBSERVATIONS):
        entities.create(Memory(store), drafts[start:][: _BATCH // _OBSERVATIONS], by="bench")
    model = store.vectors.add_model(f"made/{size}", "none", DIMENSION).number
    with store.reading() as read:
        passages = sorted([passage for passage, _ in read.vectors.pending(model, size)])
    vectors = np.concatenate(list(make_vectors(size + _QUESTIONS)))
    filled = Filled(store, model, passages, vectors[_QUESTIONS:], vectors[:_QUESTIONS])
    filled.put()
    yield filled
    store.close()
