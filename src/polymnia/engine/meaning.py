"""Search by meaning: an embedder that is loaded when needed, and questions as vectors."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder, missing_package
from polymnia.engine.indexer import IndexedMemory, Indexer, Progress, index_store
from polymnia.errors import EmbedderError
from polymnia.stores.contract import Store

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

T = TypeVar("T")
logger = logging.getLogger(__name__)

# How long a search waits for its question to be embedded before it answers from words alone.
QUESTION_TIMEOUT_S = 0.5
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
    """One embedder for all memories of a process. It is loaded when first needed and released when idle."""

    def __init__(
        self, url: str, opener: EmbedderOpener = open_embedder, *, idle: float = IDLE_RELEASE_S
    ) -> None:
        self.url = url
        self.idle = idle
        self._opener = opener
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._users = 0
        self._used_at = 0.0

    @property
    def is_loaded(self) -> bool:
        """True while the embedder is in memory."""
        return self._embedder is not None

    @cached_property
    def missing_package(self) -> str:
        """What to say if a package that the embedder needs is not installed; empty if all are."""
        return missing_package(self.url)

    @property
    def identity(self) -> str:
        """The identity of the model. Load it if necessary. Raise EmbedderError."""
        return self._use(lambda embedder: embedder.identity)

    @property
    def dimension(self) -> int:
        """The length of the model's vectors. Load the model if necessary. Raise EmbedderError."""
        return self._use(lambda embedder: embedder.dimension)

    @property
    def batch_size(self) -> int:
        """How many texts to give it at once. Raise EmbedderError."""
        return self._use(lambda embedder: embedder.batch_size)

    def embed(self, texts: list[str]) -> list[bytes]:
        """Return the vectors of texts as float32. Raise EmbedderError."""
        return self._use(lambda embedder: _pack(embedder.embed(texts)))

    def embed_questions(self, questions: Sequence[str]) -> list[QuestionVector]:
        """Return questions as vectors. Raise EmbedderError."""
        return self._use(
            lambda embedder: [
                QuestionVector(embedder.identity, vector)
                for vector in _pack(embedder.embed(questions, asking=True))
            ]
        )

    def release_if_idle(self) -> None:
        """Drop the embedder if it was not used for some minutes."""
        with self._lock:
            if (
                self._embedder is not None
                and not self._users
                and monotonic() - self._used_at >= self.idle
            ):
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
            if self._embedder is None:
                self._embedder = self._opener(self.url)
                if self._embedder is None:
                    raise EmbedderError("no embedder is configured")
                logger.info("loaded the embedder %s", self._embedder.identity)
            self._users += 1
            return self._embedder


class Meaning:
    """Turns questions into vectors and keeps the vectors of all memories of a process current."""

    def __init__(self, embedder: SharedEmbedder) -> None:
        self._embedder = embedder
        self._indexer = Indexer(embedder)
        self._quiet_until = 0.0

    def ask(self, question: str, *, timeout: float = QUESTION_TIMEOUT_S) -> "PendingQuestion":
        """Start to embed a question. The caller can do other work before it asks for the vector."""
        return self._start([question], timeout)

    def embed_questions(self, questions: Sequence[str], *, timeout: float) -> list[QuestionVector]:
        """Return questions as vectors. Raise EmbedderError if the embedder fails or takes longer than `timeout` s."""
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
        """What to say if a package that the embedder needs is not installed; empty if all are."""
        return self._embedder.missing_package

    def request_indexing(self, memory: IndexedMemory) -> None:
        """Embed in the background what the memory has without vectors, if the embedder is installed."""
        if not self._embedder.missing_package:
            self._indexer.request(memory)

    def index(self, store: Store, progress: Progress | None = None) -> int:
        """Embed now what the store has without vectors; return how many passages. Raise EmbedderError, StoreError."""
        return index_store(store, self._embedder, progress=progress)

    def settle(self, timeout: float) -> bool:
        """Wait for the background work. Return False after `timeout` seconds."""
        return self._indexer.settle(timeout)

    def close(self) -> None:
        """Stop the background work."""
        self._indexer.close()

    def _start(self, questions: Sequence[str], timeout: float) -> "PendingQuestion":
        asking = PendingQuestion(timeout, self._pause)
        if monotonic() >= self._quiet_until:
            threading.Thread(
                target=asking.embed, args=(self._embedder, questions), daemon=True
            ).start()
        else:
            asking.give_up()
        return asking

    def _pause(self) -> None:
        self._quiet_until = monotonic() + RETRY_AFTER_S


class PendingQuestion:
    """Questions that are being embedded, most often one."""

    def __init__(self, timeout: float, on_failure: Callable[[], None]) -> None:
        self._timeout = timeout
        self._on_failure = on_failure
        self._done = threading.Event()
        self._vectors: list[QuestionVector] = []
        self._problem = "the embedder did not answer in time"

    def answer(self) -> QuestionVector | str:
        """Return the question as a vector, or why there is none."""
        answers = self.answers()
        return answers if isinstance(answers, str) else answers[0]

    def answers(self) -> list[QuestionVector] | str:
        """Return the questions as vectors, or why there are none."""
        if not self._done.wait(self._timeout):
            self._on_failure()
        return self._vectors or self._problem

    def embed(self, embedder: SharedEmbedder, questions: Sequence[str]) -> None:
        """Embed the questions. This runs in its own thread: a slow embedder must not delay the search."""
        try:
            self._vectors = embedder.embed_questions(questions)
        except EmbedderError as exc:
            self._problem = str(exc)
            self._on_failure()
        finally:
            self._done.set()

    def give_up(self) -> None:
        """Answer without a vector."""
        self._done.set()


def _pack(vectors: "Vectors") -> list[bytes]:
    return [row.astype("<f4").tobytes() for row in vectors]
