"""Graphs whose facts hold from a time, and perhaps until one.

Our relations have no such times. So a dated fact also becomes a fact of its subject, with
the time from which it holds. One that has ended becomes only that, and its text says until when.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Report
from polymnia.model import Entity, Fact, Relation
from polymnia.search.times import iso_time


class TemporalFact(Struct, frozen=True):
    """A fact between two entities, given by their ids. A time is 0 if it is unknown."""

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
        self._facts: dict[str, list[Fact]] = {}
        self._relations: list[Relation] = []
        self._names: set[str] = set()

    def add_entity(self, identity: str, entity: Entity) -> None:
        """Add an entity. If another one has its name, a part of its id tells them apart."""
        id_length = 8
        if entity.name in self._names:
            entity = replace(entity, name=f"{entity.name} ({identity[:id_length]})")
        self._names.add(entity.name)
        self._entities[identity] = entity

    def name_of(self, identity: str) -> str:
        """Return the name of an entity; empty if there is none with the id."""
        entity = self._entities.get(identity)
        return entity.name if entity else ""

    def observe(self, identity: str, text: str, at: int, since: int, origin: str) -> None:
        """Add a fact to an entity."""
        facts = self._facts.setdefault(identity, [])
        facts.append(Fact(len(facts) + 1, text, at, since, origin))

    def add_fact(self, fact: TemporalFact, report: Report, place: str) -> None:
        """Add a fact. Report one without both ends."""
        source, target = self.name_of(fact.source), self.name_of(fact.target)
        if not source or not target or not fact.relation:
            report.drop_part(place, "a fact without both ends and a type")
            return
        has_ended = fact.until != 0 and fact.until <= self._now
        if not has_ended:
            self._relations.append(Relation(source, target, fact.relation, fact.created_at))
        if fact.text:
            text = f"{fact.text} (until {_day(fact.until)})" if fact.until else fact.text
            self.observe(fact.source, text, fact.created_at, fact.since, fact.origin)

    def items(self) -> Iterator[Item]:
        """Yield the entities with their facts, then the relations."""
        for identity, entity in self._entities.items():
            facts = tuple(self._facts.get(identity, ()))
            yield replace(entity, facts=facts, next_ordinal=len(facts) + 1)
        yield from self._relations


def _day(at: int) -> str:
    """Return a time as text, or as a date if it is midnight."""
    midnight = "T00:00:00Z"
    return (iso_time(at) or "").removesuffix(midnight)
