"""Versions of an entity: when it changed, and how it differs from now."""

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct

from polymnia.engine.history.changes import (
    MAX_WHOLE_ROWS,
    Difference,
    differences,
    history_of,
    names_of,
    read_changes,
)
from polymnia.engine.memory import Memory
from polymnia.model import Change, ChangeQuery, Entity, Fact, Relation
from polymnia.stores.contract import Reader

# The latest changes of an entity that are read for its versions and for causes.
MAX_VERSIONS = 60

How = Literal["same", "changed", "gone", "came"]


class EntityState(Struct, frozen=True):
    """An entity and the relations that touch it, at a time."""

    entity: Entity | None
    relations: tuple[Relation, ...]


class ComparedFact(Struct, frozen=True):
    """A fact then and now, and the change that made the difference."""

    how: How
    then: Fact | None
    now: Fact | None
    cause: Change | None = None

    @property
    def ordinal(self) -> int:
        fact = self.then or self.now
        assert fact is not None  # one of the two times has it
        return fact.ordinal


class ComparedRelation(Struct, frozen=True):
    """A relation that is the same, gone or came, and the change that made the difference."""

    how: How
    relation: Relation
    cause: Change | None = None


class Comparison(Struct, frozen=True):
    """An entity at a time beside the present one. `now` is None if it is deleted."""

    then: Entity
    now: Entity | None
    facts: tuple[ComparedFact, ...]
    relations: tuple[ComparedRelation, ...]

    def count(self, how: How) -> int:
        """Return how many facts and relations differ in this way."""
        parts: Sequence[ComparedFact | ComparedRelation] = (*self.facts, *self.relations)
        return sum(part.how == how for part in parts)


def versions(memory: Memory, name: str) -> list[Change]:
    """Return the latest changes of an entity without their rows, the oldest first."""
    with memory.reading() as read:
        query = ChangeQuery(limit=MAX_VERSIONS, names=(name,))
        return history_of(memory, read).change_heads(query)[::-1]


def compare(memory: Memory, name: str, time: int) -> Comparison | None:
    """Return an entity as it was at a time, beside now; None if it did not exist then.

    Raise NotSupported, or BadInput for a time that was purged.
    """
    names = names_of(memory, name)
    with memory.reading() as read:
        now = _state_now(read, name)
        then = _state_then(memory, read, names, now.entity, time)
        if then.entity is None:
            return None
        query = ChangeQuery(limit=200, names=tuple(names), since=time + 1)
        changes, _ = read_changes(read.history, query, MAX_WHOLE_ROWS)
    causes = _Causes(changes, names)
    return Comparison(
        then.entity,
        now.entity,
        tuple(_compare_facts(then.entity, now.entity, causes)),
        tuple(_compare_relations(then.relations, now.relations, causes)),
    )


def _state_now(read: Reader, name: str) -> EntityState:
    entities = read.entities([name])
    if not entities:
        return EntityState(None, ())
    return EntityState(entities[0], tuple(read.relations([name])))


def _state_then(
    memory: Memory, read: Reader, names: Collection[str], now: Entity | None, time: int
) -> EntityState:
    """Return the entity at a time. It may have had another name; its id is the same."""
    rows = history_of(memory, read).state_at(time, names)
    for entity in rows.entities:
        if now is None or entity.id == now.id:
            own = [item for item in rows.relations if entity.name in (item.source, item.target)]
            return EntityState(entity, tuple(own))
    return EntityState(None, ())


class _Causes:
    """The changes that made each difference, the latest first."""

    def __init__(self, changes: Sequence[Change], names: Collection[str]) -> None:
        self._facts: dict[int, list[tuple[Change, Difference]]] = {}
        self._relations: dict[tuple[str, str], list[Change]] = {}
        for change in changes:
            for difference in differences(change, names):
                if difference.what == "fact" and difference.name in names:
                    self._facts.setdefault(difference.ordinal, []).append((change, difference))
                elif difference.what == "relation":
                    text = difference.before or difference.after or ""
                    self._relations.setdefault((difference.name, text), []).append(change)

    def of_fact(self, ordinal: int, how: How) -> Change | None:
        causes = self._facts.get(ordinal, [])
        if not causes:
            return None
        latest, earliest = causes[0][0], causes[-1][0]
        return earliest if how == "came" else latest

    def of_relation(self, relation: Relation) -> Change | None:
        causes = self._relations.get((relation.source, f"{relation.type} {relation.target}"), [])
        return causes[0] if causes else None


def _compare_facts(then: Entity, now: Entity | None, causes: _Causes) -> list[ComparedFact]:
    present = {fact.ordinal: fact for fact in now.facts} if now else {}
    versions = []
    for fact in then.facts:
        current = present.pop(fact.ordinal, None)
        how: How = "same"
        if current is None:
            how = "gone"
        elif current.text != fact.text:
            how = "changed"
        cause = None if how == "same" else causes.of_fact(fact.ordinal, how)
        versions.append(ComparedFact(how, fact, current, cause))
    for later in present.values():
        versions.append(ComparedFact("came", None, later, causes.of_fact(later.ordinal, "came")))
    return versions


def _compare_relations(
    then: Sequence[Relation], now: Sequence[Relation], causes: _Causes
) -> list[ComparedRelation]:
    present = {relation.key for relation in now}
    former = {relation.key for relation in then}
    versions = []
    for relation in then:
        if relation.key in present:
            versions.append(ComparedRelation("same", relation))
        else:
            versions.append(ComparedRelation("gone", relation, causes.of_relation(relation)))
    for relation in now:
        if relation.key not in former:
            versions.append(ComparedRelation("came", relation, causes.of_relation(relation)))
    return versions
