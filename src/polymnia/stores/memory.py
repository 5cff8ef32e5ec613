"""The graph in dictionaries: the `memory:` store, the oracle of the tests, and what file stores hold."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from polymnia.model import (
    Change,
    Counts,
    Entity,
    Graph,
    Neighbours,
    ObservationSet,
    Passage,
    PassageKey,
    Relation,
    RelationKey,
    Rows,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.text import fold

if TYPE_CHECKING:
    from polymnia.stores.words import WordIndex

T = TypeVar("T")

# For each name its relations by number.
Touching = defaultdict[str, dict[int, Relation]]
# After very many were read at once the first questions look through all of them: that is quicker than to sort them by
# name, and the first answer comes sooner.
_MOST_PASSES = 3

# Between the folded texts of one entity; a query that contains it is checked text by text.
_SEAM = "\x00"


class MemoryGraph:
    """Entities by name and relations by key, each numbered in the order of creation."""

    notes = None

    def __init__(self) -> None:
        self.applied: list[Change] = []
        # Asked before a change is made: a store that cannot keep it raises.
        self.admit: Callable[[Change], None] | None = None
        self._entities: dict[str, tuple[int, Entity]] = {}
        self._relations: dict[RelationKey, tuple[int, Relation]] = {}
        # The relations of each name; None until they are worth the time, see `_relations_of`.
        self._touching: Touching | None = defaultdict(dict)
        self._passes = 0
        self._folded: dict[str, str] | None = None
        self._words: WordIndex | None = None
        self._created = 0

    def known(self, names: Collection[str]) -> set[str]:
        return {name for name in names if name in self._entities}

    def find(self, names: Collection[str]) -> list[Entity]:
        found = [self._entities[name] for name in self.known(names)]
        return _in_order(found)

    def look_up(self, name: str) -> Graph:
        """The entity of that name and every relation that touches it."""
        known = self._entities.get(name)
        return Graph([known[1]], self._relations_of(name)) if known else Graph([], [])

    def get(self, name: str) -> Entity | None:
        """The entity of that name."""
        known = self._entities.get(name)
        return known[1] if known else None

    def entities(self) -> list[Entity]:
        return [entity for _, entity in self._entities.values()]

    def containing(self, folded: str) -> list[Entity]:
        texts = self._folded_texts()
        near = [self._entities[name][1] for name, text in texts.items() if folded in text]
        if _SEAM not in folded:
            return near
        return [entity for entity in near if _contains(entity, folded)]

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        return {key: self._relations[key][1] for key in keys if key in self._relations}

    def touching(self, names: Collection[str]) -> list[Relation]:
        found: dict[int, Relation] = {}
        for name in names:
            found.update(self._by_name().get(name, {}))
        return _in_order(list(found.items()))

    def relations(self) -> list[Relation]:
        return [relation for _, relation in self._relations.values()]

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        found = [entity for entity in self.entities() if kind is None or entity.type == kind]
        return found[offset:] if limit is None else found[offset : offset + limit]

    def relations_like(self, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
        ends = [name for name in (source, target) if name is not None]
        near = self.touching(ends[:1]) if ends else self.relations()
        return [each for each in near if _matches(each, source, target, kind)]

    def entity_types(self) -> list[TypeCount]:
        return _counted(Counter(entity.type for _, entity in self._entities.values()))

    def relation_types(self) -> list[TypeCount]:
        return _counted(Counter(relation.type for _, relation in self._relations.values()))

    def distinct_texts(self) -> tuple[int, int]:
        texts: set[str] = set()
        for _, entity in self._entities.values():
            texts.update((entity.name, entity.type, *entity.texts))
        for key in self._relations:
            texts.update(key)
        return len(texts), sum(len(text.encode()) for text in texts)

    def counts(self) -> Counts:
        observations = sum(len(entity.observations) for _, entity in self._entities.values())
        return Counts(len(self._entities), observations, len(self._relations))

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        return self._word_index().word_counts(terms)

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        return self._word_index().vocabulary(first, last, limit)

    def candidates(
        self, terms: Collection[str], limit: int, within: Within | None = None, *, every: bool = False
    ) -> list[Passage]:
        return self._word_index().candidates(terms, limit, within, every=every)

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        return self._word_index().names_with(terms, limit)

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        return {name: len(self._entities[name][1].observations) for name in names if name in self._entities}

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        return self._word_index().neighbours(passages)

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        return []

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        return self._word_index().between(start, end, limit)

    def apply(self, change: Change) -> None:
        """Take `before` out and put `after` in; an entity in both keeps its place and its observations."""
        if self.admit is not None:
            self.admit(change)
        stays = {entity.name for entity in change.before.entities} & {entity.name for entity in change.after.entities}
        self._take_out(change.before, change.at, stays)
        self._put_in(change.after, change.at, stays)
        self.applied.append(change)

    def fill(self, entities: list[Entity], relations: list[Relation]) -> bool:
        """Put very many into an empty graph; False, with nothing done, when two of the entities share a name."""
        self._entities = {entity.name: (number, entity) for number, entity in enumerate(entities)}
        if len(self._entities) != len(entities):
            self._entities = {}
            return False
        self._created = len(entities)
        numbered = list(enumerate(relations, self._created))
        keys = [(each.source, each.target, each.type) for each in relations]
        self._relations = dict(zip(keys, numbered, strict=True))
        if len(self._relations) != len(relations):  # the first of those that say the same counts
            self._relations = {}
            for key, pair in zip(keys, numbered, strict=True):
                self._relations.setdefault(key, pair)
        self._created += len(relations)
        self._touching = None
        return True

    def put(self, entity: Entity) -> None:
        """Add the entity, or put it in the place of the one that has its name."""
        known = self._entities.get(entity.name)
        self._entities[entity.name] = (known[0] if known else self._next(), entity)
        if self._folded is not None:
            self._folded[entity.name] = _folded(entity)
        if self._words is not None:
            self._words.put(self._entities[entity.name][0], entity)

    def link(self, relation: Relation) -> None:
        """Add the relation, or put it in the place of the one that has its key."""
        key, touching = relation.key, self._by_name()
        known = self._relations.get(key)
        number = known[0] if known else self._next()
        self._relations[key] = (number, relation)
        touching[relation.source][number] = relation
        touching[relation.target][number] = relation

    def remove(self, name: str) -> None:
        """Take the entity of that name out, and nothing else."""
        del self._entities[name]
        if self._folded is not None:
            del self._folded[name]
        if self._words is not None:
            self._words.remove(name)

    def unlink(self, key: RelationKey) -> None:
        """Take the relation with that key out."""
        touching = self._by_name()
        number, relation = self._relations.pop(key)
        for name in {relation.source, relation.target}:
            del touching[name][number]

    def _take_out(self, rows: Rows, at: int, stays: set[str]) -> None:
        for entity in rows.entities:
            if entity.name not in stays:
                self.remove(entity.name)
        for noted in rows.observations:
            gone = {observation.ordinal for observation in noted.observations}
            entity = self._entities[noted.entity][1]
            kept = tuple(each for each in entity.observations if each.ordinal not in gone)
            self.put(replace(entity, observations=kept, updated_at=at))
        for relation in rows.relations:
            self.unlink(relation.key)

    def _put_in(self, rows: Rows, at: int, stays: set[str]) -> None:
        for entity in rows.entities:
            if entity.name in stays:
                known = self._entities[entity.name][1]
                entity = replace(entity, observations=known.observations, next_ordinal=known.next_ordinal)
            self.put(entity)
        for noted in rows.observations:
            self.put(_with_notes(self._entities[noted.entity][1], noted, at))
        for relation in rows.relations:
            self.link(relation)

    def _next(self) -> int:
        self._created += 1
        return self._created

    def _relations_of(self, name: str) -> list[Relation]:
        """In the order of creation: numbers only grow, and one that is replaced keeps its place."""
        if self._touching is None and self._passes < _MOST_PASSES:
            self._passes += 1
            return [each for _, each in self._relations.values() if name in (each.source, each.target)]
        return list(self._by_name().get(name, {}).values())

    def _by_name(self) -> Touching:
        if self._touching is None:
            self._touching = defaultdict(dict)
            for number, relation in self._relations.values():
                self._touching[relation.source][number] = relation
                self._touching[relation.target][number] = relation
        return self._touching

    def _folded_texts(self) -> dict[str, str]:
        """Made at the first search and kept current from then on."""
        if self._folded is None:
            self._folded = {name: _folded(entity) for name, (_, entity) in self._entities.items()}
        return self._folded

    def _word_index(self) -> "WordIndex":
        """Made at the first search and kept current from then on."""
        if self._words is None:
            from polymnia.stores.words import WordIndex  # few servers are asked for words

            self._words = WordIndex(self._entities.values())
        return self._words


class MemoryStore:
    """A store that lasts as long as the process."""

    best_batch = 1_000_000
    short_reads = True
    vectors = None

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._graph = MemoryGraph()
        self._lock = threading.RLock()

    @property
    def changes(self) -> list[Change]:
        """Every change made, oldest first."""
        return list(self._graph.applied)

    def look_up(self, name: str) -> Graph:
        with self._lock:
            return self._graph.look_up(name)

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

    def tidy(self) -> bool:
        return False

    def compact(self) -> None:
        """There is never anything to give back."""

    def close(self) -> None:
        """Nothing to let go of."""


def _in_order(numbered: list[tuple[int, T]]) -> list[T]:
    return [value for _, value in sorted(numbered, key=itemgetter(0))]


def _matches(relation: Relation, source: str | None, target: str | None, kind: str | None) -> bool:
    wanted = ((source, relation.source), (target, relation.target), (kind, relation.type))
    return all(asked is None or asked == has for asked, has in wanted)


def _counted(counter: Counter[str]) -> list[TypeCount]:
    ranked = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return [TypeCount(kind, count) for kind, count in ranked]


def _contains(entity: Entity, folded: str) -> bool:
    return any(folded in fold(text) for text in (entity.name, entity.type, *entity.texts))


def _folded(entity: Entity) -> str:
    return fold(_SEAM.join((entity.name, entity.type, *entity.texts)))


def _with_notes(entity: Entity, noted: ObservationSet, at: int) -> Entity:
    observations = sorted((*entity.observations, *noted.observations), key=lambda each: each.ordinal)
    next_ordinal = max(entity.next_ordinal, observations[-1].ordinal + 1)
    return replace(entity, observations=tuple(observations), next_ordinal=next_ordinal, updated_at=at)
