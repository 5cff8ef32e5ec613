"""Find entities and passages by characters, by query expressions and by terms.

A term is a stemmed word as `search.terms` makes it. Passages are entity cards, observations and vault notes; the notes
of a session are never among them.
"""

from collections.abc import Collection
from typing import Protocol

from polymnia.model import Entity, Match, Neighbours, Passage, PassageKey, PassageKind, Within, WordCounts
from polymnia.search.expression import Expression


class SearchReader(Protocol):
    """Searches over living passages."""

    def containing(self, folded: str) -> list[Entity]:
        """Return the entities whose name, type or an observation contains the text, which is already case-folded."""

    def match(self, expression: Expression, kinds: Collection[PassageKind], limit: int | None = None) -> list[Match]:
        """Return the passages of these kinds that match the expression, best first.

        Raise NotSupported in a store without `capabilities.match`.
        """

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        """Return how many passages contain each term, and the totals BM25 needs."""

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        """Return up to `limit` indexed terms from `first` to before `last`, in order."""

    def candidates(
        self, terms: Collection[str], limit: int, within: Within | None = None, *, every: bool = False
    ) -> list[Passage]:
        """Return the `limit` best passages by BM25 that contain one of the terms, or every one of them."""

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        """Return names of entities that contain one of the terms, best matches first."""

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        """Return what was written around each observation in its conversation.

        A conversation is the observations with the same valid time; those without a valid time form one, in order of
        writing.
        """

    def passages_by_id(self, ids: Collection[int]) -> list[Passage]:
        """Return the living passages with these ids, in no particular order."""

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        """Return passages whose name, type, key or text contains the text, which is already case-folded."""

    def cards(self, names: Collection[str]) -> list[Passage]:
        """Return the cards of the entities with these names."""

    def observation_counts(self, names: Collection[str]) -> dict[str, int]:
        """Return how many observations the entities with these names have."""

    def between(self, start: int, end: int, limit: int) -> list[Passage]:
        """Return the newest observations with start <= time < end, by valid time or else by creation time."""
