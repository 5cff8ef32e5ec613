"""Keep vectors current: embed new passages in the background, or all at once on request.

One server at a time embeds a store.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

from polymnia.embedders.base import LOCAL
from polymnia.engine.semantic.calibration import measure_scale
from polymnia.errors import BadInput, EmbedderError, StoreError
from polymnia.model import EmbeddingModel, Perspective
from polymnia.search.templates import uses_name
from polymnia.stores.contract import Store

if TYPE_CHECKING:
    from polymnia.stores.contract import VectorReader

logger = logging.getLogger(__name__)

# Indexing starts this long after a write, so that a burst of writes is indexed together.
INDEX_DELAY_S = 1.0
# When to look again after another server had the lease, or the embedder failed.
RETRY_INDEXING_S = 30.0
_REMOVE_BATCH_SIZE = 5_000
# Texts of one run whose vectors are kept, because the same text often comes again soon.
_KEPT_TEXTS = 2_000
# One server embeds a store at a time. It renews the lease with every batch. The lease ends with the
# server, or after this long if it is unknown whether it runs.
_LEASE, _LEASE_S = "embedding", 60.0
# How often a command that waits for another server looks at its progress.
_POLL_S = 0.5
# How long a closing server waits for the thread to leave the store.
CLOSE_TIMEOUT_S = 5.0

Progress = Callable[[int, int], None]
# The passage id up to which everything is embedded, by model number and document template.
Watermarks = dict[tuple[int, str], int]


class IndexEmbedder(Protocol):
    """The embedder as the indexer uses it."""

    url: str
    idle: float

    @property
    def identity(self) -> str: ...

    @property
    def loaded_identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    def load(self) -> None: ...

    def embed(self, texts: list[str], *, asking: bool = False) -> list[bytes]: ...

    def release_if_idle(self) -> None: ...


class IndexedMemory(Protocol):
    """A memory to index. Its store stays open as long as this object is in use."""

    store: Store


class _Stopped(Exception):
    """The indexer was closed while it was embedding. Its store may be closed too."""


class Indexer:
    """A thread that embeds new passages of memories, started by the first request."""

    def __init__(self, embedder: IndexEmbedder) -> None:
        self._embedder = embedder
        self._wake = threading.Condition()
        self._requested: WeakSet[IndexedMemory] = WeakSet()
        self._indexed: WeakKeyDictionary[IndexedMemory, Watermarks] = WeakKeyDictionary()
        self._thread: threading.Thread | None = None
        self._leased: Store | None = None
        self._is_working = False
        self._is_embedding = False
        self._stopped = False

    def request(self, memory: IndexedMemory) -> None:
        """Index the memory soon."""
        with self._wake:
            self._requested.add(memory)
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(
                    target=self._work, name="polymnia-indexer", daemon=True
                )
                self._thread.start()
            self._wake.notify_all()

    def request_again(self, memory: IndexedMemory) -> None:
        """Index the memory soon if it is one that is kept current here: not one only read."""
        if memory in self._indexed:
            self.request(memory)

    def count_waiting(self) -> int:
        """Return how many memories have new passages to embed, or are being embedded."""
        return len(self._requested) + self._is_working

    def settle(self, timeout: float) -> bool:
        """Wait until everything that was requested is indexed or has failed.

        Return False after `timeout` seconds.
        """
        with self._wake:
            return self._wake.wait_for(
                lambda: not (self._is_working or len(self._requested)), timeout
            )

    def close(self) -> None:
        """Stop. The thread uses no store from then on.

        A batch that is being embedded is dropped: on a busy machine it may take seconds. A thread
        that does not leave the store in time is left alone.
        """
        with self._wake:
            self._stopped = True
            self._requested.clear()
            self._wake.notify_all()
            is_idle = self._wake.wait_for(
                lambda: self._is_embedding or not self._is_working, CLOSE_TIMEOUT_S
            )
            leased = self._leased
        if leased is not None and is_idle:
            leased.vectors.lease(_LEASE, 0)

    @contextmanager
    def _outside_store(self) -> Iterator[None]:
        """Let `close` return during the block, which uses no store. Raise _Stopped if it did."""
        with self._wake:
            if self._stopped:
                raise _Stopped
            self._is_embedding = True
            self._wake.notify_all()
        try:
            yield
        finally:
            with self._wake:
                self._is_embedding = False
                if self._stopped:
                    raise _Stopped

    def _work(self) -> None:
        try:
            while not self._stopped:
                for memory in self._next_memories():
                    self._index(memory)
                with self._wake:
                    self._is_working = False
                    self._wake.notify_all()
                self._embedder.release_if_idle()
        finally:
            # An unexpected error ends this thread, but no caller waits for it, and the next
            # request starts another one.
            with self._wake:
                self._thread = self._leased = None
                self._is_working = self._is_embedding = False
                self._requested.clear()
                self._wake.notify_all()

    def _next_memories(self) -> list[IndexedMemory]:
        """Wait for a request, then for a burst of writes to end."""
        with self._wake:
            self._wake.wait_for(lambda: self._stopped or len(self._requested), self._embedder.idle)
            if len(self._requested):
                self._wake.wait_for(lambda: self._stopped, INDEX_DELAY_S)
            memories = [] if self._stopped else list(self._requested)
            self._requested.clear()
            self._is_working = bool(memories)
        return memories

    def _index(self, memory: IndexedMemory) -> None:
        above = self._indexed.get(memory, {})
        work = Embedding(
            memory.store,
            self._embedder,
            above=above,
            is_stopped=lambda: self._stopped,
            outside_store=self._outside_store,
        )
        try:
            with _hold_lease(memory.store) as is_leased:
                if is_leased:
                    self._leased = memory.store
                    self._indexed[memory] = work.run()
                    self._leased = None
                    if work.is_outdated:
                        self.request(memory)
                    return
        except _Stopped:
            return
        except (EmbedderError, StoreError) as exc:
            logger.info("searching by words alone for now: %s", exc)
        self._leased = None
        self._retry_later(ref(memory))

    def _retry_later(self, memory: Callable[[], IndexedMemory | None]) -> None:
        timer = threading.Timer(RETRY_INDEXING_S, self._retry, [memory])
        timer.daemon = True
        timer.start()

    def _retry(self, reference: Callable[[], IndexedMemory | None]) -> None:
        memory = reference()
        if memory is not None and not self._stopped:
            self.request(memory)


class Embedding:
    """One run over a store: embed what has no vector, newest first, and remove unused vectors."""

    def __init__(
        self,
        store: Store,
        embedder: IndexEmbedder,
        *,
        above: Watermarks | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        outside_store: Callable[[], AbstractContextManager[None]] = nullcontext,
        progress: Progress | None = None,
    ) -> None:
        """`outside_store` is entered whenever the embedder works."""
        self.embedded = 0
        # How many vectors another server made while this run waited for it.
        self.made_elsewhere = 0
        # True if perspectives were changed or removed while they were embedded.
        self.is_outdated = False
        self._store = store
        self._embedder = embedder
        self._above = dict(above or {})
        self._is_stopped = is_stopped
        self._outside_store = outside_store
        self._progress = progress
        self._known: dict[str, bytes] = {}

    def run(self) -> Watermarks:
        """Return the passage ids up to which everything is embedded now."""
        with self._store.reading() as read:
            top = read.vectors.last_passage()
            perspectives = distinct_perspectives(read.vectors)
            documents = {perspective.document for perspective in perspectives}
            for key in list(self._above):
                if key[1] not in documents:
                    del self._above[key]
            self._forget_renamed(read.vectors, perspectives)
            is_complete = self._is_complete(read.vectors, perspectives, top)
        if is_complete:
            self._remove_unused()
            return self._above
        with self._outside_store():
            self._embedder.load()
        model = self._add_model()
        total = self._count_missing(model.number, perspectives) if self._progress else 0
        for perspective in perspectives:
            try:
                if not self._embed_all(model, perspective, total):
                    return self._above
            except BadInput:  # it was changed or removed meanwhile
                self.is_outdated = True
                continue
            self._above[model.number, perspective.document] = top
        self._remove_former_models(model)
        self._remove_unused()
        return self._above

    def _add_model(self) -> EmbeddingModel:
        """Return the model of the embedder. Measure its scale when it is new."""
        embedder = self._embedder
        model = self._store.vectors.add_model(embedder.identity, embedder.url, embedder.dimension)
        if model.scale is None and model.url != LOCAL:  # the scale of the local model is known
            with self._outside_store():
                scale = measure_scale(embedder.embed)
            self._store.vectors.set_scale(model.number, scale)
        return model

    def _is_complete(
        self, vectors: "VectorReader", perspectives: list[Perspective], top: int
    ) -> bool:
        """Return True if nothing is pending, without loading the embedder to find out."""
        if not top:
            return True
        models = [model for model in vectors.models() if model.url == self._embedder.url]
        if len(models) != 1:
            return False
        model = models[0]
        if self._embedder.loaded_identity not in ("", model.identity):
            return False  # the embedder has another model since
        for perspective in perspectives:
            is_behind = self._above.get((model.number, perspective.document), 0) < top
            if is_behind and self._pending(vectors, model, perspective):
                return False
        return True

    def _forget_renamed(self, vectors: "VectorReader", perspectives: list[Perspective]) -> None:
        """Check all passages again if some lost their vectors because their entity was renamed."""
        for perspective in perspectives:
            name = perspective.name
            for model, document in [key for key in self._above if key[1] == perspective.document]:
                if not uses_name(document):
                    continue
                embedded, total = vectors.coverage(model, perspective=name)
                above = self._above[model, document]
                new = vectors.pending(model, total - embedded, above=above, perspective=name)
                if len(new) < total - embedded:
                    del self._above[model, document]

    def _pending(
        self,
        vectors: "VectorReader",
        model: EmbeddingModel,
        perspective: Perspective,
        below: int | None = None,
        limit: int = 1,
    ) -> list[tuple[int, str]]:
        above = self._above.get((model.number, perspective.document), 0)
        return vectors.pending(
            model.number, limit, above=above, below=below, perspective=perspective.name
        )

    def _embed_all(self, model: EmbeddingModel, perspective: Perspective, total: int) -> bool:
        """Embed what is pending in one perspective. Return False if the run was stopped."""
        below: int | None = None
        size = self._embedder.batch_size
        while not self._is_stopped():
            with self._store.reading() as read:
                batch = self._pending(read.vectors, model, perspective, below, size)
            if not batch:
                return True
            self._embed(model, perspective, batch)
            below = batch[-1][0]
            self._report(total)
        return False

    def _embed(
        self, model: EmbeddingModel, perspective: Perspective, batch: list[tuple[int, str]]
    ) -> None:
        vectors = self._vectors([text for _, text in batch])
        rows = [(passage, vectors[text]) for passage, text in batch]
        self._store.vectors.put(
            model.number, rows, perspective=perspective.name, document=perspective.document
        )
        self._store.vectors.lease(_LEASE, _LEASE_S)
        self.embedded += len(batch)

    def _vectors(self, texts: list[str]) -> dict[str, bytes]:
        """Return the vectors of texts. Embed each text once, and reuse recent vectors."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if len(self._known) > _KEPT_TEXTS:
                self._known = {text: self._known[text] for text in texts if text in self._known}
            with self._outside_store():
                vectors = self._embedder.embed(new)
            length = 4 * self._embedder.dimension
            if [len(vector) for vector in vectors] != [length] * len(new):
                raise EmbedderError(
                    f"{self._embedder.url} returned vectors of another length; check the model"
                )
            self._known.update(zip(new, vectors, strict=True))
        return self._known

    def _count_missing(self, model: int, perspectives: list[Perspective]) -> int:
        missing = 0
        with self._store.reading() as read:
            for perspective in perspectives:
                embedded, total = read.vectors.coverage(model, perspective=perspective.name)
                missing += total - embedded
        return missing

    def watch(self, is_over: Callable[[], bool]) -> None:
        """Wait while another server embeds the store, and report its progress."""
        self._embedder.load()
        first: int | None = None
        while not is_over():
            missing = self._missing_now()
            if missing is not None:
                first = max(missing, first or 0)
                self.made_elsewhere = first - missing
                self._report(missing)
            time.sleep(_POLL_S)

    def _missing_now(self) -> int | None:
        """Return how many vectors are missing; None as long as nothing is embedded."""
        with self._store.reading() as read:
            perspectives = distinct_perspectives(read.vectors)
            models = {model.identity: model.number for model in read.vectors.models()}
        number = models.get(self._embedder.identity)
        return None if number is None else self._count_missing(number, perspectives)

    def _report(self, total: int) -> None:
        if self._progress is not None:
            total = max(total, self.embedded)
            self._progress(self.made_elsewhere + self.embedded, self.made_elsewhere + total)

    def _remove_unused(self) -> None:
        """Remove the vectors of templates that no perspective has any more."""
        while not self._is_stopped() and not self._store.vectors.remove_vectors(_REMOVE_BATCH_SIZE):
            continue

    def _remove_former_models(self, model: EmbeddingModel) -> None:
        """Remove the vectors of earlier models of the same embedder.

        Another server may use another embedder, so the models of others stay.
        """
        with self._store.reading() as read:
            models = read.vectors.models()
        for former in models:
            if former.url == model.url and former.number != model.number:
                self._remove_model(former)

    def _remove_model(self, model: EmbeddingModel) -> None:
        is_removed = False
        while not self._is_stopped() and not is_removed:
            is_removed = self._store.vectors.remove_vectors(_REMOVE_BATCH_SIZE, model=model.number)


def distinct_perspectives(vectors: "VectorReader") -> list[Perspective]:
    """Return one perspective for each document template, oldest first.

    Perspectives with the same template share their vectors.
    """
    by_document: dict[str, Perspective] = {}
    for perspective in vectors.perspectives():
        by_document.setdefault(perspective.document, perspective)
    return list(by_document.values())


def index_store(store: Store, embedder: IndexEmbedder, *, progress: Progress | None = None) -> int:
    """Embed everything in the store that has no vector; return how many vectors were made.

    While another server does the same, wait for it and do the rest. Raise EmbedderError.
    """
    work = Embedding(store, embedder, progress=progress)
    if not store.vectors.lease(_LEASE, _LEASE_S):
        work.watch(lambda: store.vectors.lease(_LEASE, _LEASE_S))
    with _hold_lease(store):
        work.run()
        while work.is_outdated:
            work.is_outdated = False
            work.run()
    return work.made_elsewhere + work.embedded


@contextmanager
def _hold_lease(store: Store) -> Iterator[bool]:
    """Yield True while this server is the one that embeds the store."""
    is_leased = store.vectors.lease(_LEASE, _LEASE_S)
    try:
        yield is_leased
    except _Stopped:
        # The store may be closed already. The caller of `close` gives up the lease.
        is_leased = False
        raise
    finally:
        if is_leased:
            store.vectors.lease(_LEASE, 0)
