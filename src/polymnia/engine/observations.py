"""Verbs on observations: add them to entities, take them away."""

from collections.abc import Iterator, Sequence
from itertools import count

from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Noted, Observation, Rows, Texts
from polymnia.stores.base import Reader


def add(memory: Memory, additions: Sequence[Texts], *, by: str, skip_repeats: bool) -> list[Noted]:
    """What was added, one result per addition; with `skip_repeats`, texts the entity already has are left out.

    Raises EntityNotFound, and adds nothing at all, when one of the names is unknown.
    """
    with memory.writing("add_observations", by) as transaction:
        entities = _by_name(transaction.read, additions)
        # A microsecond apart, so that the order they were given in can be told from their times.
        times = count(transaction.at)
        growing = {name: _Growing(entity, times) for name, entity in entities.items()}
        added = []
        for addition in additions:
            if addition.entity not in growing:
                raise EntityNotFound(addition.entity)
            added.append(growing[addition.entity].take(addition, skip_repeats=skip_repeats))
        grown = [Noted(name, tuple(each.added)) for name, each in growing.items() if each.added]
        transaction.apply(after=Rows(notes=tuple(grown)))
    return added


def remove(memory: Memory, removals: Sequence[Texts], *, by: str) -> list[Noted]:
    """What was taken away, by entity; unknown names and texts are passed over."""
    with memory.writing("delete_observations", by) as transaction:
        entities = _by_name(transaction.read, removals)
        doomed: dict[str, set[str]] = {}
        for removal in removals:
            doomed.setdefault(removal.entity, set()).update(removal.texts)
        removed = [_matching(entity, doomed[name]) for name, entity in entities.items()]
        removed = [noted for noted in removed if noted.observations]
        transaction.apply(before=Rows(notes=tuple(removed)))
    return removed


class _Growing:
    """An entity while observations are being added to it."""

    def __init__(self, entity: Entity, times: Iterator[int]) -> None:
        self.added: list[Observation] = []
        self._name = entity.name
        self._next = entity.next_ordinal
        self._texts = set(entity.texts)
        self._times = times

    def take(self, addition: Texts, *, skip_repeats: bool) -> Noted:
        taken = []
        for text in addition.texts:
            if skip_repeats and text in self._texts:
                continue
            taken.append(Observation(self._next, text, next(self._times), addition.valid_at))
            self._texts.add(text)
            self._next += 1
        self.added.extend(taken)
        return Noted(self._name, tuple(taken))


def _by_name(read: Reader, texts: Sequence[Texts]) -> dict[str, Entity]:
    return {entity.name: entity for entity in read.find({each.entity for each in texts})}


def _matching(entity: Entity, texts: set[str]) -> Noted:
    return Noted(entity.name, tuple([each for each in entity.observations if each.text in texts]))
