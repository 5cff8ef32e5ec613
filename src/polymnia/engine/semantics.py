"""Meaning: a model that loads and embeds in the background, and the vectors of a store in memory.

Nothing here holds up a write or a search: what is not ready is left out, and the answer says so.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder
from polymnia.errors import EmbedderError, StoreError
from polymnia.model import EmbeddingModel, Within
from polymnia.stores.base import VectorTable

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors
    from polymnia.search.vectors import VectorIndex

logger = logging.getLogger(__name__)

_TOO_LATE = "the model did not answer in time"
# How long a search waits for its question to be embedded before it answers from words.
PATIENCE = 0.5
_BATCH = 32
# Vectors read at once, and how many a search takes in by itself rather than leave them to the background.
_STRETCH, _FEW = 5_000, 256
# Vectors of an earlier model that are removed at once, and how many that went are remembered for other processes.
_REMOVED, _GONE_KEPT = 1_000, 10_000
# How often to look whether another process has written, and how long to leave a failing model alone, in seconds.
_LOOK, _FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 1.0, 60.0


class Coverage(Struct, frozen=True):
    """How far the vectors of a memory are: of how many observations, by which model, and what is wrong, if anything."""

    embedded: int
    total: int
    model: str
    problem: str


class _Serving(Struct, frozen=True):
    """A model and the vectors that questions can be compared with."""

    embedder: Embedder
    model: EmbeddingModel
    index: "VectorIndex"


class Asking:
    """A question on its way to the model and back; who asks may do something else meanwhile."""

    def __init__(self, semantics: "Semantics", serving: _Serving, text: str, patience: float) -> None:
        self.unwanted = False
        self._semantics = semantics
        self._serving = serving
        self._text = text
        self._patience = patience
        self._vector: Vectors | None = None
        self._failure = ""
        self._over = threading.Event()

    def embed(self) -> None:
        """Let the model make the vector."""
        try:
            self._vector = self._serving.embedder.embed([self._text], asking=True)[0]
        except EmbedderError as exc:
            self._failure = str(exc)
        finally:
            self._over.set()

    def answer(self) -> "Asked | str":
        """The question as a vector to compare with, or why there is none."""
        if not self._over.wait(self._patience):
            self.unwanted = True
            self._failure = _TOO_LATE
        if self._vector is None:
            self._semantics.leave_alone()
            return self._failure
        return Asked(self._semantics, self._serving, self._vector)


class Asked:
    """A question as a vector, and what it can be compared with."""

    def __init__(self, semantics: "Semantics", serving: _Serving, question: "Vectors") -> None:
        self._semantics = semantics
        self._serving = serving
        self._question = question
        self._current = False

    def nearest(self, count: int, within: Within | None = None) -> dict[int, float]:
        """The places nearest to it, with their cosines."""
        groups = self._semantics.groups(within)
        with self._looking() as index:
            return index.nearest(self._question, count, groups)

    @property
    def question(self) -> bytes:
        """The question's vector, as little-endian float32."""
        return self._question.astype("<f4").tobytes()

    @property
    def coverage(self) -> float:
        """The share of passages that have a vector, from 0 to 1."""
        coverage = self._semantics.coverage()
        return coverage.embedded / coverage.total if coverage.total else 0.0

    def vectors(self, ids: Collection[int]) -> dict[int, bytes]:
        """Return the vectors of those of the passages that have one, as little-endian float32."""
        with self._looking() as index:
            return index.vectors(ids)

    def _looking(self) -> "AbstractContextManager[VectorIndex]":
        """The vectors; whether there are new ones is looked up once for a question."""
        current, self._current = self._current, True
        return self._semantics.looking(self._serving, current=current)


class Semantics:
    """The model and vectors of one memory, loaded at the first question or the first write to one that has vectors."""

    def __init__(self, table: VectorTable, url: str, opener: Callable[[str], Embedder | None] = open_embedder) -> None:
        self._table = table
        self._url = url
        self._opener = opener
        self._serving: _Serving | None = None
        self._own: _Serving | None = None
        self._seen = (0, 0)
        self._coverage = Coverage(0, 0, "", "it is being loaded")
        self._reported = (-1, -1)  # the state of the table that the coverage is of
        self._index_lock = threading.Lock()
        self._wake = threading.Event()
        # Rounds of work: how many were asked for, and how many of them are over.
        self._rounds = threading.Condition()
        self._wanted, self._over = 1, 0
        self._stop = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._questions: SimpleQueue[Asking | None] = SimpleQueue()
        self._silent_until = 0.0

    def start(self) -> None:
        """Begin to load and embed in the background; once is enough."""
        with self._starting:
            if self._thread is None and not self._stop:
                threading.Thread(target=self._answer, name="polymnia-question", daemon=True).start()
                self._thread = threading.Thread(target=self._work, name="polymnia-meaning", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """There may be something to embed."""
        self.start()
        with self._rounds:
            self._wanted += 1
        self._wake.set()

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until everything is embedded, or what hinders it is known; False when that took too long."""
        self.start()
        wanted = self._wanted
        with self._rounds:
            return self._rounds.wait_for(lambda: self._over >= wanted or self._stop, timeout)

    def coverage(self) -> Coverage:
        """How far it is."""
        return self._coverage

    def ask(self, question: str, patience: float | None = None) -> "Asked | str":
        """The question as a vector, or why there is none; with patience it waits until everything is embedded."""
        if patience is not None:
            self.settle(patience)
        asking = self.begin(question, patience)
        return asking if isinstance(asking, str) else asking.answer()

    def begin(self, question: str, patience: float | None = None) -> "Asking | str":
        """The question, given to the model, or why it cannot be; its answer is waited for no longer than that."""
        self.start()
        serving = self._serving
        if serving is None:
            return self._coverage.problem
        if monotonic() < self._silent_until:
            return _TOO_LATE
        asking = Asking(self, serving, question, max(PATIENCE, patience or 0))
        self._questions.put(asking)
        return asking

    def leave_alone(self) -> None:
        """Ask the model nothing for a moment: it did not answer."""
        self._silent_until = monotonic() + _FIRST_PAUSE

    def close(self) -> None:
        """Stop the background work."""
        with self._starting, self._rounds:
            self._stop = True
            self._rounds.notify_all()
        self._wake.set()
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def looking(self, serving: _Serving, *, current: bool = False) -> "Iterator[VectorIndex]":
        """The vectors, with what was written since unless they are current, for the length of the block."""
        with self._index_lock:
            if not current and serving is self._serving and self._table.state() != self._seen:
                self._catch_up(serving, _FEW)
            yield serving.index

    def groups(self, within: Within | None) -> list[int] | None:
        """The groups of vectors that a filter allows; None is all."""
        return None if within is None else self._table.groups(within)

    def _answer(self) -> None:
        """Embed questions in a thread of their own: one that takes too long must not hold up who asked."""
        while (asked := self._questions.get()) is not None:
            if not asked.unwanted:
                asked.embed()

    def _work(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stop:
            self._wake.clear()
            wanted = self._wanted
            try:
                self._load()
                self._embed_queued()
                if self._coverage.problem or self._table.state() != self._reported:  # counting takes a while
                    self._report("")
                    self._table.forget_gone(_GONE_KEPT)
                self._end_round(wanted)
                pause = _FIRST_PAUSE
                self._wake.wait(_LOOK)
            except (EmbedderError, StoreError) as exc:
                logger.info("searching by words alone for now: %s", exc)
                self._report(str(exc))
                if isinstance(exc, EmbedderError):
                    self._own = None  # what comes back may be another: it is loaded anew
                self._end_round(wanted)
                self._wait_out(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _end_round(self, wanted: int) -> None:
        with self._rounds:
            self._over = wanted
            self._rounds.notify_all()

    def _wait_out(self, pause: float) -> None:
        """Wait, whatever is written meanwhile, but no longer than until it is to stop."""
        with self._rounds:
            self._rounds.wait_for(lambda: self._stop, pause)

    def _load(self) -> None:
        """Load the model and the vectors, once; while it has none yet, an earlier model's serve."""
        if self._own is None:
            embedder = self._opener(self._url)
            if embedder is None:
                raise EmbedderError("there is no model")
            earlier = self._table.models()
            model = self._table.add_model(embedder.identity, self._url, embedder.dimension)
            self._own = self._served(embedder, model)
            if not self._table.queued(model.number, 1):
                self._serve(self._own)
            else:
                self._serve(self._earlier([each for each in earlier if each.number != model.number]) or self._own)
        self._refresh()

    def _refresh(self) -> None:
        with self._index_lock:
            if self._serving is not None:
                self._catch_up(self._serving)

    def _served(self, embedder: Embedder, model: EmbeddingModel) -> _Serving:
        from polymnia.search.vectors import VectorIndex  # numpy is loaded with the first model

        return _Serving(embedder, model, VectorIndex(model.dimension))

    def _earlier(self, models: list[EmbeddingModel]) -> _Serving | None:
        """The newest of the earlier models that can still be loaded and is still the same."""
        for model in reversed(models):
            try:
                embedder = self._opener(model.url)
            except EmbedderError:
                continue
            if embedder is not None and embedder.identity == model.identity:
                return self._served(embedder, model)
        return None

    def _serve(self, serving: _Serving) -> None:
        with self._index_lock:
            self._seen = (0, self._table.state()[1])
            self._catch_up(serving)
            self._serving = serving

    def _catch_up(self, serving: _Serving, most: int | None = None) -> None:
        """Take in what was written and take out what went: all, or so many and the rest in the background."""
        top = self._table.state()
        written, gone = self._seen
        known = self._table.gone_since(serving.model.number, gone)
        if known is None:
            known = top[1], list(serving.index.places - self._table.places(serving.model.number))
        gone, places = known
        serving.index.remove(places)
        stretch = most or _STRETCH
        while True:
            written, rows = self._table.since(serving.model.number, written, stretch)
            serving.index.add(rows)
            if len(rows) < stretch:
                self._seen = (max(written, top[0]), max(gone, top[1]))
                return
            self._seen = (written, gone)
            if most is not None:
                self._wake.set()
                return

    def _embed_queued(self) -> None:
        from polymnia.search.vectors import as_bytes

        own = self._own
        assert own is not None  # _load has made it
        while not self._stop and (queued := self._table.queued(own.model.number, _BATCH)):
            vectors = as_bytes(own.embedder.embed([text or "" for _, text in queued]))
            rows = [(place, text, vector) for (place, text), vector in zip(queued, vectors, strict=True)]
            self._table.put(own.model.number, rows)
            self._refresh()
            self._report("")
        if not self._stop and self._serving is not own:
            self._serve(own)
        for model in self._table.models():
            while not self._stop and model.number != own.model.number:
                if self._table.remove_model(model.number, _REMOVED):
                    break

    def _report(self, problem: str) -> None:
        own = self._own
        known = self._coverage
        try:
            self._reported = self._table.state()
            embedded, total = self._table.counts(own.model.number) if own else (known.embedded, known.total)
        except StoreError:  # what was known last is better than nothing
            embedded, total = known.embedded, known.total
        self._coverage = Coverage(embedded, total, own.model.identity if own else known.model, problem)
