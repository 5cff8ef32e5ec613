"""Verbs on observations: add them to entities, remove them."""

from collections.abc import Iterator, Sequence
from itertools import count

from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Observation, ObservationDraft, ObservationSet, Rows
from polymnia.search.dates import stamped_time
from polymnia.stores.contract import Reader


def add(
    memory: Memory, additions: Sequence[ObservationDraft], *, by: str, skip_repeats: bool
) -> list[ObservationSet]:
    """Add observations and return them, one set per addition. With `skip_repeats`, skip texts the entity already has.

    Raise EntityNotFound, and add nothing, if one of the names is unknown.
    """
    return [added for _, added in add_to(memory, additions, by=by, skip_repeats=skip_repeats)]


def add_to(
    memory: Memory, additions: Sequence[ObservationDraft], *, by: str, skip_repeats: bool
) -> list[tuple[Entity, ObservationSet]]:
    """Do the same as `add`, and return each set with its entity as it was before."""
    with memory.writing("add_observations", by) as transaction:
        entities = _by_name(transaction.read, additions)
        # One microsecond apart, so that their times show the order in which they were given.
        times = count(transaction.at)
        additions_to = {name: _Additions(entity, times) for name, entity in entities.items()}
        added = []
        for addition in additions:
            if addition.entity not in entities:
                raise EntityNotFound(addition.entity)
            new = additions_to[addition.entity].add(addition, skip_repeats=skip_repeats)
            added.append((entities[addition.entity], new))
        sets = [
            ObservationSet(name, tuple(each.added))
            for name, each in additions_to.items()
            if each.added
        ]
        transaction.apply(after=Rows(observations=tuple(sets)))
    return added


def remove(
    memory: Memory, removals: Sequence[ObservationDraft], *, by: str
) -> list[ObservationSet]:
    """Remove observations by their texts and return them, by entity. Ignore unknown names and texts."""
    with memory.writing("delete_observations", by) as transaction:
        entities = _by_name(transaction.read, removals)
        unwanted: dict[str, set[str]] = {}
        for removal in removals:
            unwanted.setdefault(removal.entity, set()).update(removal.texts)
        removed = [_with_texts(entity, unwanted[name]) for name, entity in entities.items()]
        removed = [each for each in removed if each.observations]
        transaction.apply(before=Rows(observations=tuple(removed)))
    return removed


class _Additions:
    """What one call adds to an entity."""

    def __init__(self, entity: Entity, times: Iterator[int]) -> None:
        self.added: list[Observation] = []
        self._name = entity.name
        self._next = entity.next_ordinal
        self._texts = set(entity.texts)
        self._times = times

    def add(self, addition: ObservationDraft, *, skip_repeats: bool) -> ObservationSet:
        new = []
        for text in addition.texts:
            if skip_repeats and text in self._texts:
                continue
            valid_at = addition.valid_at or stamped_time(text)
            new.append(Observation(self._next, text, next(self._times), valid_at, addition.source))
            self._texts.add(text)
            self._next += 1
        self.added.extend(new)
        return ObservationSet(self._name, tuple(new))


def _by_name(read: Reader, drafts: Sequence[ObservationDraft]) -> dict[str, Entity]:
    return {entity.name: entity for entity in read.find({each.entity for each in drafts})}


def _with_texts(entity: Entity, texts: set[str]) -> ObservationSet:
    return ObservationSet(
        entity.name, tuple([each for each in entity.observations if each.text in texts])
    )
