"""A vector of a wrong length is refused, and one that is stored already costs only itself."""

from collections.abc import Iterator
from pathlib import Path
from struct import pack

import apsw
import psycopg
import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from polymnia.stores.contract import Store

EAST, NORTH = pack("<4f", 1, 0, 0, 0), pack("<4f", 0, 1, 0, 0)


@pytest.fixture
def store(versioned_url: str) -> Iterator[Store]:
    store = open_store(versioned_url)
    entities.create(Memory(store), [EntityDraft("A", "x", ("one", "two"))], by="me")
    yield store
    store.close()


def embed(store: Store) -> tuple[int, dict[str, int]]:
    """Give both facts a vector; return the model and the passages by text."""
    model = store.vectors.add_model("m/4", "local", 4).number
    with store.reading() as read:
        passages = {
            text.removeprefix("A: "): passage for passage, text in read.vectors.pending(model, 100)
        }
    store.vectors.put(model, [(passages["one"], EAST), (passages["two"], NORTH)])
    return model, passages


@pytest.mark.parametrize("vector", [b"", b"abcd", EAST + NORTH])
def test_a_vector_of_a_wrong_length_is_refused(store: Store, vector: bytes) -> None:
    model, passages = embed(store)
    with pytest.raises(StoreError, match=r"\d numbers, and its model has 4; nothing was stored"):
        store.vectors.put(model, [(passages["one"], vector)])


@pytest.mark.parametrize("size", [0, 100, 800])
def test_a_stored_vector_of_a_wrong_length_is_ignored_named_and_made_anew(
    tmp_path: Path, size: int
) -> None:
    path = str(tmp_path / "memory.db")
    store = open_store(path)
    entities.create(Memory(store), [EntityDraft("A", "x", ("one", "two"))], by="me")
    model, passages = embed(store)
    store.close()
    connection = apsw.Connection(path)
    connection.execute(
        "UPDATE vectors SET vector = zeroblob(?) WHERE passage = ?", (size, passages["one"])
    )
    connection.close()
    store = open_store(path)
    with store.reading() as read:
        assert list(read.vectors.nearest(model, EAST, 5)) == [passages["two"]]
        assert list(read.vectors.vectors(model, list(passages.values()))) == [passages["two"]]
        assert read.vectors.coverage(model) == (1, 2)
    (problem,) = store.check()
    assert "1 vectors have a wrong length; `polymnia index`" in problem
    assert store.vectors.remove_vectors(100)
    with store.reading() as read:
        assert [text for _, text in read.vectors.pending(model, 100)] == ["A: one"]
    store.vectors.put(model, [(passages["one"], EAST)])
    with store.reading() as read:
        assert list(read.vectors.nearest(model, EAST, 1)) == [passages["one"]]
    assert store.check() == []
    store.close()


def test_a_vector_of_a_wrong_length_in_postgresql_is_named_and_made_anew(
    postgres_database: str,
) -> None:
    store = open_store(postgres_database)
    entities.create(Memory(store), [EntityDraft("A", "x", ("one", "two"))], by="me")
    model, passages = embed(store)
    with psycopg.connect(postgres_database) as connection:
        connection.execute(
            "UPDATE polymnia.vectors SET vector = '[1]' WHERE passage = %s", [passages["one"]]
        )
    (problem,) = store.check()
    assert "1 vectors have a wrong length" in problem
    assert store.vectors.remove_vectors(100)
    assert store.check() == []
    with store.reading() as read:
        assert list(read.vectors.nearest(model, EAST, 5)) == [passages["two"]]
    store.close()
