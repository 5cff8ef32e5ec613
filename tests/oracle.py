"""A store without indexes or files, with which tests compare other stores."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from polymnia.model import (
    Author,
    Change,
    ChangeQuery,
    ChangeSize,
    Entity,
    Mark,
    Passage,
    PassageKey,
    RowCounts,
    Rows,
    SupersededFact,
    Within,
    is_expired,
)
from polymnia.model.changes import FactRead
from polymnia.search.terms import terms_of
from polymnia.stores.contract import Capabilities
from polymnia.stores.files.graph import GraphOnlyStore, MemoryGraph
from polymnia.stores.versioned.history import HistoryReader


class MemoryHistory(HistoryReader):
    """The history of a graph, read from the list of its changes."""

    def __init__(self, changes: list[Change], marks: dict[str, Mark]) -> None:
        self._changes = changes
        self._marks = marks

    def reads(self, since: int) -> list[FactRead]:
        return []

    def changes(self, query: ChangeQuery) -> list[Change]:
        names = None if query.names is None else self.all_names(query.names)
        selected = []
        for change in reversed(self._changes):
            if _is_selected(change, query) and _touches(change, names):
                selected.append(change)
        return selected[: query.limit]

    def change_heads(self, query: ChangeQuery) -> list[Change]:
        heads = []
        for change in self.changes(query):
            heads.append(Change(change.operation, change.actor, change.at, id=change.id))
        return heads

    def change_sizes(self, changes: Collection[int]) -> dict[int, ChangeSize]:
        sizes = {}
        for change in self._changes:
            if change.id in changes:
                before, after = change.before, change.after
                sizes[change.id] = ChangeSize(_count(before, after), _count(after, before))
        return sizes

    def actors(self) -> list[str]:
        return sorted({change.actor for change in self._changes})

    def authors(self, passages: Collection[PassageKey]) -> dict[PassageKey, Author]:
        graph = MemoryGraph()
        first: dict[tuple[str, int, str], Author] = {}
        for change in self._changes:
            graph.apply(change)
            author = Author(change.actor, change.at, change.id)
            written = {entity.name for entity in change.after.entities} | _owners(change.after)
            for entity in graph.entities(written):
                for passage in passages_of(entity):
                    first.setdefault(_text_key(entity, passage), author)
        keys = set(passages)
        authors: dict[PassageKey, Author] = {}
        for entity in graph.entities({name for name, _ in keys}):
            for passage in passages_of(entity):
                if passage.key in keys:
                    authors[passage.key] = first[_text_key(entity, passage)]
            for fact in entity.facts:
                key = (entity.name, fact.ordinal)
                if fact.author and key in keys:
                    authors[key] = Author(fact.author, fact.created_at, authors[key].change)
        return authors

    def ended_facts(self, name: str) -> list[SupersededFact]:
        graph = MemoryGraph()
        ended = []
        for change in self._changes:
            before = {entity.id: entity for entity in graph.entities()}
            graph.apply(change)
            after = {entity.id: entity for entity in graph.entities()}
            for number, entity in before.items():
                kept = after[number].facts if number in after else ()
                for fact in entity.facts:
                    if fact not in kept:
                        successor = change.successors.get((entity.name, fact.ordinal), 0)
                        version = (fact, successor, change.id, change.at, change.actor)
                        ended.append((number, SupersededFact(*version, change.operation)))
        versions = []
        for owner in graph.entities([name]):
            living = {}
            for fact in owner.facts:
                living[fact.ordinal] = fact
            for number, past in ended:
                present = living.get(past.old.ordinal)
                is_gone = present is None or (past.successor and is_expired(present))
                if number == owner.id and is_gone:
                    versions.append(past)
        return versions

    def all_names(self, names: Collection[str]) -> set[str]:
        versions: list[Entity] = []
        for change in self._changes:
            versions += [*change.before.entities, *change.after.entities]
        ids = {entity.id for entity in versions if entity.name in names}
        return {*names, *(entity.name for entity in versions if entity.id in ids)}

    def state_at(self, time: int, names: Collection[str] | None = None) -> Rows:
        last = max((change.id for change in self._changes if change.at <= time), default=0)
        return self.state_before(last + 1, names)

    def latest_time(self) -> int:
        return max((change.at for change in self._changes), default=0)

    def state_before(self, change: int, names: Collection[str] | None = None) -> Rows:
        graph = MemoryGraph()
        for earlier in self._changes:
            if earlier.id < change:
                graph.apply(earlier)
        if names is None:
            return Rows(tuple(graph.entities()), (), tuple(graph.relations()))
        entities = graph.entities(names)
        relations = graph.relations({entity.name for entity in entities})
        return Rows(tuple(entities), (), tuple(relations))

    def mark(self, name: str) -> Mark | None:
        return self._marks.get(name)

    def set_mark(self, name: str, mark: Mark) -> None:
        self._marks[name] = mark


def _count(rows: Rows, other_side: Rows) -> RowCounts:
    kept = {entity.id for entity in other_side.entities}
    facts = sum(len(group.facts) for group in rows.facts)
    for entity in rows.entities:
        if entity.id not in kept:
            facts += len(entity.facts)
    return RowCounts(len(rows.entities), facts, len(rows.relations), len(rows.notes))


def _owners(rows: Rows) -> set[str]:
    return {group.entity for group in rows.facts}


def _text_key(entity: Entity, passage: Passage) -> tuple[str, int, str]:
    """Return what identifies a text for its author; a card is written with its entity."""
    return entity.id, passage.ordinal, passage.text if passage.ordinal else ""


def _is_selected(change: Change, query: ChangeQuery) -> bool:
    return (
        (query.before is None or change.id < query.before)
        and change.id > query.after
        and (query.since is None or change.at >= query.since)
        and (query.until is None or change.at < query.until)
        and (query.actors is None or change.actor in query.actors)
        and (query.operations is None or change.operation in query.operations)
        and (query.ids is None or change.id in query.ids)
    )


def _touches(change: Change, names: set[str] | None) -> bool:
    """Return True if the change touched something with one of the names; None stands for any."""
    if names is None:
        return True
    touched: set[str] = set()
    for rows in (change.before, change.after):
        touched |= {entity.name for entity in rows.entities} | _owners(rows)
        for relation in rows.relations:
            touched |= {relation.source, relation.target}
    return not names.isdisjoint(touched)


def passages_of(entity: Entity) -> list[Passage]:
    """Return the card of an entity, then its facts."""
    summary = entity.summary or ""
    card = Passage(entity.name, entity.type, 0, summary, entity.created_at, tags=entity.tags)
    return [card, *(Passage.of(entity, fact) for fact in entity.facts)]


class _RecordedGraph(MemoryGraph):
    """A graph that numbers its changes, has a history, and finds words by reading everything."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[str, Mark] = {}

    def apply(self, change: Change) -> int:
        return super().apply(replace(change, id=len(self.applied) + 1))

    @property
    def history(self) -> MemoryHistory:
        return MemoryHistory(self.applied, self._marks)

    def candidates(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None = None,
        *,
        every: bool = False,
        newest: bool = False,
    ) -> list[Passage]:
        passages = []
        for entity in self.entities():
            for passage in passages_of(entity):
                found = set(terms_of(passage.text if passage.ordinal else passage.words))
                matches = found.issuperset(terms) if every else not found.isdisjoint(terms)
                if matches and terms and (within is None or within.has(passage)):
                    passages.append(passage)
        return passages[:limit]

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        names = [entity.name for entity in self.entities()]
        return [name for name in names if not set(terms).isdisjoint(terms_of(name))][:limit]


class MemoryStore(GraphOnlyStore):
    """A store that lasts as long as the process."""

    best_batch = 1_000_000
    capabilities = Capabilities(history=True)

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._graph = _RecordedGraph()
        self._lock = threading.RLock()

    @contextmanager
    def reading(self, *, may_lag: bool = False) -> Iterator[MemoryGraph]:
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
