"""How much a memory holds, who changed it last, and how much of it can be searched by meaning."""

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import ChangeQuery, Counts
from polymnia.stores.contract import Reader
from polymnia.stores.size import file_bytes


class Statistics(Struct, frozen=True):
    """How many rows a memory has, how many distinct texts, and their size in bytes."""

    counts: Counts
    texts: int
    text_bytes: int


def statistics(memory: Memory) -> Statistics:
    """Return how much the memory holds."""
    with memory.reading() as read:
        counts = read.counts()
        texts: set[str] = set()
        for entity in read.entities():
            texts.update((entity.name, entity.type, *entity.texts))
        for relation in read.relations():
            texts.update(relation.key)
    return Statistics(counts, len(texts), sum(len(text.encode()) for text in texts))


class Coverage(Struct, frozen=True):
    """How many passages have a vector of a model, of how many.

    `is_current` marks the model of the embedder in use.
    """

    model: str
    embedded: int
    total: int
    is_current: bool

    @property
    def waiting(self) -> int:
        """How many passages have no vector yet."""
        return self.total - self.embedded


class Overview(Struct, frozen=True, kw_only=True):
    """How much a memory holds.

    `bytes` are those of its file, in PostgreSQL of its facts, None in memory. `change` is 0 without
    a history.
    """

    counts: Counts
    notes: int
    bytes: int | None
    changed_at: int
    changed_by: str
    change: int
    coverage: tuple[Coverage, ...]


def overview(memory: Memory) -> Overview:
    """Return how much the memory holds, and its last change."""
    with memory.reading() as read:
        change, at, actor = _last_change(memory, read)
        size = file_bytes(memory.store.url)
        if memory.store.capabilities.keeps_deleted:  # a database server has no file of its own
            size = read.stored_bytes()
        return Overview(
            counts=read.counts(),
            notes=read.counts().notes if memory.store.capabilities.notes else 0,
            bytes=size,
            changed_at=at,
            changed_by=actor,
            change=change,
            coverage=tuple(_coverage(memory, read)),
        )


def _last_change(memory: Memory, read: Reader) -> tuple[int, int, str]:
    """Return the id, the time and the actor of the last change, as far as the store knows them."""
    if memory.store.capabilities.history:
        heads = read.history.change_heads(ChangeQuery(limit=1))
        return (heads[0].id, heads[0].at, heads[0].actor) if heads else (0, 0, "")
    return 0, max([entity.updated_at for entity in read.outlines(latest=1)], default=0), ""


def _coverage(memory: Memory, read: Reader) -> list[Coverage]:
    if not memory.store.capabilities.vectors:
        return []
    url = memory.meaning.url if memory.meaning is not None else ""
    return [
        Coverage(model.identity, *read.vectors.coverage(model.number), model.url == url)
        for model in read.vectors.models()
    ]
