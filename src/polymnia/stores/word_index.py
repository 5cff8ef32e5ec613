"""An index in memory of the words of a graph's passages."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from math import log

from polymnia.model import Entity, Neighbours, Observation, Passage, PassageKey, Within, WordCounts
from polymnia.search.terms import terms_of
from polymnia.stores.contract import MAX_CONVERSATION_GAP, MAX_CONVERSATION_STEPS
from polymnia.stores.memory_graph import card_of, observation_of

# The order in which observations were written: creation time, number of the entity, ordinal.
Moment = tuple[int, int, int]


class WordIndex:
    """Which passages contain a term, and in which order observations were written."""

    def __init__(self, numbered: Iterable[tuple[int, Entity]]) -> None:
        self._entities: dict[str, Entity] = {}
        self._numbers: dict[str, int] = {}
        self._having: dict[str, dict[PassageKey, int]] = {}
        self._names_having: dict[str, set[str]] = {}
        self._lengths: dict[PassageKey, int] = {}
        self._words = 0
        self._terms: list[str] | None = None
        # The observations of each source in order of writing. Those without a source have the empty one.
        self._order: defaultdict[str, list[tuple[Moment, PassageKey]]] = defaultdict(list)
        for number, entity in numbered:
            self._add(number, entity)
        self._sort()

    def put(self, number: int, entity: Entity) -> None:
        """Index the entity instead of the one that had its name."""
        known = self._entities.get(entity.name)
        if known is None or card_of(known) != card_of(entity):
            self.remove(entity.name)
            self._add(number, entity)
            self._sort()
            return
        before, after = set(known.observations), set(entity.observations)
        for gone in before - after:
            self._remove_observation(entity.name, gone)
        self._entities[entity.name] = entity
        for new in sorted(after - before, key=lambda each: each.ordinal):
            self._index((entity.name, new.ordinal), terms_of(new.text))
            insort(
                self._order[new.source],
                (self._moment(entity.name, new), (entity.name, new.ordinal)),
            )

    def remove(self, name: str) -> None:
        """Remove the entity with that name."""
        entity = self._entities.get(name)
        if entity is None:
            return
        for observation in entity.observations:
            self._remove_observation(name, observation)
        self._unindex((name, 0), terms_of(card_of(entity).words))
        for term in set(terms_of(name)):
            self._names_having[term].discard(name)
        del self._entities[name]

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        having = {term: len(self._having[term]) for term in terms if self._having.get(term)}
        return WordCounts(len(self._lengths), self._words, having)

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        if self._terms is None:
            self._terms = sorted(self._having, key=_as_bytes)
        start = bisect_left(self._terms, _as_bytes(first), key=_as_bytes)
        end = bisect_left(self._terms, _as_bytes(last), key=_as_bytes)
        living = [term for term in self._terms[start:end] if self._having[term]]
        return living[:limit]

    def candidates(
        self, terms: Collection[str], limit: int, within: Within | None, *, every: bool
    ) -> list[Passage]:
        scores: defaultdict[PassageKey, float] = defaultdict(float)
        for term in terms:
            weight = self._weight(term)
            for key, count in self._having.get(term, {}).items():
                scores[key] += weight * count / (count + 1)
        if every:
            having = [self._having.get(term, {}).keys() for term in terms]
            scores = defaultdict(
                float, {key: scores[key] for key in scores if all(key in keys for keys in having)}
            )
        best = sorted(scores, key=lambda key: (-scores[key], self._numbers[key[0]], key[1]))
        if within is None:
            return [self._passage(key) for key in best[:limit]]
        return [passage for passage in map(self._passage, best) if within.has(passage)][:limit]

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        scores: defaultdict[str, float] = defaultdict(float)
        for term in terms:
            for name in self._names_having.get(term, ()):
                scores[name] += self._weight(term)
        return sorted(scores, key=lambda name: (-scores[name], len(name), self._numbers[name]))[
            :limit
        ]

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        return {
            each.key: self._neighbours_of(each)
            for each in passages
            if each.ordinal > 0 and self._observation(each.key)
        }

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        timed = [
            (observation.valid_at or observation.created_at, *self._moment(name, observation), name)
            for name, entity in self._entities.items()
            for observation in entity.observations
        ]
        newest = sorted([each for each in timed if start <= each[0] < end], reverse=True)
        return [self._passage((each[-1], each[3])) for each in newest[:limit]]

    def _neighbours_of(self, passage: Passage) -> Neighbours:
        order = self._order[passage.source]
        moment = (passage.created_at, self._numbers[passage.entity], passage.ordinal)
        position = bisect_left(order, (moment, passage.key))
        steps = 2 if passage.source else MAX_CONVERSATION_STEPS
        before = [
            self._passage(key) for _, key in reversed(order[max(0, position - steps) : position])
        ]
        after = [self._passage(key) for _, key in order[position + 1 : position + 1 + steps]]
        near = [_same_conversation(passage, each) for each in (before, after)]
        return Neighbours(*[*near[0], None, None][:2], *near[1][:1])

    def _add(self, number: int, entity: Entity) -> None:
        name = entity.name
        self._entities[name] = entity
        self._numbers[name] = number
        self._index((name, 0), terms_of(card_of(entity).words))
        for term in terms_of(name):
            self._names_having.setdefault(term, set()).add(name)
        for observation in entity.observations:
            self._index((name, observation.ordinal), terms_of(observation.text))
            self._order[observation.source].append(
                (self._moment(name, observation), (name, observation.ordinal))
            )

    def _sort(self) -> None:
        for order in self._order.values():
            order.sort()

    def _index(self, key: PassageKey, terms: list[str]) -> None:
        self._lengths[key] = len(terms)
        self._words += len(terms)
        for term, count in Counter(terms).items():
            if term not in self._having:
                self._having[term] = {}
                self._terms = None
            self._having[term][key] = count

    def _unindex(self, key: PassageKey, terms: list[str]) -> None:
        self._words -= self._lengths.pop(key)
        for term in set(terms):
            self._having[term].pop(key, None)

    def _remove_observation(self, name: str, observation: Observation) -> None:
        key = (name, observation.ordinal)
        self._unindex(key, terms_of(observation.text))
        order = self._order[observation.source]
        del order[bisect_left(order, (self._moment(name, observation), key))]

    def _weight(self, term: str) -> float:
        having = len(self._having.get(term, ()))
        return log((len(self._lengths) - having + 0.5) / (having + 0.5) + 1)

    def _moment(self, name: str, observation: Observation) -> Moment:
        return (observation.created_at, self._numbers[name], observation.ordinal)

    def _observation(self, key: PassageKey) -> Observation | None:
        entity = self._entities.get(key[0])
        if entity is None:
            return None
        position = bisect_left(entity.observations, key[1], key=lambda each: each.ordinal)
        found = entity.observations[position : position + 1]
        return found[0] if found and found[0].ordinal == key[1] else None

    def _passage(self, key: PassageKey) -> Passage:
        entity = self._entities[key[0]]
        observation = self._observation(key)
        if observation is None:
            return card_of(entity)
        return observation_of(entity, observation)


def _same_conversation(passage: Passage, others: list[Passage]) -> list[Passage]:
    """Return the other passages in the conversation of this one."""
    if passage.source:
        return others
    at = passage.valid_at or passage.created_at
    return [
        each
        for each in others
        if abs((each.valid_at or each.created_at) - at) <= MAX_CONVERSATION_GAP
    ]


def _as_bytes(term: str) -> bytes:
    return term.encode(errors="surrogatepass")
