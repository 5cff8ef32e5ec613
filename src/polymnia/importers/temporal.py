"""Graphs whose facts hold for a time: from, and perhaps until.

A relation of ours has no such times. So a fact that has some becomes an observation of its subject too, with the time
from which it holds; one that has ended becomes only that, and its text says until when.
"""

from collections.abc import Iterator

from msgspec import Struct

from polymnia.dialects.times import iso_time
from polymnia.engine.intake import Item
from polymnia.importers.base import Report
from polymnia.model import Entity, Observation, Relation

_ID_LENGTH = 8
_MIDNIGHT = "T00:00:00Z"


class Fact(Struct, frozen=True):
    """A fact between two entities, given by their ids, with the times when it began and ended; 0 if unknown."""

    source: str
    target: str
    relation: str
    text: str
    since: int
    until: int
    created_at: int
    origin: str


class TemporalGraph:
    """Entities by their ids, and the facts about them."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._entities: dict[str, Entity] = {}
        self._observations: dict[str, list[Observation]] = {}
        self._relations: list[Relation] = []
        self._names: set[str] = set()

    def add_entity(self, identity: str, entity: Entity) -> None:
        """Add an entity. If another one has its name, a part of its id tells them apart."""
        name = (
            entity.name
            if entity.name not in self._names
            else f"{entity.name} ({identity[:_ID_LENGTH]})"
        )
        self._names.add(name)
        self._entities[identity] = Entity(
            name,
            entity.type,
            summary=entity.summary,
            tags=entity.tags,
            created_at=entity.created_at,
        )

    def name_of(self, identity: str) -> str:
        """Return the name of an entity; empty if there is none with the id."""
        found = self._entities.get(identity)
        return "" if found is None else found.name

    def observe(self, identity: str, text: str, at: int, since: int, origin: str) -> None:
        """Add an observation to an entity."""
        told = self._observations.setdefault(identity, [])
        told.append(Observation(len(told) + 1, text, at, since, origin))

    def add_fact(self, fact: Fact, report: Report, place: str) -> None:
        """Add a fact. Skip it if one of its ends is missing."""
        source, target = self.name_of(fact.source), self.name_of(fact.target)
        if not source or not target or not fact.relation:
            report.skip(place, "a fact without both ends and a type")
            return
        has_ended = fact.until != 0 and fact.until <= self._now
        if not has_ended:
            self._relations.append(Relation(source, target, fact.relation, fact.created_at))
        if fact.text:
            ending = f" (until {_day(fact.until)})" if fact.until else ""
            self.observe(
                fact.source, f"{fact.text}{ending}", fact.created_at, fact.since, fact.origin
            )

    def items(self) -> Iterator[Item]:
        """Yield the entities with their observations, then the relations."""
        for identity, entity in self._entities.items():
            told = tuple(self._observations.get(identity, ()))
            yield Entity(
                entity.name,
                entity.type,
                told,
                next_ordinal=len(told) + 1,
                summary=entity.summary,
                tags=entity.tags,
                created_at=entity.created_at,
            )
        yield from self._relations


def _day(at: int) -> str:
    """Return a time as text, or as a date if it is midnight."""
    return (iso_time(at) or "").removesuffix(_MIDNIGHT)
