"""Read the graph: entities, observations and relations."""

from collections.abc import Collection
from typing import Protocol

from polymnia.model import Counts, Entity, Relation, RelationKey, TypeCount


class GraphReader(Protocol):
    """Reads of living rows. Lists are in order of creation."""

    def known(self, names: Collection[str]) -> set[str]:
        """Return those of the names that entities have."""

    def find(self, names: Collection[str]) -> list[Entity]:
        """Return the entities with these names."""

    def entities(self) -> list[Entity]:
        """Return every entity."""

    def linked(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        """Return the relations with these keys."""

    def touching(self, names: Collection[str]) -> list[Relation]:
        """Return the relations that start or end at one of the names."""

    def relations(self) -> list[Relation]:
        """Return every relation."""

    def page(self, kind: str | None, offset: int, limit: int | None) -> list[Entity]:
        """Return a page of the entities, or of those of one type."""

    def relations_like(self, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
        """Return the relations with this source, target and type; None matches any."""

    def entity_types(self) -> list[TypeCount]:
        """Return the entity types, the most frequent first, then by name."""

    def relation_types(self) -> list[TypeCount]:
        """Return the relation types, the most frequent first, then by name."""

    def counts(self) -> Counts:
        """Return the number of rows of each kind."""

    def distinct_texts(self) -> tuple[int, int]:
        """Return the number of distinct texts and their total length in UTF-8 bytes."""
