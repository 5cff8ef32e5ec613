"""Keep vectors current: embed new passages in the background, one server at a time, or all at once on request."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

from polymnia.errors import BadInput, EmbedderError, StoreBusy, StoreError
from polymnia.model import EmbeddingModel, Perspective
from polymnia.search.templates import uses_name
from polymnia.stores.contract import Store, VectorReader

logger = logging.getLogger(__name__)

# Indexing starts this long after a write, so that a burst of writes is indexed together.
INDEX_DELAY_S = 1.0
# When to look again after another server had the lease, or the embedder failed.
RETRY_INDEXING_S = 30.0
_REMOVE_BATCH_SIZE = 5_000
# Texts of one run whose vectors are kept, because the same text often comes again soon.
_KEPT_TEXTS = 2_000
# One server embeds a store at a time. It renews the lease with every batch; a killed one loses it after this long.
_LEASE, _LEASE_S = "embedding", 60.0

Progress = Callable[[int, int], None]
# The passage id up to which everything is embedded, by the number of the model and the document template.
Watermarks = dict[tuple[int, str], int]


class IndexEmbedder(Protocol):
    """The embedder as the indexer uses it."""

    url: str
    idle: float

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    def embed(self, texts: list[str]) -> list[bytes]: ...

    def release_if_idle(self) -> None: ...


class IndexedMemory(Protocol):
    """A memory to index. Its store stays open as long as this object is in use."""

    store: Store


class Indexer:
    """A thread that embeds new passages of memories, started by the first request."""

    def __init__(self, embedder: IndexEmbedder) -> None:
        self._embedder = embedder
        self._wake = threading.Condition()
        self._requested: WeakSet[IndexedMemory] = WeakSet()
        self._indexed: WeakKeyDictionary[IndexedMemory, Watermarks] = WeakKeyDictionary()
        self._thread: threading.Thread | None = None
        self._is_working = False
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

    def settle(self, timeout: float) -> bool:
        """Wait until everything that was requested is indexed or has failed. Return False after `timeout` seconds."""
        with self._wake:
            return self._wake.wait_for(
                lambda: not (self._is_working or len(self._requested)), timeout
            )

    def close(self) -> None:
        """Stop after the batch that is being embedded."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._stopped:
            for memory in self._next_memories():
                self._index(memory)
            with self._wake:
                self._is_working = False
                self._wake.notify_all()
            self._embedder.release_if_idle()

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
            memory.store, self._embedder, above=above, is_stopped=lambda: self._stopped
        )
        try:
            with _hold_lease(memory.store) as is_leased:
                if is_leased:
                    self._indexed[memory] = work.run()
                    if work.is_outdated:
                        self.request(memory)
                    return
        except (EmbedderError, StoreError) as exc:
            logger.info("searching by words alone for now: %s", exc)
        self._retry_later(ref(memory))

    def _retry_later(self, memory: Callable[[], IndexedMemory | None]) -> None:
        timer = threading.Timer(RETRY_INDEXING_S, self._retry, [memory])
        timer.daemon = True
        timer.start()

    def _retry(self, memory: Callable[[], IndexedMemory | None]) -> None:
        if (found := memory()) is not None and not self._stopped:
            self.request(found)


class Embedding:
    """One run over a store: embed what has no vector, the newest first, and remove unused vectors."""

    def __init__(
        self,
        store: Store,
        embedder: IndexEmbedder,
        *,
        above: Watermarks | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        progress: Progress | None = None,
    ) -> None:
        self.embedded = 0
        # True if perspectives were changed or removed while they were embedded.
        self.is_outdated = False
        self._store = store
        self._embedder = embedder
        self._above = dict(above or {})
        self._is_stopped = is_stopped
        self._progress = progress
        self._known: dict[str, bytes] = {}

    def run(self) -> Watermarks:
        """Return the passage ids up to which everything is embedded now."""
        with self._store.reading() as read:
            top = read.vectors.last_passage()
            perspectives = distinct_perspectives(read.vectors)
            documents = {each.document for each in perspectives}
            self._above = {
                key: passage for key, passage in self._above.items() if key[1] in documents
            }
            self._forget_renamed(read.vectors, perspectives)
            is_complete = self._is_complete(read.vectors, perspectives, top)
        if is_complete:
            self._remove_unused()
            return self._above
        model = self._store.vectors.add_model(
            self._embedder.identity, self._embedder.url, self._embedder.dimension
        )
        total = self._count(model, perspectives)
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

    def _is_complete(
        self, vectors: VectorReader, perspectives: list[Perspective], top: int
    ) -> bool:
        """Return True if nothing is pending, without loading the embedder to find out."""
        models = [each for each in vectors.models() if each.url == self._embedder.url]
        if not top or len(models) != 1:
            return not top
        behind = [
            each
            for each in perspectives
            if self._above.get((models[0].number, each.document), 0) < top
        ]
        return not any(self._pending(vectors, models[0], each) for each in behind)

    def _forget_renamed(self, vectors: VectorReader, perspectives: list[Perspective]) -> None:
        """Check all passages again if some lost their vectors because their entity was renamed."""
        for perspective in perspectives:
            for model, document in [key for key in self._above if key[1] == perspective.document]:
                embedded, total = vectors.coverage(model, perspective=perspective.name)
                if uses_name(document) and embedded < total:
                    del self._above[model, document]

    def _pending(
        self,
        vectors: VectorReader,
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
        """Embed what is pending in one perspective. Return False if the run was stopped before its end."""
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
        found = [(passage, vectors[text]) for passage, text in batch]
        self._store.vectors.put(
            model.number, found, perspective=perspective.name, document=perspective.document
        )
        self._store.vectors.lease(_LEASE, _LEASE_S)
        self.embedded += len(batch)

    def _vectors(self, texts: list[str]) -> dict[str, bytes]:
        """Return the vectors of texts. Embed each text once, and reuse recent vectors."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if len(self._known) > _KEPT_TEXTS:
                self._known = {text: self._known[text] for text in texts if text in self._known}
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return self._known

    def _count(self, model: EmbeddingModel, perspectives: list[Perspective]) -> int:
        """Return how many vectors are missing, if progress is reported."""
        if self._progress is None:
            return 0
        with self._store.reading() as read:
            counts = [
                read.vectors.coverage(model.number, perspective=each.name) for each in perspectives
            ]
        return sum(total - embedded for embedded, total in counts)

    def _report(self, total: int) -> None:
        if self._progress is not None:
            self._progress(self.embedded, max(total, self.embedded))

    def _remove_unused(self) -> None:
        """Remove the vectors of templates that no perspective has any more."""
        while not self._is_stopped() and not self._store.vectors.remove_unused(_REMOVE_BATCH_SIZE):
            continue

    def _remove_former_models(self, model: EmbeddingModel) -> None:
        """Remove the vectors of earlier models of the same embedder. Another server may use another embedder."""
        with self._store.reading() as read:
            former = [
                each
                for each in read.vectors.models()
                if each.url == model.url and each.number != model.number
            ]
        for each in former:
            while not self._is_stopped() and not self._store.vectors.remove_model(
                each.number, _REMOVE_BATCH_SIZE
            ):
                continue


def distinct_perspectives(vectors: VectorReader) -> list[Perspective]:
    """Return a perspective for each document template, oldest first: those with the same template share vectors."""
    found: dict[str, Perspective] = {}
    for each in vectors.perspectives():
        found.setdefault(each.document, each)
    return list(found.values())


def index_store(store: Store, embedder: IndexEmbedder, *, progress: Progress | None = None) -> int:
    """Embed everything in the store that has no vector; return how many vectors were made.

    Raise StoreBusy while another server does the same, EmbedderError when the embedder fails.
    """
    work = Embedding(store, embedder, progress=progress)
    with _hold_lease(store) as is_leased:
        if not is_leased:
            raise StoreBusy(f"another server is embedding {store.url}; wait until it is done")
        work.run()
        while work.is_outdated:
            work.is_outdated = False
            work.run()
    return work.embedded


@contextmanager
def _hold_lease(store: Store) -> Iterator[bool]:
    """Yield True while this server is the one that embeds the store."""
    is_leased = store.vectors.lease(_LEASE, _LEASE_S)
    try:
        yield is_leased
    finally:
        if is_leased:
            store.vectors.release(_LEASE)
