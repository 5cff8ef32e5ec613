"""One case loaded into a store of its own, and the rankings that are compared on it."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from time import perf_counter

import apsw

from bench.recall.asking import load_case, rank
from bench.recall.measures import DEPTHS
from bench.recall.questions import Case
from bench.recall.variants import PHRASINGS, Phrasing
from polymnia.embedders.base import Embedder
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.search.terms import STOP_WORDS, fold, words_of
from polymnia.stores import open_store

_DEEPEST = DEPTHS[-1]
# How many of each plain ranking are fused.
_FUSED = 100

_BM25 = """
WITH best AS MATERIALIZED (
    SELECT o.entity, o.ordinal, w.rank FROM words AS w JOIN observations AS o ON o.id = w.rowid
    WHERE w.words MATCH ? ORDER BY w.rank LIMIT ?
)
SELECT c.name, b.ordinal
FROM best AS b JOIN cards AS c ON c.entity = b.entity AND c.until IS NULL
ORDER BY b.rank
"""

Ranking = Callable[[str], list[str]]


class Stage:
    """A case in a store."""

    def __init__(
        self,
        case: Case,
        folder: Path,
        embedder: Embedder | None,
        *,
        coverage: float = 1.0,
        also: Phrasing = PHRASINGS["none"],
    ) -> None:
        self._also = also
        self._path = str(folder / f"{case.name}.db")
        self._cleanup = ExitStack()
        self.memory = Memory(open_store(self._path))
        self._cleanup.callback(self.memory.store.close)
        self._case = case
        self._labels = load_case(self.memory, case)
        self.memory.store.compact()  # the plain rankings look into the index themselves
        self.meaning: Meaning | None = None
        self._embedder = embedder
        self.embedding_seconds = 0.0
        if embedder is not None:
            self._embed(embedder, coverage)
        self._plain = apsw.Connection(self._path)
        self._cleanup.callback(self._plain.close)

    def rankings(self) -> dict[str, Ranking]:
        """Every ranking by name, as a function from a question to labels."""
        found = {
            "whole query as substring": self._substring,
            "BM25, all words": lambda question: self._bm25(words_of(question), " AND "),
            "BM25, any word": self._any_word,
        }
        if self.meaning is not None:
            by_vector = self._vector_ranking()
            found["vectors alone"] = lambda question: by_vector(question)[:_DEEPEST]
            found["RRF of both"] = lambda question: _fuse(
                [self._any_word(question, _FUSED), by_vector(question)]
            )
        found["polymnia, words alone"] = lambda question: self._recall(question, None)
        if self.meaning is not None:
            found["polymnia, words and meaning"] = lambda question: self._recall(
                question, self.meaning
            )
        return found

    def close(self) -> None:
        """Stop everything and close the store."""
        self._cleanup.close()

    def _embed(self, embedder: Embedder, coverage: float) -> None:
        url = getattr(embedder, "url", "local")  # models other than the local one are calibrated
        self.meaning = Meaning(SharedEmbedder(url, lambda url: embedder))
        self._cleanup.callback(self.meaning.close)
        began = perf_counter()
        if coverage < 1:
            self._embed_newest(embedder, coverage)
        else:
            self.meaning.index(self.memory.store)
        self.embedding_seconds = perf_counter() - began

    def _embed_newest(self, embedder: Embedder, coverage: float) -> None:
        store = self.memory.store
        model = store.vectors.add_model(embedder.identity, "local", embedder.dimension)
        with store.reading() as read:
            count = ceil(coverage * read.vectors.coverage(model.number)[1])
            pending = read.vectors.pending(model.number, count)
        vectors = embedder.embed([text for _, text in pending])
        packed = [row.astype("<f4").tobytes() for row in vectors]
        store.vectors.put(
            model.number, list(zip([each for each, _ in pending], packed, strict=True))
        )

    def _substring(self, question: str) -> list[str]:
        folded = fold(question)
        with self.memory.reading() as read:
            found = [
                self._labels[entity.name, fact.ordinal]
                for entity in read.containing(folded)
                for fact in entity.facts
                if folded in fold(fact.text)
            ]
        return found[:_DEEPEST]

    def _any_word(self, question: str, count: int = _DEEPEST) -> list[str]:
        return self._bm25(_content(question), " OR ", count)

    def _bm25(self, words: list[str], operator: str, count: int = _DEEPEST) -> list[str]:
        match = operator.join([f'"{word}"' for word in words])
        rows = self._plain.execute(_BM25, (match, count))
        return [self._labels[name, ordinal] for name, ordinal in rows]

    def _vector_ranking(self) -> Ranking:
        """Return the ranking by cosine alone, of the text that everybody embeds: `Name: text`."""
        assert self._embedder is not None
        texts = [f"{told.entity}: {told.text}" for told in self._case.told]
        vectors = self._embedder.embed(texts)

        def rank(question: str) -> list[str]:
            assert self._embedder is not None
            (asked,) = self._embedder.embed([question], asking=True)
            nearest = (-(vectors @ asked)).argsort(kind="stable")[:_FUSED]
            return [self._case.told[place].label for place in nearest]

        return rank

    def _recall(self, question: str, meaning: Meaning | None) -> list[str]:
        memory = Memory(self.memory.store, meaning)
        return rank(memory, question, self._labels, also=self._also(question))


def _fuse(rankings: list[list[str]]) -> list[str]:
    """Return the reciprocal rank fusion of rankings, with the usual constant of 60."""
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for place, label in enumerate(ranking, 1):
            scores[label] += 1 / (60 + place)
    return sorted(scores, key=lambda label: -scores[label])[:_DEEPEST]


def _content(question: str) -> list[str]:
    """Return the words of a question without stop words, as often as it has them."""
    words = words_of(question)
    return [word for word in words if word not in STOP_WORDS] or words
