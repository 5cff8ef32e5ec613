"""The contract every store keeps: read a consistent moment, write one change at a time."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol

from polymnia.model import (
    Change,
    Counts,
    Entity,
    Graph,
    Passage,
    PassageKey,
    Relation,
    RelationKey,
    TypeCount,
    WordCounts,
)


class Reader(Protocol):
    """What can be asked of a store; lists come in the order of creation, and only the living are seen."""

    def known(self, names: Collection[str]) -> set[str]:
        """Those of the names that entities have."""

    def find(self, names: Collection[str]) -> list[Entity]:
        """The entities with these names."""

    def entities(self) -> list[Entity]:
        """All of them."""

    def containing(self, folded: str) -> list[Entity]:
        """Entities whose name, type or an observation contains the text, which is folded already."""

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        """The relations with these keys."""

    def touching(self, names: Collection[str]) -> list[Relation]:
        """The relations that start or end at one of the names."""

    def relations(self) -> list[Relation]:
        """All of them."""

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        """A stretch of the entities, or of those of one type."""

    def relations_like(self, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
        """The relations that have what is given; None is anything."""

    def entity_types(self) -> list[TypeCount]:
        """The types entities have, the commonest first, then by name."""

    def relation_types(self) -> list[TypeCount]:
        """The types relations have, the commonest first, then by name."""

    def counts(self) -> Counts:
        """How much there is."""

    def distinct_texts(self) -> tuple[int, int]:
        """How many different texts there are in all, and their length in UTF-8 bytes."""

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        """How common the terms are; a term is a stemmed word as `search.words` makes it."""

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        """The terms from `first` to before `last`, in order, at most so many."""

    def passages(self, terms: Collection[str], limit: int, *, of: Collection[str] | None = None) -> list[Passage]:
        """Passages that have one of the terms: if there are more than asked for, those that match best.

        With `of`, only passages of the entities with these names.
        """

    def named_with(self, terms: Collection[str], limit: int) -> list[str]:
        """Names of entities that have one of the terms in them, those that match best first."""

    def following(self, keys: Collection[PassageKey]) -> dict[PassageKey, Passage]:
        """For observations, what was written next in the same conversation: those that have the same valid time."""

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        """The newest observations from one time to before another, by their valid time or when they were written."""


class Writer(Reader, Protocol):
    """A reader that may also apply a change, once, after everything it read."""

    def apply(self, change: Change) -> None:
        """Make the change part of the transaction.

        An entity whose observations change is updated at the change's time.
        """


class Store(Protocol):
    """One workspace's memory. Safe to use from several threads and several processes."""

    @property
    def url(self) -> str:
        """What `open_store` was given."""

    @property
    def best_batch(self) -> int:
        """How many rows to write in one transaction when there are very many."""

    def look_up(self, name: str) -> Graph:
        """The entity of that name and every relation that touches it: the commonest read, the shortest way."""

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent view for the length of the block."""

    def writing(self) -> AbstractContextManager[Writer]:
        """A transaction: durable when the block ends, undone when it raises."""

    def check(self) -> list[str]:
        """Everything that is wrong with what is on disk, a sentence each; empty when all is well."""

    def tidy(self) -> bool:
        """A short piece of housekeeping that makes later reads quicker; True while there is more to do."""

    def compact(self) -> None:
        """Give back the room that deleted things take, and do all the housekeeping at once; it may take seconds."""

    def close(self) -> None:
        """Let go of files and locks. A store may be closed twice."""
