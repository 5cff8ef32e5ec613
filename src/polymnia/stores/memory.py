"""The `memory:` store, and what all stores without a database refuse. Tests compare other stores with it."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from polymnia.model import Change, Entity, EventCounts, Mark, PurgeCounts, Rows
from polymnia.stores.contract import Capabilities, ChangeFeed, VectorStore
from polymnia.stores.memory_graph import MemoryGraph, not_supported


class MemoryHistory:
    """The history of a graph, read from the list of its changes."""

    def __init__(self, changes: list[Change], marks: dict[str, Mark]) -> None:
        self._changes = changes
        self._marks = marks

    def changes(self, since: int = 0, limit: int | None = None) -> list[Change]:
        found = [each for each in self._changes if each.id > since]
        return found if limit is None else found[:limit]

    def at(self, time: int, names: Collection[str] | None = None) -> Rows:
        graph = MemoryGraph()
        for change in self._changes:
            if change.at <= time:
                graph.apply(change)
        if names is None:
            return Rows(tuple(graph.entities()), (), tuple(graph.relations()))
        found = graph.find(names)
        return Rows(tuple(found), (), tuple(graph.touching({each.name for each in found})))

    def count_events(self, since: int = 0) -> EventCounts:
        counts = [_events_of(change) for change in self._changes if change.id > since]
        creates, updates, deletes = [sum(each) for each in zip(*counts, strict=True)] if counts else (0, 0, 0)
        return EventCounts(creates, updates, deletes, self._changes[-1].id if self._changes else 0)

    def mark(self, name: str) -> Mark | None:
        return self._marks.get(name)

    def set_mark(self, name: str, mark: Mark) -> None:
        self._marks[name] = mark


class _RecordedGraph(MemoryGraph):
    """A graph that numbers its changes and can be asked for its history."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[str, Mark] = {}

    def apply(self, change: Change) -> None:
        super().apply(replace(change, id=len(self.applied) + 1))

    @property
    def history(self) -> MemoryHistory:
        return MemoryHistory(self.applied, self._marks)


def _events_of(change: Change) -> tuple[int, int, int]:
    """Return how many rows one change created, updated and deleted, as EventCounts counts them."""
    before, after = _identities(change.before.entities), _identities(change.after.entities)
    created, kept, deleted = after - before, after & before, before - after
    whole = {each.name for each in (*change.before.entities, *change.after.entities)}
    touched = {each.entity for side in (change.before, change.after) for each in side.observations} - whole
    return (
        len(created) + len(change.after.relations),
        len(kept) + len(touched),
        len(deleted) + len(change.before.relations),
    )


def _identities(entities: Collection[Entity]) -> set[str]:
    return {each.id or each.name for each in entities}


class GraphOnlyStore:
    """What every store refuses that holds only a graph."""

    @property
    def vectors(self) -> VectorStore:
        raise not_supported("vectors")

    def follow(self) -> ChangeFeed:
        raise not_supported("a change feed")

    def purge(self, before: int) -> PurgeCounts:
        raise not_supported("a trash")


class MemoryStore(GraphOnlyStore):
    """A store that lasts as long as the process."""

    best_batch = 1_000_000
    short_reads = True
    capabilities = Capabilities(history=True)

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._graph = _RecordedGraph()
        self._lock = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[MemoryGraph]:
        with self._lock:
            yield self._graph

    @contextmanager
    def writing(self) -> Iterator[MemoryGraph]:
        with self._lock:
            yield self._graph

    def check(self) -> list[str]:
        return []

    def compact(self) -> None:
        """Do nothing: there is never space to give back."""

    def close(self) -> None:
        """Do nothing: there are no files."""
