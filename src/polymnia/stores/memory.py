"""The `memory:` store, and what all stores without a database refuse. Tests compare other stores with it."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    Entity,
    EventCounts,
    Mark,
    Passage,
    PassageKey,
    PurgeCounts,
    Rows,
)
from polymnia.stores.contract import Capabilities, ChangeFeed, TableWriter, VectorStore
from polymnia.stores.memory_graph import MemoryGraph, not_supported, passages_of


class MemoryHistory:
    """The history of a graph, read from the list of its changes."""

    def __init__(self, changes: list[Change], marks: dict[str, Mark]) -> None:
        self._changes = changes
        self._marks = marks

    def changes(self, since: int = 0, limit: int | None = None) -> list[Change]:
        found = [each for each in self._changes if each.id > since]
        return found if limit is None else found[:limit]

    def latest(self, query: ChangeQuery) -> list[Change]:
        names = None if query.names is None else self._names_of(query.names)
        found = [
            each
            for each in reversed(self._changes)
            if _is_selected(each, query) and _touches(each, names)
        ]
        return found[: query.limit]

    def actors(self) -> list[str]:
        return sorted({each.actor for each in self._changes})

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        graph = MemoryGraph()
        first: dict[tuple[str, int, str], Author] = {}
        for change in self._changes:
            graph.apply(change)
            author = Author(change.actor, change.at, change.id)
            for entity in graph.find(
                {each.name for each in change.after.entities} | _owners(change.after)
            ):
                for each in passages_of(entity):
                    first.setdefault(_text_key(entity, each), author)
        wanted = set(passages)
        found = graph.find({name for name, _ in wanted})
        written = [
            (entity, each) for entity in found for each in passages_of(entity) if each.key in wanted
        ]
        return {each.key: first[_text_key(entity, each)] for entity, each in written}

    def _names_of(self, names: Collection[str]) -> set[str]:
        """Return these names and every other name of the entities that have or had one of them."""
        cards = [
            each
            for change in self._changes
            for each in (*change.before.entities, *change.after.entities)
        ]
        ids = {each.id for each in cards if each.name in names}
        return {*names, *(each.name for each in cards if each.id in ids)}

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
        creates, updates, deletes = (
            [sum(each) for each in zip(*counts, strict=True)] if counts else (0, 0, 0)
        )
        return EventCounts(creates, updates, deletes, self._changes[-1].id if self._changes else 0)

    def mark(self, name: str) -> Mark | None:
        return self._marks.get(name)

    def set_mark(self, name: str, mark: Mark) -> None:
        self._marks[name] = mark


def _owners(rows: Rows) -> set[str]:
    return {each.entity for each in rows.observations}


def _text_key(entity: Entity, passage: Passage) -> tuple[str, int, str]:
    """Return what identifies a text for its author; a card is written when its entity is created."""
    return entity.id, passage.ordinal, passage.text if passage.ordinal else ""


def _is_selected(change: Change, query: ChangeQuery) -> bool:
    return (
        (query.before is None or change.id < query.before)
        and (query.since is None or change.at >= query.since)
        and (query.until is None or change.at < query.until)
        and (query.actors is None or change.actor in query.actors)
        and (query.operations is None or change.operation in query.operations)
    )


def _touches(change: Change, names: set[str] | None) -> bool:
    """Return True if the change touched something with one of the names; None stands for any."""
    if names is None:
        return True
    sides = (change.before, change.after)
    touched = {each.name for side in sides for each in side.entities}.union(*map(_owners, sides))
    ends = {end for side in sides for each in side.relations for end in (each.source, each.target)}
    return not names.isdisjoint(touched | ends)


class _RecordedGraph(MemoryGraph):
    """A graph that numbers its changes and can be asked for its history."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[str, Mark] = {}

    def apply(self, change: Change) -> int:
        return super().apply(replace(change, id=len(self.applied) + 1))

    @property
    def history(self) -> MemoryHistory:
        return MemoryHistory(self.applied, self._marks)


def _events_of(change: Change) -> tuple[int, int, int]:
    """Return how many rows one change created, updated and deleted, as EventCounts counts them."""
    before, after = _identities(change.before.entities), _identities(change.after.entities)
    created, kept, deleted = after - before, after & before, before - after
    whole = {each.name for each in (*change.before.entities, *change.after.entities)}
    touched = {
        each.entity for side in (change.before, change.after) for each in side.observations
    } - whole
    return (
        len(created) + len(change.after.relations),
        len(kept) + len(touched),
        len(deleted) + len(change.before.relations),
    )


def _identities(entities: Collection[Entity]) -> set[str]:
    return {each.id or each.name for each in entities}


class GraphOnlyStore:
    """What every store that holds only a graph refuses."""

    @property
    def vectors(self) -> VectorStore:
        raise not_supported("vectors")

    @property
    def tables(self) -> TableWriter:
        raise not_supported("copies of its rows")

    def follow(self, wake: Callable[[], None] | None = None) -> ChangeFeed:
        raise not_supported("a change feed")

    def purge(self, before: int) -> PurgeCounts:
        raise not_supported("a trash")


class MemoryStore(GraphOnlyStore):
    """A store that lasts as long as the process."""

    best_batch = 1_000_000
    short_reads = False
    capabilities = Capabilities(history=True)

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._graph = _RecordedGraph()
        self._lock = threading.RLock()

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[MemoryGraph]:
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
