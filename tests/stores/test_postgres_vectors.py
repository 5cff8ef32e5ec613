"""Vectors in PostgreSQL.

A search finds the nearest, with and without an index, beside other workspaces.
"""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Within
from polymnia.search.embedding import shorten, widen
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.postgres.store import PostgresStore
from tests.conftest import STORES
from tests.processes import TIMEOUT_S

Floats = NDArray[np.float32]
DIMENSION = 48
MANY, FEW = 4_000, 200
# From this many vectors on the tests want an index; the store's own bound would take too long.
INDEXED_FROM = 3_000
K = 20
DELETE = (
    "DELETE FROM vectors WHERE workspace_id = %s AND model = %s AND template = %s AND passage = %s"
)
COMPLETE = "SELECT complete_near_vectors(%s, %s, %s)"


class Filled(NamedTuple):
    """A workspace, its model, and the passages with their vectors."""

    store: PostgresStore
    model: int
    passages: list[int]
    vectors: Floats


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Yield a workspace with so many vectors that it has an index."""
    yield from fill(tmp_path_factory.mktemp("large"), MANY, seed=1)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Filled]:
    """Yield a workspace with few vectors, in the same database."""
    yield from fill(tmp_path, FEW, seed=2)


def clusters(count: int, seed: int) -> Floats:
    """Return vectors of length one around some centres, as texts of a few subjects have."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(40, DIMENSION))
    found = centres[chance.integers(0, 40, count)] + 0.7 * chance.normal(size=(count, DIMENSION))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def fill(
    folder: Path, count: int, *, seed: int, indexed_from: int = INDEXED_FROM
) -> Iterator[Filled]:
    """Write observations with vectors into a new workspace."""
    store = open_store(STORES["postgres"](folder))
    assert isinstance(store, PostgresStore)
    store.vector_indexes.indexed_from = indexed_from
    texts = [
        tuple([f"text {start + number}" for number in range(100)]) for start in range(0, count, 100)
    ]
    entities.create(
        Memory(store),
        [EntityDraft(f"E{at}", "thing", each) for at, each in enumerate(texts)],
        by="test",
    )
    model = store.vectors.add_model(f"made/{seed}", "none", DIMENSION).number
    with store.reading() as read:
        passages = sorted([passage for passage, _ in read.vectors.pending(model, count)])
    vectors = clusters(count, seed)
    for start in range(0, count, 500):
        batch = zip(passages[start : start + 500], vectors[start : start + 500], strict=True)
        store.vectors.put(model, [(passage, vector.tobytes()) for passage, vector in batch])
        store.vector_indexes.wait()
    yield Filled(store, model, passages, vectors)
    store.close()


def mean_recall(filled: Filled) -> float:
    """Return the share of the 20 nearest that searches find."""
    shares = []
    for question in clusters(50, 99):
        best = {
            filled.passages[at]
            for at in np.argsort(-(filled.vectors @ question), kind="stable")[:K]
        }
        with filled.store.reading() as read:
            found = read.vectors.nearest(filled.model, question.tobytes(), K)
        assert len(found) == K
        shares.append(len(best & set(found)) / K)
    return float(np.mean(shares))


def indexes(store: PostgresStore) -> list[tuple[str, int]]:
    """Return the names of the workspace's vector indexes, and how often each was used."""
    with psycopg.connect(store._database.url.conninfo, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE indexrelname ~ %s",
            (f"^near_{store.workspace}_.*_complete$",),
        ).fetchall()
    return [(name, scans) for name, scans in rows]


def connect(store: PostgresStore) -> psycopg.Connection[tuple[Any, ...]]:
    """Return a connection as the owner of the tables."""
    return psycopg.connect(
        store._database.url.conninfo, autocommit=True, options="-c search_path=polymnia,public"
    )


def wait_for_waiter(store: PostgresStore, process: int) -> None:
    """Return when a backend waits for a lock."""
    deadline = monotonic() + TIMEOUT_S
    with connect(store) as connection:
        waiting = "SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted"
        while not connection.execute(waiting, [process]).fetchall():
            assert monotonic() < deadline


def test_the_nearest_are_found_through_an_index(large: Filled) -> None:
    assert len(indexes(large.store)) == 1
    assert mean_recall(large) >= 0.98


def test_the_nearest_are_found_in_a_small_workspace_beside_a_large_one(
    large: Filled, small: Filled
) -> None:
    assert indexes(small.store) == []
    assert mean_recall(small) >= 0.98


def test_a_search_in_a_large_workspace_uses_its_index(large: Filled) -> None:
    question = clusters(1, 7)[0].tolist()
    with connect(large.store) as connection:
        ((_, before),) = indexes(large.store)
        call = "SELECT * FROM nearest_vectors(%s, %s, 1, %s::vector, 20)"
        connection.execute(call, (large.store.workspace, large.model, str(question)))
        connection.execute("SELECT pg_stat_force_next_flush()")
        ((_, after),) = indexes(large.store)
    assert after > before


def test_a_filter_is_exact_in_a_large_workspace(large: Filled) -> None:
    question = clusters(1, 8)[0]
    with large.store.reading() as read:
        found = read.vectors.nearest(large.model, question.tobytes(), K, Within(names=("E3",)))
        texts = {passage.id: passage.entity for passage in read.passages(found)}
    assert len(found) == K
    assert set(texts.values()) == {"E3"}
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_passages_that_ended_are_not_found(small: Filled) -> None:
    question = clusters(1, 9)[0].tobytes()
    entities.delete(Memory(small.store), ["E0"], by="test")
    with small.store.reading() as read:
        found = set(read.vectors.nearest(small.model, question, FEW))
        assert read.vectors.coverage(small.model) == (FEW - 100, FEW - 100)
    assert found == set(small.passages[100:])


def test_vectors_come_back_as_they_are_in_sqlite(small: Filled) -> None:
    with small.store.reading() as read:
        found = read.vectors.vectors(small.model, small.passages)
    expected = [widen(shorten(vector.tobytes()), DIMENSION) for vector in small.vectors]
    assert [found[passage] for passage in small.passages] == expected


def test_an_index_goes_with_its_model(tmp_path: Path) -> None:
    for filled in fill(tmp_path, FEW, seed=3, indexed_from=FEW // 2):
        assert len(indexes(filled.store)) == 1
        while not filled.store.vectors.remove_vectors(60, model=filled.model):
            assert len(indexes(filled.store)) == 1
        assert indexes(filled.store) == []


def test_an_index_goes_with_its_workspace(tmp_path: Path) -> None:
    url = STORES["postgres"](tmp_path)
    for filled in fill(tmp_path, FEW, seed=4, indexed_from=FEW // 2):
        assert len(indexes(filled.store)) == 1
        catalogue = open_catalogue(url.partition("?")[0])
        assert catalogue is not None
        (name,) = [item.name for item in catalogue.find_all() if item.name in filled.store.url]
        catalogue.delete(name)
        assert indexes(filled.store) == []
        catalogue.close()


def test_what_is_written_while_an_index_is_built_is_in_it(small: Filled) -> None:
    key = (small.store.workspace, small.model, 1)
    with connect(small.store) as builder, connect(small.store) as writer:
        writer.autocommit = False
        writer.execute(DELETE, (*key, small.passages[0]))
        builder.execute("SELECT build_near_vectors(%s, %s, %s, %s)", (*key, DIMENSION))
        builder.execute("SELECT refresh_near_vectors(%s, %s, %s)", key)
        entities.delete(Memory(small.store), ["E1"], by="test")
        completion = Thread(target=builder.execute, args=(COMPLETE, key))
        completion.start()
        wait_for_waiter(small.store, builder.info.backend_pid)
        writer.commit()
        completion.join()
        rows = builder.execute(f"SELECT passage FROM near_{'_'.join(map(str, key))}").fetchall()
    assert {passage for (passage,) in rows} == set(small.passages[1:100])


def test_vectors_written_to_an_indexed_workspace_are_found(tmp_path: Path) -> None:
    for filled in fill(tmp_path, FEW, seed=5, indexed_from=FEW // 2):
        memory = Memory(filled.store)
        entities.create(memory, [EntityDraft("New", "thing", ("a new text",))], by="test")
        with filled.store.reading() as read:
            ((passage, _),) = read.vectors.pending(filled.model, 10)
        vector = clusters(1, 77)[0].tobytes()
        filled.store.vectors.put(filled.model, [(passage, vector)])
        with filled.store.reading() as read:
            assert next(iter(read.vectors.nearest(filled.model, vector, 1))) == passage


def test_an_index_of_an_earlier_version_is_replaced(small: Filled) -> None:
    workspace, model = small.store.workspace, small.model
    name = f"vectors_near_{workspace}_{model}_1"
    with connect(small.store) as connection:
        connection.execute(
            f"CREATE INDEX {name} ON vectors"
            f" USING hnsw ((vector::halfvec({DIMENSION})) halfvec_cosine_ops)"
            f" WHERE workspace_id = {workspace} AND model = {model} AND template = 1"
        )
        small.store.vector_indexes.indexed_from = FEW // 2
        small.store.vector_indexes.build(model, 1, DIMENSION)
        ((old_index,),) = connection.execute("SELECT to_regclass(%s)", [name]).fetchall()
    assert old_index is None
    assert len(indexes(small.store)) == 1


def test_an_index_that_was_not_completed_is_built_again(small: Filled) -> None:
    key = (small.store.workspace, small.model, 1)
    with connect(small.store) as connection:
        connection.execute("SELECT build_near_vectors(%s, %s, %s, %s)", (*key, DIMENSION))
    assert indexes(small.store) == []
    assert mean_recall(small) >= 0.98
    small.store.vector_indexes.indexed_from = FEW // 2
    small.store.vector_indexes.build(small.model, 1, DIMENSION)
    assert len(indexes(small.store)) == 1
