"""A graph in dictionaries, with its indexes: what the `memory:` store and the file stores read and write."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from operator import itemgetter
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from polymnia.errors import USE_A_DATABASE, NotSupported
from polymnia.model import (
    Change,
    Counts,
    Entity,
    Graph,
    Heading,
    Match,
    Neighbours,
    Observation,
    ObservationSet,
    Passage,
    PassageKey,
    PassageKind,
    Relation,
    RelationKey,
    TypeCount,
    Within,
    WordCounts,
)
from polymnia.search.expression import Expression
from polymnia.search.text import fold
from polymnia.stores.contract import (
    HistoryReader,
    NoteReader,
    Sessions,
    TableReader,
    TrashReader,
    VectorReader,
)
from polymnia.stores.trigrams import TrigramIndex

if TYPE_CHECKING:
    from polymnia.stores.word_index import WordIndex

T = TypeVar("T")

# The relations of each name, by number.
Touching = defaultdict[str, dict[int, Relation]]
# Separates the folded texts of one entity. A query that contains it is compared with each text.
_SEPARATOR = "\x00"


class MemoryGraph:
    """Entities by name and relations by key, each numbered in the order of creation."""

    def __init__(self) -> None:
        self.applied: list[Change] = []
        self._entities: dict[str, tuple[int, Entity]] = {}
        self._relations: dict[RelationKey, tuple[int, Relation]] = {}
        # The relations of each name; None until they are first needed.
        self._touching: Touching | None = defaultdict(dict)
        self._substrings: TrigramIndex | None = None
        self._words: WordIndex | None = None
        self._created = 0

    def known(self, names: Collection[str]) -> set[str]:
        return {name for name in names if name in self._entities}

    def find(self, names: Collection[str]) -> list[Entity]:
        found = [self._entities[name] for name in self.known(names)]
        return _in_order(found)

    def names_of(self, ids: Collection[str]) -> dict[str, str]:
        wanted = set(ids)
        return {each.id: each.name for each in self.entities() if each.id in wanted}

    def get(self, name: str) -> Entity | None:
        """Return the entity with that name."""
        known = self._entities.get(name)
        return known[1] if known else None

    def entities(self) -> list[Entity]:
        return [entity for _, entity in self._entities.values()]

    def containing(self, folded: str) -> list[Entity]:
        near = [self._entities[name][1] for name in self._substring_index().containing(folded)]
        if _SEPARATOR not in folded:
            return near
        return [entity for entity in near if _contains(entity, folded)]

    def headings(self, folded: str) -> list[Heading]:
        found = self.containing(folded)
        return [Heading(self._entities[each.name][0], each.name, each.type) for each in found]

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        return {key: self._relations[key][1] for key in keys if key in self._relations}

    def touching(self, names: Collection[str]) -> list[Relation]:
        found: dict[int, Relation] = {}
        for name in names:
            found.update(self._by_name().get(name, {}))
        return _in_order(list(found.items()))

    def graph_of(self, names: Collection[str]) -> Graph:
        entities = self.find(names)
        return Graph(
            entities, self.touching({entity.name for entity in entities}) if entities else []
        )

    def relations(self) -> list[Relation]:
        return [relation for _, relation in self._relations.values()]

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        found = [entity for entity in self.entities() if kind is None or entity.type == kind]
        return found[offset:] if limit is None else found[offset : offset + limit]

    def outlines(
        self, names: Collection[str] | None = None, kind: str | None = None
    ) -> list[Entity]:
        found = self.entities() if names is None else self.find(names)
        return [
            replace(each, observations=()) for each in found if kind is None or each.type == kind
        ]

    def recent(self, since: int, limit: int) -> list[Entity]:
        found = [each for each in self.outlines() if each.updated_at >= since]
        found.reverse()  # of those updated at the same time, the newest first
        found.sort(key=lambda each: -each.updated_at)
        return found[:limit]

    def relations_like(
        self, source: str | None, target: str | None, kind: str | None
    ) -> list[Relation]:
        ends = [name for name in (source, target) if name is not None]
        near = self.touching(ends[:1]) if ends else self.relations()
        return [each for each in near if _matches(each, source, target, kind)]

    def entity_types(self) -> list[TypeCount]:
        return _type_counts(Counter(entity.type for _, entity in self._entities.values()))

    def relation_types(self) -> list[TypeCount]:
        return _type_counts(Counter(relation.type for _, relation in self._relations.values()))

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
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None = None,
        *,
        every: bool = False,
    ) -> list[Passage]:
        return self._word_index().candidates(terms, limit, within, every=every)

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        return self._word_index().names_with(terms, limit)

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        return self._word_index().neighbours(passages)

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        return []

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        found = [each for entity in self.containing(folded) for each in passages_of(entity)]
        return [
            each for each in found if folded in fold(each.text if each.ordinal else each.words)
        ][:limit]

    def cards(self, names: Collection[str]) -> list[Passage]:
        return [card_of(entity) for entity in self.find(names)]

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        return {entity.name: len(entity.observations) for entity in self.find(names)}

    def match(
        self, expression: Expression, kinds: Collection[PassageKind], limit: int | None = None
    ) -> list[Match]:
        raise not_supported("query expressions")

    @property
    def notes(self) -> NoteReader:
        raise not_supported("notes")

    @property
    def sessions(self) -> Sessions:
        raise not_supported("notes")

    @property
    def vectors(self) -> VectorReader:
        raise not_supported("vectors")

    @property
    def trash(self) -> TrashReader:
        raise not_supported("a trash")

    @property
    def history(self) -> HistoryReader:
        raise not_supported("history")

    @property
    def tables(self) -> TableReader:
        raise not_supported("copies of its rows")

    def clock(self) -> int:
        """Return the time for a change made now, which is later than that of the last change."""
        now = time_ns() // 1000
        return max(now, self.applied[-1].at + 1) if self.applied else now

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        return self._word_index().between(start, end, limit)

    def apply(self, change: Change) -> int:
        """Remove the rows of `before` and add those of `after`. An entity in both keeps its place and observations.

        Observations come first: their sets name an entity as it was called before the change.
        """
        before, after = change.before, change.after
        for relation in before.relations:
            self.unlink(relation.key)
        for each in before.observations:
            self.put(_without_observations(self._entities[each.entity][1], each, change.at))
        for each in after.observations:
            self.put(_with_observations(self._entities[each.entity][1], each, change.at))
        self._replace_entities(before.entities, after.entities)
        for relation in after.relations:
            self.link(relation)
        for entity in self.find(change.touched):
            self.put(replace(entity, updated_at=change.at))
        self.applied.append(change)
        return change.id

    def fill(self, entities: list[Entity], relations: list[Relation]) -> bool:
        """Fill an empty graph quickly. Return False, with nothing done, if two of the entities have the same name."""
        self._entities = {entity.name: (number, entity) for number, entity in enumerate(entities)}
        if len(self._entities) != len(entities):
            self._entities = {}
            return False
        self._created = len(entities)
        numbered = list(enumerate(relations, self._created))
        keys = [(each.source, each.target, each.type) for each in relations]
        self._relations = dict(zip(keys, numbered, strict=True))
        if len(self._relations) != len(
            relations
        ):  # of relations with the same key the first counts
            self._relations = {}
            for key, pair in zip(keys, numbered, strict=True):
                self._relations.setdefault(key, pair)
        self._created += len(relations)
        self._touching = None
        return True

    def put(self, entity: Entity) -> None:
        """Add the entity, or replace the one with the same name."""
        known = self._entities.get(entity.name)
        self._entities[entity.name] = (known[0] if known else self._next(), entity)
        if self._substrings is not None:
            self._substrings.put(self._entities[entity.name][0], entity.name, _fold_entity(entity))
        if self._words is not None:
            self._words.put(self._entities[entity.name][0], entity)

    def link(self, relation: Relation) -> None:
        """Add the relation, or replace the one with the same key."""
        key, touching = relation.key, self._by_name()
        known = self._relations.get(key)
        number = known[0] if known else self._next()
        self._relations[key] = (number, relation)
        touching[relation.source][number] = relation
        touching[relation.target][number] = relation

    def remove(self, name: str) -> None:
        """Remove the entity with that name, and nothing else."""
        number, _ = self._entities.pop(name)
        if self._substrings is not None:
            self._substrings.remove(number)
        if self._words is not None:
            self._words.remove(name)

    def unlink(self, key: RelationKey) -> None:
        """Remove the relation with that key."""
        touching = self._by_name()
        number, relation = self._relations.pop(key)
        for name in {relation.source, relation.target}:
            del touching[name][number]

    def _replace_entities(self, before: Sequence[Entity], after: Sequence[Entity]) -> None:
        """Remove and add entities. One with the same id or, in files without ids, the same name keeps its place."""
        known = {
            key: self._entities[each.name]
            for each in before
            for key in ((each.id, ""), ("", each.name))
        }
        if len(before) == len(after) == 1 and not after[0].id:  # a renamed entity without an id
            known["", after[0].name] = self._entities[before[0].name]
        gone = {each.name for each in before} - {each.name for each in after}
        for name in gone:
            self.remove(name)
        for entity in after:
            same = known.get((entity.id, "") if entity.id else ("", entity.name))
            if same is not None:
                number, old = same
                entity = replace(
                    entity, observations=old.observations, next_ordinal=old.next_ordinal
                )
                self._entities[entity.name] = (number, entity)
            elif entity.name in self._entities:
                self.remove(entity.name)
            self.put(entity)
        if gone and after:
            self._entities = dict(sorted(self._entities.items(), key=lambda item: item[1][0]))

    def _next(self) -> int:
        self._created += 1
        return self._created

    def _by_name(self) -> Touching:
        if self._touching is None:
            self._touching = defaultdict(dict)
            for number, relation in self._relations.values():
                self._touching[relation.source][number] = relation
                self._touching[relation.target][number] = relation
        return self._touching

    def _substring_index(self) -> TrigramIndex:
        """Return the substring index, which is built at the first search and kept current."""
        if self._substrings is None:
            self._substrings = TrigramIndex()
            for name, (number, entity) in self._entities.items():
                self._substrings.put(number, name, _fold_entity(entity))
        return self._substrings

    def _word_index(self) -> "WordIndex":
        """Return the words index, which is built at the first search and kept current."""
        if self._words is None:
            from polymnia.stores.word_index import WordIndex  # few servers need it

            self._words = WordIndex(self._entities.values())
        return self._words


def passages_of(entity: Entity) -> list[Passage]:
    """Return the card of an entity, then its observations."""
    return [card_of(entity), *[observation_of(entity, each) for each in entity.observations]]


def card_of(entity: Entity) -> Passage:
    """Return the card of an entity."""
    return Passage(
        entity.name, entity.type, 0, entity.summary or "", entity.created_at, tags=entity.tags
    )


def observation_of(entity: Entity, observation: Observation) -> Passage:
    """Return an observation of the entity as a passage."""
    times = (observation.created_at, observation.valid_at)
    text = observation.text
    return Passage(
        entity.name,
        entity.type,
        observation.ordinal,
        text,
        *times,
        tags=entity.tags,
        source=observation.source,
    )


def not_supported(what: str) -> NotSupported:
    """Return the error of a store that lacks a capability."""
    return NotSupported(f"this kind of store has no {what}; {USE_A_DATABASE}")


def _in_order(numbered: list[tuple[int, T]]) -> list[T]:
    return [value for _, value in sorted(numbered, key=itemgetter(0))]


def _matches(relation: Relation, source: str | None, target: str | None, kind: str | None) -> bool:
    wanted = ((source, relation.source), (target, relation.target), (kind, relation.type))
    return all(asked is None or asked == has for asked, has in wanted)


def _type_counts(counter: Counter[str]) -> list[TypeCount]:
    ranked = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return [TypeCount(kind, count) for kind, count in ranked]


def _contains(entity: Entity, folded: str) -> bool:
    return any(folded in fold(text) for text in (entity.name, entity.type, *entity.texts))


def _fold_entity(entity: Entity) -> str:
    return fold(_SEPARATOR.join((entity.name, entity.type, *entity.texts)))


def _without_observations(entity: Entity, removed: ObservationSet, at: int) -> Entity:
    gone = {observation.ordinal for observation in removed.observations}
    kept = tuple([each for each in entity.observations if each.ordinal not in gone])
    return replace(entity, observations=kept, updated_at=at)


def _with_observations(entity: Entity, added: ObservationSet, at: int) -> Entity:
    observations = sorted(
        (*entity.observations, *added.observations), key=lambda each: each.ordinal
    )
    next_ordinal = max(entity.next_ordinal, observations[-1].ordinal + 1)
    return replace(
        entity, observations=tuple(observations), next_ordinal=next_ordinal, updated_at=at
    )
