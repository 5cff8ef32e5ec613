"""Search by meaning: an embedder that is loaded when needed, and questions as vectors."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder, missing_package
from polymnia.engine.semantic.indexer import IndexedMemory, Indexer, Progress, index_store
from polymnia.errors import EmbedderError
from polymnia.stores.contract import Store
from polymnia.telemetry import carry, span

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

T = TypeVar("T")
logger = logging.getLogger(__name__)

# How long a search waits for its question to be embedded before it answers from words alone: by a
# model that is loaded, and by one that is being loaded.
QUESTION_TIMEOUT_S = 0.5
LOADING_TIMEOUT_S = 3.0
# How long the embedder is not used after it failed or was too slow.
RETRY_AFTER_S = 1.0
# The embedder is released when it was not used for this long.
IDLE_RELEASE_S = 300.0

EmbedderOpener = Callable[[str], Embedder | None]


class QuestionVector(Struct, frozen=True):
    """A question as a little-endian float32 vector of the model with that identity."""

    identity: str
    vector: bytes


class SharedEmbedder:
    """One embedder for all memories of this process: loaded when needed, released when idle."""

    def __init__(
        self, url: str, opener: EmbedderOpener = open_embedder, *, idle: float = IDLE_RELEASE_S
    ) -> None:
        self.url = url
        self.idle = idle
        self._opener = opener
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._is_opening = False
        self._users = 0
        self._used_at = 0.0

    @property
    def is_loaded(self) -> bool:
        """True while the embedder is in memory."""
        return self._embedder is not None

    @property
    def is_loading(self) -> bool:
        """True while a question waits for the model to be loaded, here or in the shared process."""
        return self._is_opening or getattr(self._embedder, "is_loading", False)

    @cached_property
    def missing_package(self) -> str:
        """Which package the embedder needs and how to get it; empty if all are installed."""
        return missing_package(self.url)

    @property
    def identity(self) -> str:
        """The identity of the model. Load it if necessary. Raise EmbedderError."""
        return self._use(lambda embedder: embedder.identity)

    @property
    def loaded_identity(self) -> str:
        """The identity of the model if it is in memory; empty otherwise."""
        embedder = self._embedder
        return embedder.identity if embedder is not None else ""

    @property
    def dimension(self) -> int:
        """The length of the model's vectors. Load the model if necessary. Raise EmbedderError."""
        return self._use(lambda embedder: embedder.dimension)

    @property
    def batch_size(self) -> int:
        """How many texts to give it at once. Raise EmbedderError."""
        return self._use(lambda embedder: embedder.batch_size)

    def embed(self, texts: list[str], *, asking: bool = False) -> list[bytes]:
        """Return the vectors of texts or questions as float32. Raise EmbedderError."""
        return self._use(lambda embedder: _pack(embedder.embed(texts, asking=asking)))

    def embed_questions(self, questions: Sequence[str]) -> list[QuestionVector]:
        """Return questions as vectors. Raise EmbedderError."""

        def embed(embedder: Embedder) -> list[QuestionVector]:
            vectors = _pack(embedder.embed(questions, asking=True))
            return [QuestionVector(embedder.identity, vector) for vector in vectors]

        return self._use(embed)

    def load(self) -> None:
        """Load the model if necessary. Raise EmbedderError."""
        self._use(lambda embedder: None)

    def release_if_idle(self) -> None:
        """Drop the embedder if it was not used for some minutes."""
        with self._lock:
            is_idle = not self._users and monotonic() - self._used_at >= self.idle
            if self._embedder is not None and is_idle:
                self._embedder = None
                logger.info("released the embedder %s", self.url)

    def _use(self, action: Callable[[Embedder], T]) -> T:
        embedder = self._load()
        try:
            return action(embedder)
        except EmbedderError:
            with self._lock:
                if self._embedder is embedder:
                    self._embedder = None  # the service may have another model when it works again
            raise
        finally:
            with self._lock:
                self._users -= 1
                self._used_at = monotonic()

    def _load(self) -> Embedder:
        with self._lock:
            embedder = self._embedder or self._open()
            self._users += 1
            return embedder

    def _open(self) -> Embedder:
        self._is_opening = True
        try:
            self._embedder = self._opener(self.url)
        finally:
            self._is_opening = False
        if self._embedder is None:
            raise EmbedderError("no embedder is configured")
        logger.info("loaded the embedder %s", self._embedder.identity)
        return self._embedder


class Meaning:
    """Turns questions into vectors and keeps the vectors of all memories of a process current."""

    def __init__(self, embedder: SharedEmbedder) -> None:
        self._embedder = embedder
        self._indexer = Indexer(embedder)
        self._quiet_until = 0.0

    def warm_up(self) -> None:
        """Start to load the embedder, so that the first question need not wait for it."""
        if not self.missing_package:
            threading.Thread(target=self._load, name="polymnia-warm-up", daemon=True).start()

    def ask(
        self, questions: Sequence[str], *, timeout: float = QUESTION_TIMEOUT_S
    ) -> "PendingQuestion":
        """Start to embed forms of a question. The caller can do other work meanwhile."""
        return self._start(questions, timeout)

    def embed_questions(self, questions: Sequence[str], *, timeout: float) -> list[QuestionVector]:
        """Return questions as vectors.

        Raise EmbedderError if the embedder fails or takes longer than `timeout` seconds.
        """
        if missing := self.missing_package:
            raise EmbedderError(missing)
        answers = self._start(questions, timeout).answers()
        if isinstance(answers, str):
            raise EmbedderError(answers)
        return answers

    @property
    def url(self) -> str:
        """The embedder's URL, which its models have too."""
        return self._embedder.url

    @property
    def missing_package(self) -> str:
        """Which package the embedder needs and how to get it; empty if all are installed."""
        return self._embedder.missing_package

    def request_indexing(self, memory: IndexedMemory) -> None:
        """Embed in the background what has no vector yet, if the embedder is installed."""
        if not self._embedder.missing_package:
            self._indexer.request(memory)

    def request_indexing_again(self, memory: IndexedMemory) -> None:
        """Look again whether a memory that is kept current here lacks vectors of the model."""
        self._indexer.request_again(memory)

    def index(self, store: Store, progress: Progress | None = None) -> int:
        """Embed now what the store has without vectors, and return how many passages.

        If another server is doing so, wait for it. Raise EmbedderError, StoreError.
        """
        self._embedder.load()  # only the model knows whether all vectors are its own
        return index_store(store, self._embedder, progress=progress)

    def count_waiting(self) -> int:
        """Return how many memories wait to be embedded."""
        return self._indexer.count_waiting()

    def settle(self, timeout: float) -> bool:
        """Wait for the background work. Return False after `timeout` seconds."""
        return self._indexer.settle(timeout)

    def close(self) -> None:
        """Stop the background work, without waiting for the embedder."""
        self._indexer.close()

    def _start(self, questions: Sequence[str], timeout: float) -> "PendingQuestion":
        pending = PendingQuestion(self._embedder, timeout, self._pause)
        if monotonic() >= self._quiet_until:
            embed = carry(partial(pending.embed, questions))
            threading.Thread(target=embed, daemon=True).start()
        else:
            pending.give_up()
        return pending

    def _load(self) -> None:
        try:
            self._embedder.load()
        except EmbedderError as exc:
            logger.info("searching by words alone for now: %s", exc)

    def _pause(self) -> None:
        self._quiet_until = monotonic() + RETRY_AFTER_S


class PendingQuestion:
    """Questions that are being embedded, most often one."""

    def __init__(
        self, embedder: SharedEmbedder, timeout: float, on_failure: Callable[[], None]
    ) -> None:
        self._embedder = embedder
        self._timeout = timeout if embedder.is_loaded else max(timeout, LOADING_TIMEOUT_S)
        self._on_failure = on_failure
        self._done = threading.Event()
        self._vectors: list[QuestionVector] = []
        self._problem = ""

    def answers(self) -> list[QuestionVector] | str:
        """Return the questions as vectors, or why there are none."""
        if not self._done.wait(self._timeout) and self._embedder.is_loading:
            # The shared process has ended, and another one is being started.
            self._done.wait(LOADING_TIMEOUT_S - self._timeout)
        if not self._done.is_set():
            self._on_failure()
        return self._vectors or self._problem or self._excuse()

    def embed(self, questions: Sequence[str]) -> None:
        """Embed the questions. It has a thread of its own: a slow embedder delays no search."""
        try:
            with span("embed", texts=len(questions)):
                self._vectors = self._embedder.embed_questions(questions)
        except EmbedderError as exc:
            self._problem = str(exc)
            self._on_failure()
        finally:
            self._done.set()

    def give_up(self) -> None:
        """Answer without a vector."""
        self._done.set()

    def _excuse(self) -> str:
        if self._embedder.is_loading:
            return "the embedding model is still loading, so only words were searched"
        return "the embedder did not answer in time, so only words were searched"


def _pack(vectors: "Vectors") -> list[bytes]:
    return [row.astype("<f4").tobytes() for row in vectors]
