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

# The latest changes of an entity that are read for its versions and for causes.
MAX_VERSIONS = 60

How = Literal["same", "changed", "gone", "came"]


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
        now = next(iter(read.entities([name])), None)
        links_now = [] if now is None else read.relations([name])
        rows = history_of(memory, read).state_at(time, names)
        # It may have had another name; its id is the same.
        then = next((one for one in rows.entities if now is None or one.id == now.id), None)
        if then is None:
            return None
        links_then = [link for link in rows.relations if then.name in link.ends]
        query = ChangeQuery(limit=200, names=tuple(names), since=time + 1)
        changes, _ = read_changes(read.history, query, MAX_WHOLE_ROWS)
    causes = _Causes(changes, names)

    present = {fact.ordinal: fact for fact in now.facts} if now else {}
    facts = []
    for fact in then.facts:
        current = present.pop(fact.ordinal, None)
        how: How = "same"
        if current is None:
            how = "gone"
        elif current.text != fact.text:
            how = "changed"
        cause = None if how == "same" else causes.of_fact(fact.ordinal, how)
        facts.append(ComparedFact(how, fact, current, cause))
    for later in present.values():
        facts.append(ComparedFact("came", None, later, causes.of_fact(later.ordinal, "came")))

    keys_now = {link.key for link in links_now}
    keys_then = {link.key for link in links_then}
    links = []
    for link in links_then:
        if link.key in keys_now:
            links.append(ComparedRelation("same", link))
        else:
            links.append(ComparedRelation("gone", link, causes.of_relation(link)))
    for link in links_now:
        if link.key not in keys_then:
            links.append(ComparedRelation("came", link, causes.of_relation(link)))
    return Comparison(then, now, tuple(facts), tuple(links))


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
