"""The command `python -m bench.recall.scale`: what a search and a write cost in a large memory."""

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from zlib import crc32

import apsw
import numpy as np
from numpy.typing import NDArray

from bench.budgets import Verdict, at_most
from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.indexer import index_store
from polymnia.engine.semantic.meaning import Meaning, QuestionVector, SharedEmbedder
from polymnia.model import EntityDraft, FactAddition
from polymnia.search.question import content_words
from polymnia.stores import open_store

ME = "bench"
_VOCABULARY, _WORDS, _PER_ENTITY, _BATCH = 20_000, 12, 10, 500
_TIMEOUT_S = 600.0
_WORDS_ALONE, _VECTORS_ALONE, _BOTH = "words alone", "vectors alone", "words and meaning"
_EMBEDDING, _FTS5 = "embedding the question", "FTS5, any word"
_BARE = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 100"


class RandomEmbedder:
    """A random vector for each text: the cost of a search hardly depends on what vectors mean."""

    dimension = 384
    identity = "random/384"
    batch_size = 32

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        seeds = [crc32(text.encode()) for text in texts]
        found = np.array(
            [np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds]
        )
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.scale", description="Search and write at size."
    )
    parser.add_argument(
        "--facts", type=int, default=100_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--questions", type=int, default=100, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--writes", type=int, default=200, metavar="N", help="(default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        text = ZipfText()
        path = str(Path(folder) / "memory.db")
        _fill(path, text, options.facts)
        verdicts = [_searches(path, text, options.questions), _writes(path, text, options.writes)]
    for verdict in verdicts:
        print(
            f"{verdict.what}: {verdict.measured}, budget {verdict.budget}: "
            f"{'met' if verdict.met else 'missed'}"
        )
    return 0


class ZipfText:
    """Random text whose words are about as frequent as those of a language (Zipf's law)."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self.vocabulary = [
            "".join(self._random.choices("abcdefghijklmnopqrstuvwxyz", k=7))
            for _ in range(_VOCABULARY)
        ]
        self._shares = list(accumulate([1 / (place + 10) for place in range(_VOCABULARY)]))

    def make(self, words: int = _WORDS) -> str:
        return " ".join(self._random.choices(self.vocabulary, cum_weights=self._shares, k=words))


def _fill(path: str, text: ZipfText, count: int) -> None:
    began = perf_counter()
    store = open_store(path)
    memory = Memory(store)
    names = [f"Entity {number}" for number in range(count // _PER_ENTITY)]
    for start in range(0, len(names), _BATCH):
        drafts = [
            EntityDraft(name, "thing", tuple([text.make() for _ in range(_PER_ENTITY)]))
            for name in names[start : start + _BATCH]
        ]
        entities.create(memory, drafts, by=ME)
    store.compact()
    print(f"{count} observations of {_WORDS} words written in {perf_counter() - began:.0f} s")
    began = perf_counter()
    index_store(store, SharedEmbedder("local", lambda url: RandomEmbedder()))
    print(f"{RandomEmbedder.dimension} numbers for each written in {perf_counter() - began:.0f} s")
    store.close()


def _searches(path: str, text: ZipfText, count: int) -> Verdict:
    memory, meaning = _opened(path, RandomEmbedder())
    began = perf_counter()
    _nearest(memory, _asked(meaning, "anything"), 1)
    print(f"vectors read into memory in {perf_counter() - began:.1f} s")
    words = Memory(memory.store)
    plain = apsw.Connection(path)
    questions = [f"what about {text.make(5)} of Entity {place * 7}?" for place in range(count)]
    ways: dict[str, Callable[[str], object]] = {
        _WORDS_ALONE: lambda question: recall(words, question),
        _VECTORS_ALONE: lambda question: _nearest(memory, _asked(meaning, question), 100),
        _BOTH: lambda question: recall(memory, question, timeout=_TIMEOUT_S),
        _EMBEDDING: lambda question: _asked(meaning, question),
        _FTS5: lambda question: plain.execute(
            _BARE, (" OR ".join(content_words(question)),)
        ).fetchall(),
    }
    medians = _in_turns(ways, questions)
    plain.close()
    _close(memory)
    for name, (wall, processor) in medians.items():
        print(f"{name}: {wall:.1f} ms, {processor:.1f} ms of processor time")
    embedding = medians[_EMBEDDING][1]
    bare = medians[_FTS5][1] + medians[_VECTORS_ALONE][1] - embedding
    ratio = (medians[_BOTH][1] - embedding) / bare
    print(f"{_BOTH}: {ratio:.1f} times the processor time of FTS5 and vectors alone")
    return _judge(medians)


def _in_turns(
    ways: dict[str, Callable[[str], object]], questions: list[str]
) -> dict[str, tuple[float, float]]:
    """Return the median milliseconds of each way, by the clock and of processor time."""
    for question in questions[:5]:
        for way in ways.values():
            way(question)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for question in questions:
        for name, way in ways.items():
            wall, processor = perf_counter(), process_time()
            way(question)
            spent[name].append((perf_counter() - wall, process_time() - processor))
    return {
        name: (_median([time[0] for time in times]), _median([time[1] for time in times]))
        for name, times in spent.items()
    }


def _judge(medians: dict[str, tuple[float, float]]) -> Verdict:
    """Judge what a question costs once it is embedded."""
    spent = medians[_BOTH][1] - medians[_EMBEDDING][1]
    return at_most(f"{_BOTH}, processor time once embedded", spent, 30, " ms")


def _asked(meaning: Meaning, question: str) -> QuestionVector:
    asked = meaning.ask([question], timeout=_TIMEOUT_S).answers()
    assert not isinstance(asked, str), asked
    return asked[0]


def _nearest(memory: Memory, asked: QuestionVector, count: int) -> dict[int, float]:
    with memory.reading() as read:
        (model,) = read.vectors.models()
        return read.vectors.nearest(model.number, asked.vector, count)


def _writes(path: str, text: ZipfText, count: int) -> Verdict:
    """Write one observation at a time, in turn without a model and with the local one at work
    behind each write.
    """
    local = open_embedder("local")
    assert local is not None
    plain_path = f"{path}.plain.db"
    plain = Memory(open_store(plain_path))
    entities.create(plain, [EntityDraft("One", "thing")], by=ME)
    embedding, meaning = _opened(f"{path}.embedding.db", local)
    entities.create(embedding, [EntityDraft("One", "thing")], by=ME)
    meaning.settle(_TIMEOUT_S)
    spent: dict[str, list[float]] = {"without": [], "with": []}
    for _ in range(count):
        for name, memory in (("without", plain), ("with", embedding)):
            added = [FactAddition("One", (text.make(),))]
            began = perf_counter()
            facts.add(memory, added, by=ME, skip_repeats=False)
            spent[name].append(perf_counter() - began)
    for name, times in spent.items():
        print(f"one observation, {name} a model that embeds it: {_median(times):.2f} ms")
    _close(embedding)
    _close(plain)
    slower = _median(spent["with"]) / _median(spent["without"])
    return at_most("a write with a model behind it", slower, 1.2, "x one without")


def _opened(path: str, embedder: Embedder) -> tuple[Memory, Meaning]:
    meaning = Meaning(SharedEmbedder("local", lambda url: embedder))
    return Memory(open_store(path), meaning), meaning


def _close(memory: Memory) -> None:
    if memory.meaning is not None:
        memory.meaning.close()
    memory.store.close()


def _median(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2] * 1000


if __name__ == "__main__":
    sys.exit(main())
