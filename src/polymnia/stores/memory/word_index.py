"""An index in memory of the words of a graph's passages."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from math import log

from polymnia.model import Entity, Fact, Neighbours, Passage, PassageKey, Within, WordCounts
from polymnia.search.terms import terms_of
from polymnia.stores.contract import MAX_CONVERSATION_GAP, MAX_CONVERSATION_STEPS
from polymnia.stores.memory.graph import card_of

# The order in which facts were written: creation time, number of the entity, ordinal.
Moment = tuple[int, int, int]


class WordIndex:
    """Which passages contain a term, and in which order facts were written."""

    def __init__(self, numbered: Iterable[tuple[int, Entity]]) -> None:
        self._entities: dict[str, Entity] = {}
        self._numbers: dict[str, int] = {}
        self._having: dict[str, dict[PassageKey, int]] = {}
        self._names_having: dict[str, set[str]] = {}
        self._lengths: dict[PassageKey, int] = {}
        self._words = 0
        self._terms: list[str] | None = None
        # The facts of each source in order of writing; the source may be empty.
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
        before, after = set(known.facts), set(entity.facts)
        for removed in before - after:
            self._remove_fact(entity.name, removed)
        self._entities[entity.name] = entity
        for added in after - before:
            key = (entity.name, added.ordinal)
            self._index(key, terms_of(added.text))
            insort(self._order[added.source], (self._moment(entity.name, added), key))

    def remove(self, name: str) -> None:
        """Remove the entity with that name."""
        entity = self._entities.get(name)
        if entity is None:
            return
        for fact in entity.facts:
            self._remove_fact(name, fact)
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
        keys = set(scores)
        if every:
            for term in terms:
                keys &= self._having.get(term, {}).keys()
        passages: list[Passage] = []
        for key in sorted(keys, key=lambda key: (-scores[key], self._numbers[key[0]], key[1])):
            if len(passages) == limit:
                break
            passage = self._passage(key)
            if within is None or within.has(passage):
                passages.append(passage)
        return passages

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        scores: defaultdict[str, float] = defaultdict(float)
        for term in terms:
            for name in self._names_having.get(term, ()):
                scores[name] += self._weight(term)
        names = sorted(scores, key=lambda name: (-scores[name], len(name), self._numbers[name]))
        return names[:limit]

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        neighbours: dict[PassageKey, Neighbours] = {}
        for passage in passages:
            if passage.ordinal > 0 and self._fact(passage.key):
                neighbours[passage.key] = self._neighbours_of(passage)
        return neighbours

    def facts_between(self, start: int, end: int, limit: int) -> list[Passage]:
        dated: list[tuple[int, Moment, PassageKey]] = []
        for name, entity in self._entities.items():
            for fact in entity.facts:
                at = fact.valid_at or fact.created_at
                if start <= at < end:
                    key = (name, fact.ordinal)
                    dated.append((at, self._moment(name, fact), key))
        dated.sort(reverse=True)
        return [self._passage(key) for _, _, key in dated[:limit]]

    def _neighbours_of(self, passage: Passage) -> Neighbours:
        order = self._order[passage.source]
        moment = (passage.created_at, self._numbers[passage.entity], passage.ordinal)
        position = bisect_left(order, (moment, passage.key))
        steps = 2 if passage.source else MAX_CONVERSATION_STEPS
        earlier = [self._passage(key) for _, key in order[max(0, position - steps) : position]]
        later = [self._passage(key) for _, key in order[position + 1 : position + 1 + steps]]
        before = [*_same_conversation(passage, earlier[::-1]), None, None]
        after = [*_same_conversation(passage, later), None]
        return Neighbours(before[0], before[1], after[0])

    def _add(self, number: int, entity: Entity) -> None:
        name = entity.name
        self._entities[name] = entity
        self._numbers[name] = number
        self._index((name, 0), terms_of(card_of(entity).words))
        for term in terms_of(name):
            self._names_having.setdefault(term, set()).add(name)
        for fact in entity.facts:
            self._index((name, fact.ordinal), terms_of(fact.text))
            self._order[fact.source].append((self._moment(name, fact), (name, fact.ordinal)))

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

    def _remove_fact(self, name: str, fact: Fact) -> None:
        key = (name, fact.ordinal)
        self._unindex(key, terms_of(fact.text))
        order = self._order[fact.source]
        del order[bisect_left(order, (self._moment(name, fact), key))]

    def _weight(self, term: str) -> float:
        having = len(self._having.get(term, ()))
        return log((len(self._lengths) - having + 0.5) / (having + 0.5) + 1)

    def _moment(self, name: str, fact: Fact) -> Moment:
        return (fact.created_at, self._numbers[name], fact.ordinal)

    def _fact(self, key: PassageKey) -> Fact | None:
        entity = self._entities.get(key[0])
        if entity is None:
            return None
        ordinal = key[1]
        position = bisect_left(entity.facts, ordinal, key=lambda fact: fact.ordinal)
        for fact in entity.facts[position : position + 1]:
            if fact.ordinal == ordinal:
                return fact
        return None

    def _passage(self, key: PassageKey) -> Passage:
        entity = self._entities[key[0]]
        fact = self._fact(key)
        if fact is None:
            return card_of(entity)
        return Passage.of(entity, fact)


def _same_conversation(passage: Passage, others: list[Passage]) -> list[Passage]:
    """Return the other passages in the conversation of this one."""
    if passage.source:
        return others
    at = passage.valid_at or passage.created_at
    near = []
    for other in others:
        gap = (other.valid_at or other.created_at) - at
        if abs(gap) <= MAX_CONVERSATION_GAP:
            near.append(other)
    return near


def _as_bytes(term: str) -> bytes:
    return term.encode(errors="surrogatepass")
