"""Verbs on facts: add, replace and remove them, exactly as given.

Texts that differ only in case or spaces are different here: five dialects promise that. `native`
has its own verbs in `engine/facts`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace as with_values

from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, Fact, FactAddition, FactSet, Rows
from polymnia.search.dates import stamped_time


class AddedFacts(Struct, frozen=True):
    """What one draft added, and the entity as it was before; None if there is no such entity."""

    entity: str
    facts: tuple[Fact, ...] = ()
    before: Entity | None = None


class RemovedFacts(Struct, frozen=True):
    """What was removed from an entity, and what it does not have."""

    entity: str
    facts: tuple[Fact, ...]
    missing: tuple[int | str, ...]


def add(
    memory: Memory,
    drafts: Sequence[FactAddition],
    *,
    by: str,
    skip_repeats: bool = False,
    skip_unknown: bool = False,
) -> list[AddedFacts]:
    """Add facts and return them, draft by draft.

    With `skip_repeats`, skip texts that the entity already has. Raise EntityNotFound, and add
    nothing, if there is no entity of that name, unless unknown names are to be skipped.
    """
    added = []
    with memory.writing("add_observations", by) as transaction:
        entities = find_by_name(transaction.read, {draft.entity for draft in drafts})
        # One microsecond apart, so that their times show the order in which they were given.
        times = count(transaction.time())
        additions = {name: _Additions(entity, times) for name, entity in entities.items()}
        for draft in drafts:
            entity = entities.get(draft.entity)
            if entity is None and not skip_unknown:
                raise EntityNotFound(draft.entity)
            new: tuple[Fact, ...] = ()
            if entity is not None:
                new = additions[draft.entity].add(draft, skip_repeats=skip_repeats)
            added.append(AddedFacts(draft.entity, new, entity))
        sets = [FactSet(name, tuple(own.new)) for name, own in additions.items() if own.new]
        transaction.apply(after=Rows(facts=tuple(sets)))
    return added


def replace(memory: Memory, name: str, ordinal: int, text: str, *, by: str) -> Fact:
    """Give a fact another text and return what it was. It counts as created now.

    Raise EntityNotFound, or BadInput if the entity has no such fact.
    """
    with memory.writing("revise", by) as transaction:
        entities = transaction.read.entities([name])
        if not entities:
            raise EntityNotFound(name)
        (entity,) = entities
        for old in entity.facts:
            if old.ordinal == ordinal:
                break
        else:
            raise BadInput(f"{name} has no observation with ordinal {ordinal}")
        new = with_values(old, text=text, created_at=transaction.time(), author="")
        transaction.apply(
            before=Rows(facts=(FactSet(name, (old,)),)),
            after=Rows(facts=(FactSet(name, (new,)),)),
        )
    return old


def remove(
    memory: Memory, removals: Iterable[tuple[str, Sequence[int | str]]], *, by: str
) -> list[RemovedFacts]:
    """Remove facts, given by entity and by ordinal or exact text.

    Others keep their ordinals.
    """
    removals = list(removals)
    removed = []
    with memory.writing("delete_observations", by) as transaction:
        entities = find_by_name(transaction.read, {name for name, _ in removals})
        remaining = {name: _Index(entity) for name, entity in entities.items()}
        ended: dict[str, list[Fact]] = {}
        for name, keys in removals:
            facts: list[Fact] = []
            missing: list[int | str] = []
            for key in dict.fromkeys(keys):
                matches = remaining[name].pop(key) if name in remaining else []
                facts += matches
                if not matches:
                    missing.append(key)
            ended.setdefault(name, []).extend(facts)
            removed.append(RemovedFacts(name, tuple(facts), tuple(missing)))
        # A change names each entity once, though several removals may.
        sets = [FactSet(name, tuple(gone)) for name, gone in ended.items() if gone]
        transaction.apply(before=Rows(facts=tuple(sets)))
    return removed


class _Additions:
    """What one call adds to an entity."""

    def __init__(self, entity: Entity, times: Iterator[int]) -> None:
        self.new: list[Fact] = []
        self._next_ordinal = entity.next_ordinal
        self._texts = set(entity.texts)
        self._times = times

    def add(self, draft: FactAddition, *, skip_repeats: bool) -> tuple[Fact, ...]:
        added: list[Fact] = []
        for text in draft.texts:
            if skip_repeats and text in self._texts:
                continue
            ordinal = self._next_ordinal + len(self.new) + len(added)
            valid_at = draft.valid_at or stamped_time(text)
            added.append(Fact(ordinal, text, next(self._times), valid_at, draft.source))
            self._texts.add(text)
        self.new += added
        return tuple(added)


class _Index:
    """The facts of an entity by ordinal and by text, without those that were taken out."""

    def __init__(self, entity: Entity) -> None:
        self._by_ordinal = {fact.ordinal: fact for fact in entity.facts}
        self._by_text: dict[str, list[int]] = {}
        for fact in entity.facts:
            self._by_text.setdefault(fact.text, []).append(fact.ordinal)

    def pop(self, key: int | str) -> list[Fact]:
        """Take out and return the fact with this ordinal, or all with this text."""
        ordinals = self._by_text.get(key, []) if isinstance(key, str) else [key]
        return [
            self._by_ordinal.pop(ordinal) for ordinal in ordinals if ordinal in self._by_ordinal
        ]
