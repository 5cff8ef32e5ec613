"""Search by meaning.

Indexed in the background, by one server at a time, with an embedder that may fail or change.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.embedders import base as embedder_base
from polymnia.embedders.base import Embedder
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import RecallResult, recall
from polymnia.engine.semantic import indexer, meaning
from polymnia.engine.semantic.calibration import measure_scale
from polymnia.engine.semantic.indexer import index_store
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.errors import EmbedderError
from polymnia.model import EntityDraft, FactAddition, PassageKey, Within
from polymnia.stores import open_store
from tests.conftest import STORES
from tests.dialects.conversation import Client
from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

ME = "test"
LIBRARY = (
    EntityDraft(
        "Caroline", "person", ("Adopted a puppy from the shelter", "Is a nurse at the clinic")
    ),
    EntityDraft("Melanie", "person", ("Runs marathons", "Paints portraits")),
)

Opener = Callable[[str], Embedder | None]


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "INDEX_DELAY_S", 0.0)
    monkeypatch.setattr(meaning, "RETRY_AFTER_S", 0.0)


@pytest.fixture
def path(versioned_url: str) -> str:
    return versioned_url


@contextmanager
def open_memory(path: str, opener: Opener) -> Iterator[Memory]:
    """A memory that is searched by meaning too; its first write is indexed in the background."""
    store = open_store(path)
    memory = Memory(store, Meaning(SharedEmbedder("local", opener)))
    entities.create(memory, LIBRARY, by=ME)
    try:
        yield memory
    finally:
        of(memory).close()
        store.close()


def of(memory: Memory) -> Meaning:
    assert memory.meaning is not None
    return memory.meaning


def bag(url: str) -> Embedder:
    return BagEmbedder()


def coverage(memory: Memory) -> tuple[str, int, int]:
    with memory.reading() as read:
        (model,) = read.vectors.models()
        return (model.identity, *read.vectors.coverage(model.number))


def ask(memory: Memory, question: str, within: Within | None = None) -> RecallResult:
    return recall(memory, question, within=within, timeout=TIMEOUT_S)


def first(found: RecallResult) -> PassageKey:
    return found.hits[0].passage.key


def test_meaning_finds_what_words_do_not_after_the_first_write(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
        found = ask(memory, "dog")
        assert (first(found), found.hits[0].match_kind, found.note) == (
            ("Caroline", 1),
            "meaning",
            "",
        )
        assert found.coverage == 1.0


def test_the_embedder_is_loaded_by_the_first_write(path: str) -> None:
    loaded: list[str] = []

    def opener(url: str) -> Embedder:
        loaded.append(url)
        return BagEmbedder()

    store = open_store(path)
    memory = Memory(store, Meaning(SharedEmbedder("local", opener)))
    entities.open_named(memory, ["nobody"])
    assert loaded == []
    ask(memory, "dog")
    assert loaded == []  # there is nothing to compare the question with
    entities.create(memory, LIBRARY, by=ME)
    assert of(memory).settle(TIMEOUT_S)
    assert loaded == ["local"]
    of(memory).close()
    store.close()


def test_later_writes_are_indexed(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
        facts.add(memory, [FactAddition("Melanie", ("Bought a puppy",))], by=ME, skip_repeats=True)
        assert of(memory).settle(TIMEOUT_S)
        assert coverage(memory) == ("bag/64", 5, 5)
        assert {hit.passage.key for hit in ask(memory, "dog").hits[:2]} == {
            ("Caroline", 1),
            ("Melanie", 3),
        }


def test_a_missing_package_is_named_and_words_are_still_searched(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder_base, "find_spec", lambda package: None)

    def opener(url: str) -> Embedder:
        raise EmbedderError("it is not installed")

    with open_memory(path, opener) as memory:
        found = ask(memory, "puppy")
        assert (first(found), found.coverage) == (("Caroline", 1), 0.0)
        assert "needs the package numpy; install it with" in found.note


class FailingEmbedder(BagEmbedder):
    """Fails until it is repaired."""

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = True

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if self.is_broken:
            raise EmbedderError("it broke")
        return super().embed(texts, asking=asking)


def test_a_failing_embedder_loses_nothing_and_is_retried_at_the_next_write(path: str) -> None:
    embedder = FailingEmbedder()
    with open_memory(path, lambda url: embedder) as memory:
        assert of(memory).settle(TIMEOUT_S)
        assert first(ask(memory, "puppy")) == ("Caroline", 1)
        embedder.is_broken = False
        facts.add(memory, [FactAddition("Melanie", ("Sings",))], by=ME, skip_repeats=True)
        assert of(memory).settle(TIMEOUT_S)
        assert coverage(memory) == ("bag/64", 5, 5)
        assert first(ask(memory, "dog")) == ("Caroline", 1)


class SlowEmbedder(BagEmbedder):
    """Does not answer questions until it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if asking:
            self.may_answer.wait()
        return super().embed(texts, asking=asking)


def test_a_slow_embedder_does_not_delay_an_answer(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = SlowEmbedder()
    with open_memory(path, lambda url: embedder) as memory:
        assert of(memory).settle(TIMEOUT_S)
        found = recall(memory, "puppy", timeout=0.001)
        assert (first(found), found.note) == (
            ("Caroline", 1),
            "the embedder did not answer in time, so only words were searched",
        )
        embedder.may_answer.set()
        assert ask(memory, "puppy").note == ""


def test_another_model_embeds_everything_again_and_replaces_the_old_vectors(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
    with open_memory(path, lambda url: BagEmbedder(32, "other")) as memory:
        facts.add(memory, [FactAddition("Melanie", ("Sings",))], by=ME, skip_repeats=True)
        assert of(memory).settle(TIMEOUT_S)
        assert coverage(memory) == ("other/32", 5, 5)
        assert first(ask(memory, "a dog from the shelter")) == ("Caroline", 1)


def test_a_question_to_vectors_of_a_former_model_has_them_made_again(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
    with open_memory(path, lambda url: BagEmbedder(32, "other")) as memory:
        memory.request_indexing()  # as a server does that opens it; no model is loaded for that
        assert of(memory).settle(TIMEOUT_S)
        assert ask(memory, "dog").coverage == 0
        assert of(memory).settle(TIMEOUT_S)
        assert ask(memory, "dog").coverage == 1


def test_a_question_to_a_memory_that_is_only_read_makes_no_vectors(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
    with open_memory(path, lambda url: BagEmbedder(32, "other")) as memory:
        assert ask(memory, "dog").coverage == 0
        assert of(memory).settle(TIMEOUT_S)
        assert ask(memory, "dog").coverage == 0


def test_indexing_replaces_the_vectors_of_a_former_model() -> None:
    with closing(open_store(":memory:")) as store:
        entities.create(Memory(store), LIBRARY, by=ME)
        for name in ("former", "present"):
            with closing(Meaning(SharedEmbedder("local", partial(_open_bag, name)))) as new:
                assert new.index(store) == 4


def _open_bag(name: str, url: str) -> BagEmbedder:
    return BagEmbedder(32, name)


def test_vectors_of_another_model_are_ignored(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
    store = open_store(path)
    other = Memory(store, Meaning(SharedEmbedder("local", lambda url: BagEmbedder(32, "other"))))
    found = ask(other, "puppy")
    assert (first(found), found.coverage) == (("Caroline", 1), 0.0)
    of(other).close()
    store.close()


def test_one_server_embeds_at_a_time_and_a_text_is_embedded_once(path: str) -> None:
    seen: list[str] = []
    is_waiting = threading.Event()

    class Counting(BagEmbedder):
        def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
            seen.extend(texts)
            return super().embed(texts, asking=asking)

    store, other = open_store(path), open_store(path)
    entities.create(Memory(store), LIBRARY, by=ME)
    assert other.vectors.lease("embedding", 60)

    def opener(url: str) -> Embedder:
        is_waiting.set()  # the command loads the model to see how far the other server is
        return Counting()

    embedder = SharedEmbedder("local", opener)
    with ThreadPoolExecutor(1) as pool:
        command = pool.submit(index_store, store, embedder)
        assert is_waiting.wait(TIMEOUT_S)
        assert seen == []
        other.vectors.lease("embedding", 0)
        assert command.result(TIMEOUT_S) == 4
    assert [index_store(item, embedder) for item in (other, store)] == [0, 0]
    assert len(seen) == 4
    for item in (store, other):
        item.close()


def test_the_lease_of_a_killed_server_is_free(path: str) -> None:
    hold = "import sys, os, signal; from polymnia.stores import open_store; "
    hold += "assert open_store(sys.argv[1]).vectors.lease('embedding', 3600); "
    hold += "os.kill(os.getpid(), signal.SIGKILL)"
    if ":memory:" in path:
        pytest.skip("no other process can open this store")
    store = open_store(path)
    entities.create(Memory(store), LIBRARY, by=ME)
    killed = subprocess.run([sys.executable, "-c", hold, path], timeout=TIMEOUT_S, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert index_store(store, SharedEmbedder("local", bag)) == 4
    store.close()


def test_indexing_reports_its_progress(path: str) -> None:
    store = open_store(path)
    entities.create(
        Memory(store),
        [EntityDraft("A", "x", tuple(f"text {number}" for number in range(70)))],
        by=ME,
    )
    told: list[tuple[int, int]] = []
    assert (
        index_store(
            store,
            SharedEmbedder("local", bag),
            progress=lambda done, total: told.append((done, total)),
        )
        == 70
    )
    assert told == [(32, 70), (64, 70), (70, 70)]
    store.close()


def test_a_memory_that_was_written_elsewhere_is_indexed_on_request(path: str) -> None:
    loaded: list[str] = []

    def opener(url: str) -> Embedder:
        loaded.append(url)
        return BagEmbedder()

    for expected in (
        ["local"],
        [],
    ):  # the second server finds everything embedded and loads nothing
        store = open_store(path)
        entities.create(Memory(store), LIBRARY, by=ME)
        memory = Memory(store, Meaning(SharedEmbedder("local", opener)))
        memory.request_indexing()
        assert of(memory).settle(TIMEOUT_S)
        assert coverage(memory) == ("bag/64", 4, 4)
        of(memory).close()
        store.close()
        assert loaded == expected
        loaded.clear()


def test_an_idle_embedder_is_released_and_loaded_again(path: str) -> None:
    embedder = SharedEmbedder("local", bag, idle=0.0)
    embedder.embed(["text"])
    assert embedder.is_loaded
    embedder.release_if_idle()
    assert not embedder.is_loaded
    assert len(embedder.embed(["text"])) == 1
    patient = SharedEmbedder("local", bag)
    patient.embed(["text"])
    patient.release_if_idle()
    assert patient.is_loaded


def test_writes_and_deletions_of_another_server_are_seen(path: str) -> None:
    with open_memory(path, bag) as memory, open_memory(path, bag) as other:
        assert of(memory).settle(TIMEOUT_S)
        facts.add(other, [FactAddition("Melanie", ("Bought a puppy",))], by=ME, skip_repeats=True)
        assert of(other).settle(TIMEOUT_S)
        assert {hit.passage.key for hit in ask(memory, "dog").hits[:2]} == {
            ("Caroline", 1),
            ("Melanie", 3),
        }
        entities.delete(other, ["Melanie"], by=ME)
        assert {hit.passage.entity for hit in ask(memory, "dog").hits} == {"Caroline"}


def test_a_filter_restricts_meaning_too(path: str) -> None:
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
        within = Within(names=("Melanie",))
        assert {hit.passage.entity for hit in ask(memory, "dog", within).hits} == {"Melanie"}


@pytest.mark.parametrize("kind", ["jsonl", "binlog"])
def test_stores_without_vectors_are_searched_by_words_alone(tmp_path: Path, kind: str) -> None:
    store = open_store(STORES[kind](tmp_path))
    memory = Memory(store, Meaning(SharedEmbedder("local", bag)))
    entities.create(memory, LIBRARY, by=ME)
    found = recall(memory, "puppy")
    assert first(found) == ("Caroline", 1)
    assert "no vectors" in found.note
    store.close()


def test_servers_with_different_embedders_keep_the_vectors_of_both(path: str) -> None:
    store = open_store(path)
    entities.create(Memory(store), LIBRARY, by=ME)
    local = SharedEmbedder("local", bag)
    for embedder in (local, SharedEmbedder("ollama:other", lambda url: BagEmbedder(32)), local):
        index_store(store, embedder)
    with store.reading() as read:
        assert [
            (model.url, read.vectors.coverage(model.number)) for model in read.vectors.models()
        ] == [
            ("local", (4, 4)),
            ("ollama:other", (4, 4)),
        ]
    store.close()


def test_closing_does_not_wait_for_the_embedder_and_gives_up_the_lease(path: str) -> None:
    is_embedding, may_embed = threading.Event(), threading.Event()

    class Stuck(BagEmbedder):
        def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
            is_embedding.set()
            may_embed.wait()
            return super().embed(texts, asking=asking)

    with open_memory(path, lambda url: Stuck()):
        assert is_embedding.wait(TIMEOUT_S)
    # The memory and its store are closed, and the embedder still works.
    with open_memory(path, bag) as memory:
        memory.request_indexing()
        assert of(memory).settle(TIMEOUT_S)
        assert coverage(memory) == ("bag/64", 4, 4)
    may_embed.set()


def test_a_question_waits_for_a_model_that_is_loading(path: str) -> None:
    may_load = threading.Event()
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)

    def opener(url: str) -> Embedder:
        may_load.wait()
        return BagEmbedder()

    store = open_store(path)
    memory = Memory(store, Meaning(SharedEmbedder("local", opener)))
    of(memory).warm_up()
    threading.Timer(0.01, may_load.set).start()
    assert recall(memory, "dog", timeout=0.001).note == ""
    of(memory).close()
    store.close()


def test_a_question_says_that_the_model_is_still_loading(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "LOADING_TIMEOUT_S", 0.01)
    may_load = threading.Event()
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)

    def opener(url: str) -> Embedder:
        may_load.wait()
        return BagEmbedder()

    store = open_store(path)
    memory = Memory(store, Meaning(SharedEmbedder("local", opener)))
    found = recall(memory, "puppy", timeout=0.001)
    assert found.note == "the embedding model is still loading, so only words were searched"
    assert first(found) == ("Caroline", 1)
    may_load.set()
    of(memory).close()
    store.close()


def test_a_reply_without_hits_says_that_the_model_is_still_loading(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "LOADING_TIMEOUT_S", 0.01)
    with open_memory(path, bag) as memory:
        assert of(memory).settle(TIMEOUT_S)
    may_load = threading.Event()

    def opener(url: str) -> Embedder:
        may_load.wait()
        return BagEmbedder()

    store = open_store(path)
    memory = Memory(store, Meaning(SharedEmbedder("local", opener)))
    reply = Client("native", memory).text("recall", {"query": "zeppelin"})
    assert reply.startswith("No hits in ")
    assert "not stored" not in reply
    assert "The embedding model is still loading, so only words were searched." in reply
    may_load.set()
    of(memory).close()
    store.close()


class NarrowEmbedder:
    """A model whose cosines are never near 0, and other ones if a prompt marks a question."""

    batch_size, dimension, identity = 32, 65, "narrow/65"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        vectors = BagEmbedder(64).embed(texts)
        own, common = (0.28, 0.96) if asking else (0.5**0.5, 0.5**0.5)
        constant = np.full((len(vectors), 1), common, np.float32)
        return np.asarray(np.hstack((own * vectors, constant)), np.float32)


def test_the_cosines_of_every_model_count_on_one_scale(path: str) -> None:
    cosines = []
    store = open_store(path)
    models: list[Embedder] = [BagEmbedder(64), NarrowEmbedder()]
    for model in models:
        embedder = SharedEmbedder(f"onnx:{model.identity}", partial(_give, model))
        memory = Memory(store, Meaning(embedder))
        entities.create(memory, LIBRARY, by=ME)
        of(memory).index(store)
        hit = recall(memory, "Who has a dog?", timeout=TIMEOUT_S).hits[0]
        cosines.append(hit.signals.meaning)
        of(memory).close()
    store.close()
    # Not exactly: the vectors around a fact are mixed with its own before they are compared.
    assert cosines[0] == pytest.approx(cosines[1], abs=0.1)


def test_the_scale_of_a_model_is_measured_with_the_prompt_of_questions() -> None:
    embedder = SharedEmbedder("onnx:narrow", partial(_give, NarrowEmbedder()))
    least_cosine = 0.96 * 0.5**0.5
    assert measure_scale(embedder.embed).zero > least_cosine


def _give(model: Embedder, url: str) -> Embedder:
    return model


class BrokenEmbedder(BagEmbedder):
    """Raises an error that nobody expects, once."""

    is_broken = True

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if self.is_broken:
            self.is_broken = False
            raise ArithmeticError("of a driver")
        return super().embed(texts, asking=asking)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_indexer_that_died_delays_no_end_and_starts_again(sqlite_path: str) -> None:
    with open_memory(sqlite_path, lambda url: BrokenEmbedder()) as memory:
        assert memory.meaning is not None
        entities.create(memory, LIBRARY, by=ME)
        assert memory.meaning.settle(TIMEOUT_S)
        memory.request_indexing()
        assert memory.meaning.settle(TIMEOUT_S)
        with memory.reading() as read:
            model = read.vectors.models()[-1].number
            assert read.vectors.coverage(model) == (4, 4)


def test_vectors_of_another_length_are_not_stored(sqlite_path: str) -> None:
    embedder = BagEmbedder()
    with open_memory(sqlite_path, lambda url: embedder) as memory:
        assert memory.meaning is not None
        with patch.object(BagEmbedder, "embed", lambda *_, **__: np.zeros((4, 9), np.float32)):
            entities.create(memory, LIBRARY, by=ME)
            assert memory.meaning.settle(TIMEOUT_S)
        with memory.reading() as read:
            assert read.vectors.coverage(read.vectors.models()[-1].number)[0] == 0


@pytest.fixture
def sqlite_path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")
