"""Searching by meaning: in the background, across processes, with a model that is missing, slow, failing or another."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.embedders.base import Embedder
from polymnia.engine import entities, notes, observations, trash
from polymnia.engine.memory import Memory
from polymnia.engine.recall import Recalled, recall
from polymnia.engine.semantics import Asked, Semantics
from polymnia.errors import EmbedderError
from polymnia.model import VAULT, EntityDraft, Note, ObservationDraft, PassageKey, Within
from polymnia.stores import open_store
from tests.embedders.bag import BagEmbedder

ME = "test"
LONG = 30.0
LIBRARY = (
    EntityDraft("Caroline", "person", ("Adopted a puppy from the shelter", "Is a nurse at the clinic")),
    EntityDraft("Melanie", "person", ("Runs marathons", "Paints portraits")),
)

Opener = Callable[[str], Embedder | None]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@contextmanager
def meaning(path: str, opener: Opener, url: str = "local") -> Iterator[Memory]:
    """A memory that is searched by meaning too."""
    store = open_store(path)
    memory = Memory(store)
    memory.search_by_meaning(lambda table: Semantics(table, url, opener))
    entities.create(memory, LIBRARY, by=ME)
    try:
        yield memory
    finally:
        memory.close()
        store.close()


def semantics(memory: Memory) -> Semantics:
    assert memory.semantics is not None
    return memory.semantics


def first(found: Recalled) -> PassageKey:
    return found.hits[0].passage.key


def bag(url: str) -> Embedder:
    return BagEmbedder()


def ask(memory: Memory, question: str) -> Recalled:
    return recall(memory, question, patience=LONG)


def test_what_no_word_finds_is_found_by_meaning(path: str) -> None:
    with meaning(path, bag) as memory:
        found = ask(memory, "dog")
        assert (first(found), found.hits[0].match_kind, found.note) == (("Caroline", 1), "meaning", "")
        assert found.hits[0].signals.meaning is not None


def test_nothing_is_loaded_before_the_first_question(path: str) -> None:
    opened: list[str] = []

    def opener(url: str) -> Embedder:
        opened.append(url)
        return BagEmbedder()

    with meaning(path, opener) as memory:
        observations.add(memory, [ObservationDraft("Caroline", ("Likes tea",))], by=ME, skip_repeats=True)
        assert opened == []
        ask(memory, "dog")
        assert opened == ["local"]


def test_a_memory_that_has_vectors_gets_them_for_what_is_written(path: str) -> None:
    with meaning(path, bag) as memory:
        ask(memory, "dog")
    with meaning(path, bag) as memory:
        observations.add(memory, [ObservationDraft("Melanie", ("Likes a good job",))], by=ME, skip_repeats=True)
        semantics(memory).settle(LONG)
        coverage = semantics(memory).coverage()
        assert (coverage.embedded, coverage.total, coverage.problem) == (5, 5, "")


def test_the_first_question_is_answered_at_once_from_words(path: str) -> None:
    loading, go_on = threading.Event(), threading.Event()

    def opener(url: str) -> Embedder:
        loading.set()
        go_on.wait(LONG)
        return BagEmbedder()

    with meaning(path, opener) as memory:
        found = recall(memory, "nurse")
        assert first(found) == ("Caroline", 2)
        assert "loaded" in found.note
        assert loading.wait(LONG)
        go_on.set()
        assert ask(memory, "nurse").note == ""


def test_a_missing_model_is_said_and_words_still_find(path: str) -> None:
    def opener(url: str) -> Embedder:
        raise EmbedderError("it is not installed")

    with meaning(path, opener) as memory:
        found = ask(memory, "nurse")
        assert (first(found), found.note) == (("Caroline", 2), "it is not installed")
        assert semantics(memory).coverage().problem == "it is not installed"


class Unsteady(BagEmbedder):
    """An embedder that can be made to fail or to hang."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.free = threading.Event()
        self.free.set()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if asking:
            self.free.wait(LONG)
        if self.broken:
            raise EmbedderError("it broke")
        return super().embed(texts, asking=asking)


def test_a_failing_model_loses_nothing_and_recovers_by_itself(path: str) -> None:
    unsteady = Unsteady()
    with meaning(path, lambda url: unsteady) as memory:
        assert first(ask(memory, "dog")) == ("Caroline", 1)
        unsteady.broken = True
        observations.add(memory, [ObservationDraft("Melanie", ("Her dog is old",))], by=ME, skip_repeats=True)
        assert semantics(memory).settle(LONG)
        assert semantics(memory).coverage().problem == "it broke"
        found = recall(memory, "nurse")
        assert (first(found), found.note) == (("Caroline", 2), "it broke")
        unsteady.broken = False
        while semantics(memory).coverage().problem:
            semantics(memory).wake()
            semantics(memory).settle(LONG)
        assert semantics(memory).coverage().embedded == 5


def test_a_model_that_comes_back_with_another_dimension_embeds_everything_again(path: str) -> None:
    unsteady = Unsteady()
    models: list[Embedder] = [unsteady, BagEmbedder(96, "other")]
    with meaning(path, lambda url: models[0]) as memory:
        assert first(ask(memory, "dog")) == ("Caroline", 1)
        unsteady.broken = True
        del models[0]
        observations.add(memory, [ObservationDraft("Melanie", ("Her dog is old",))], by=ME, skip_repeats=True)
        assert semantics(memory).settle(LONG)
        assert recall(memory, "nurse").hits
        while semantics(memory).coverage().problem:
            semantics(memory).wake()
            semantics(memory).settle(LONG)
        coverage = semantics(memory).coverage()
        assert (coverage.model, coverage.embedded, coverage.total) == ("other/96", 5, 5)


def test_a_slow_model_does_not_hold_up_an_answer(path: str) -> None:
    unsteady = Unsteady()
    with meaning(path, lambda url: unsteady) as memory:
        semantics(memory).settle(LONG)
        unsteady.free.clear()
        found = recall(memory, "nurse")
        assert (first(found), found.note) == (("Caroline", 2), "the model did not answer in time")
        assert recall(memory, "nurse").note == "the model did not answer in time"
        unsteady.free.set()


def test_another_model_embeds_everything_again_while_the_old_one_serves(path: str) -> None:
    with meaning(path, bag) as memory:
        ask(memory, "dog")
    half, go_on = threading.Event(), threading.Event()

    class Slow(BagEmbedder):
        def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
            if not asking:
                half.set()
                go_on.wait(LONG)
            return super().embed(texts, asking=asking)

    opener: Opener = lambda url: BagEmbedder() if url == "local" else Slow(96, "newer")  # noqa: E731
    with meaning(path, opener, "onnx:newer") as memory:
        semantics(memory).start()
        assert half.wait(LONG)
        found = recall(memory, "dog")
        assert (first(found), found.note) == (("Caroline", 1), "")
        assert semantics(memory).coverage().model == "" or semantics(memory).coverage().embedded == 0
        go_on.set()
        assert semantics(memory).settle(LONG)
        assert first(ask(memory, "dog")) == ("Caroline", 1)
        coverage = semantics(memory).coverage()
        assert (coverage.model, coverage.embedded, coverage.total) == ("newer/96", 4, 4)
        assert memory.store.vectors is not None
        assert [each.identity for each in memory.store.vectors.models()] == ["newer/96"]


def test_what_another_process_writes_and_deletes_is_seen(path: str) -> None:
    with meaning(path, bag) as memory, meaning(path, bag) as other:
        ask(memory, "dog")
        observations.add(other, [ObservationDraft("Melanie", ("Feeds the dog of a friend",))], by=ME, skip_repeats=True)
        ask(other, "dog")
        assert {hit.passage.key for hit in recall(memory, "dog").hits[:2]} == {("Caroline", 1), ("Melanie", 3)}
        entities.delete(other, ["Caroline"], by=ME)
        assert "Caroline" not in {hit.passage.entity for hit in recall(memory, "puppy").hits}


def test_a_process_that_slept_through_many_deletions_finds_out(path: str) -> None:
    with meaning(path, bag) as memory, meaning(path, bag) as other:
        ask(memory, "dog")
        for _ in range(8):
            observations.add(other, [ObservationDraft("Melanie", ("Feeds a dog",))], by=ME, skip_repeats=True)
            ask(other, "dog")
            observations.remove(other, [ObservationDraft("Melanie", ("Feeds a dog",))], by=ME)
        entities.delete(other, ["Caroline"], by=ME)
        assert other.store.vectors is not None
        other.store.vectors.forget_gone(1)
        found = recall(memory, "dog", patience=LONG)
        assert {hit.passage.key for hit in found.hits} == {("Melanie", 1), ("Melanie", 2)}
        asked = semantics(memory).ask("dog", LONG)
        assert isinstance(asked, Asked)
        assert asked.nearest(100).keys() == other.store.vectors.places(1)


def vectors_of(memory: Memory, model: int) -> list[bytes]:
    assert memory.store.vectors is not None
    return [row.vector for row in memory.store.vectors.since(model, 0, 100)[1]]


def everything(path: str) -> bytes:
    """What is in the store's file and those beside it."""
    return b"".join([each.read_bytes() for each in sorted(Path(path).parent.iterdir())])


def test_no_vector_of_a_purged_text_is_left_in_the_files(path: str) -> None:
    with meaning(path, bag) as memory:
        notes.commit(memory, Note("pets", "A dog"), by=ME)
        ask(memory, "dog")
        doomed = vectors_of(memory, 1)
        assert len(doomed) == 5
        assert all(vector in everything(path) for vector in doomed)
        entities.delete(memory, ["Caroline", "Melanie"], by=ME)
        notes.prune(memory, [VAULT], by=ME)
    store = open_store(path)  # nobody reads in the background now: what is purged leaves the write-ahead log too
    trash.purge(Memory(store), days=0)
    assert not any(vector in everything(path) for vector in doomed)
    assert vectors_of(Memory(store), 1) == []
    store.close()


def test_no_vector_of_a_model_that_is_no_longer_used_is_kept(path: str) -> None:
    with meaning(path, bag) as memory:
        ask(memory, "dog")
        assert len(vectors_of(memory, 1)) == 4
        entities.delete(memory, ["Melanie"], by=ME)
    with meaning(path, lambda url: BagEmbedder(96, "newer"), "onnx:newer") as memory:
        ask(memory, "dog")
        assert (vectors_of(memory, 1), len(vectors_of(memory, 2))) == ([], 4)
        connection = apsw.Connection(path)
        for table in ("vectors", "vectors_gone", "unembedded"):
            assert connection.execute(f"SELECT count(*) FROM {table} WHERE model = 1").fetchall() == [(0,)], table
        connection.close()


def test_a_filter_is_an_exact_mask_on_meaning_too(path: str) -> None:
    with meaning(path, bag) as memory:
        found = recall(memory, "dog", within=Within(names=("Melanie",)), patience=LONG)
        assert {hit.passage.entity for hit in found.hits} == {"Melanie"}


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.mcpmem", ":memory:"])
def test_stores_without_vectors_are_searched_by_words_alone(tmp_path: Path, name: str) -> None:
    with meaning(name if name.startswith(":") else str(tmp_path / name), bag) as memory:
        assert memory.semantics is None
        assert first(recall(memory, "nurse")) == ("Caroline", 2)
