"""Verbs on observations: add them to entities, take them away."""

from collections.abc import Iterator, Sequence
from itertools import count

from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Observation, ObservationDraft, ObservationSet, Rows
from polymnia.stores.contract import Reader


def add(memory: Memory, additions: Sequence[ObservationDraft], *, by: str, skip_repeats: bool) -> list[ObservationSet]:
    """What was added, one result per addition; with `skip_repeats`, texts the entity already has are left out.

    Raises EntityNotFound, and adds nothing at all, when one of the names is unknown.
    """
    return [noted for _, noted in add_to(memory, additions, by=by, skip_repeats=skip_repeats)]


def add_to(
    memory: Memory, additions: Sequence[ObservationDraft], *, by: str, skip_repeats: bool
) -> list[tuple[Entity, ObservationSet]]:
    """The same, each with the entity as it was before."""
    with memory.writing("add_observations", by) as transaction:
        entities = _by_name(transaction.read, additions)
        # A microsecond apart, so that the order they were given in can be told from their times.
        times = count(transaction.at)
        growing = {name: _Growing(entity, times) for name, entity in entities.items()}
        added = []
        for addition in additions:
            if addition.entity not in growing:
                raise EntityNotFound(addition.entity)
            taken = growing[addition.entity].take(addition, skip_repeats=skip_repeats)
            added.append((entities[addition.entity], taken))
        grown = [ObservationSet(name, tuple(each.added)) for name, each in growing.items() if each.added]
        transaction.apply(after=Rows(observations=tuple(grown)))
    return added


def remove(memory: Memory, removals: Sequence[ObservationDraft], *, by: str) -> list[ObservationSet]:
    """What was taken away, by entity; unknown names and texts are passed over."""
    with memory.writing("delete_observations", by) as transaction:
        entities = _by_name(transaction.read, removals)
        doomed: dict[str, set[str]] = {}
        for removal in removals:
            doomed.setdefault(removal.entity, set()).update(removal.texts)
        removed = [_matching(entity, doomed[name]) for name, entity in entities.items()]
        removed = [noted for noted in removed if noted.observations]
        transaction.apply(before=Rows(observations=tuple(removed)))
    return removed


class _Growing:
    """An entity while observations are being added to it."""

    def __init__(self, entity: Entity, times: Iterator[int]) -> None:
        self.added: list[Observation] = []
        self._name = entity.name
        self._next = entity.next_ordinal
        self._texts = set(entity.texts)
        self._times = times

    def take(self, addition: ObservationDraft, *, skip_repeats: bool) -> ObservationSet:
        taken = []
        for text in addition.texts:
            if skip_repeats and text in self._texts:
                continue
            taken.append(Observation(self._next, text, next(self._times), addition.valid_at))
            self._texts.add(text)
            self._next += 1
        self.added.extend(taken)
        return ObservationSet(self._name, tuple(taken))


def _by_name(read: Reader, texts: Sequence[ObservationDraft]) -> dict[str, Entity]:
    return {entity.name: entity for entity in read.find({each.entity for each in texts})}


def _matching(entity: Entity, texts: set[str]) -> ObservationSet:
    return ObservationSet(entity.name, tuple([each for each in entity.observations if each.text in texts]))
