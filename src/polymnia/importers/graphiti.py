"""Graphiti and Zep: nodes, edges and episodes as JSON.

Graphiti has no export command. We read what its models dump (`EntityNode`, `EntityEdge`,
`EpisodicNode`) as arrays of an object, as one array or as lines, and what Neo4j's
`apoc.export.json` writes of its graph.

Its facts hold from a time, and perhaps until one. Our relations have no such times. So a dated
fact also becomes a fact of its subject, with the time from which it holds. One that has ended
becomes only that, and its text says until when.
"""

from collections.abc import Iterator
from itertools import islice
from time import time_ns
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from polymnia.engine.facts.briefing import CONVERSATION
from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    attribute_texts,
    decode_part,
    drop_fields,
    make_entity,
    text_of,
    texts_of,
    time_of,
)
from polymnia.importers.source import Source, parse_line, parts_of
from polymnia.model import Entity, Fact, Relation
from polymnia.search.times import iso_time

_ENTITY_LABEL = "Entity"
_ENDS = ("source_node_uuid", "target_node_uuid")
_NODE_FIELDS = {
    *("uuid", "name", "labels", "summary", "created_at", "group_id", "attributes"),
    "name_embedding",
}
_EDGE_FIELDS = {
    *("uuid", "name", "fact", *_ENDS, "created_at", "valid_at", "invalid_at", "expired_at"),
    *("group_id", "fact_embedding"),
}
Elements = Iterator[tuple[str, dict[str, Any]]]


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
            text = fact.text
            if fact.until:
                day = (iso_time(fact.until) or "").removesuffix("T00:00:00Z")
                text = f"{text} (until {day})"
            self.observe(fact.source, text, fact.created_at, fact.since, fact.origin)

    def items(self) -> Iterator[Item]:
        """Yield the entities with their facts, then the relations."""
        for identity, entity in self._entities.items():
            facts = tuple(self._facts.get(identity, ()))
            yield replace(entity, facts=facts, next_ordinal=len(facts) + 1)
        yield from self._relations


def recognizes(source: Source) -> bool:
    """Return True if one of the first elements is an edge, an entity or an episode of Graphiti."""
    values_to_try = 20
    if not source.is_file:
        return False
    elements = islice(_elements(source, Report()), values_to_try)
    return any(_kind(value) for _, value in elements)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield the entities with their facts, the relations that hold, and the episodes by group."""
    graph = TemporalGraph(time_ns() // 1000)
    edges: list[tuple[str, dict[str, Any]]] = []
    episodes: dict[str, list[Fact]] = {}
    for place, value in _elements(source, report):
        kind = _kind(value)
        if kind == "entity":
            _add_entity(graph, value, report, place)
        elif kind == "edge":
            edges.append((place, value))  # its ends may come later
        elif kind == "episode":
            facts = episodes.setdefault(text_of(value, "group_id"), [])
            text = report.screen(place, text_of(value, "content"))
            at = time_of(value.get("created_at"))
            said_at = time_of(value.get("valid_at")) or at
            origin = f"graphiti:{text_of(value, 'uuid')}"
            facts.append(Fact(len(facts) + 1, text, at, said_at, origin))
        else:
            report.drop_part(place, "neither an entity nor a fact nor an episode")
    for place, value in edges:
        start, end = _ENDS
        fact = TemporalFact(
            text_of(value, start),
            text_of(value, end),
            relation=text_of(value, "name") or "RELATES_TO",
            text=text_of(value, "fact"),
            since=time_of(value.get("valid_at")),
            until=time_of(value.get("invalid_at")) or time_of(value.get("expired_at")),
            created_at=time_of(value.get("created_at")),
            origin=f"graphiti:{text_of(value, 'uuid')}",
        )
        graph.add_fact(fact, report, place)
        drop_fields(value, _EDGE_FIELDS, report, place)
    yield from report.count_parts(list(graph.items()))
    for group, facts in episodes.items():
        name = f"Episodes of {group}" if group else "Episodes"
        times = [episode.valid_at for episode in facts if episode.valid_at]
        yield make_entity(name, CONVERSATION, facts, created_at=min(times, default=0))


def _elements(source: Source, report: Report) -> Elements:
    """Yield the nodes and edges of an array, of the arrays of an object, or of lines."""
    (name,) = source.names
    outline = source.outline(name)
    if isinstance(outline, list):
        yield from _decode_all(outline, "element", report)
    elif isinstance(outline, dict) and (
        arrays := [(key, parts) for key, part in outline.items() if (parts := parts_of(part))]
    ):
        for key, parts in arrays:
            yield from _decode_all(parts, key, report)
    elif source.head(name).lstrip()[:1] == b"{":
        for number, line in enumerate(source.lines(name), 1):
            if not line.isspace():
                yield from _plain(parse_line(line), f"line {number}", report)


def _decode_all(parts: list[Raw], place: str, report: Report) -> Elements:
    for number, part in enumerate(parts):
        yield from _plain(decode_part(part), f"{place}[{number}]", report)


def _plain(value: Any, place: str, report: Report) -> Elements:
    """Yield the element with the fields that Graphiti's models have, wherever the dump has them."""
    if not isinstance(value, dict):
        report.drop_part(place, "not a JSON object")
        return
    properties = value.get("properties")
    if not isinstance(properties, dict):
        yield place, value
    elif value.get("type") == "relationship":
        ends = []
        for name in ("start", "end"):
            end = value.get(name)
            node = end.get("properties") if isinstance(end, dict) else None
            ends.append(text_of(node, "uuid") if isinstance(node, dict) else "")
        yield place, {**dict(zip(_ENDS, ends, strict=True)), **properties}
    else:
        yield place, {"labels": value.get("labels"), **properties}


def _kind(value: dict[str, Any]) -> str:
    if text_of(value, "fact") and all(text_of(value, name) for name in _ENDS):
        return "edge"
    if text_of(value, "content") and text_of(value, "uuid") and "valid_at" in value:
        return "episode"
    is_entity = "summary" in value or _ENTITY_LABEL in texts_of(value.get("labels"))
    return "entity" if is_entity and text_of(value, "uuid") and text_of(value, "name") else ""


def _add_entity(graph: TemporalGraph, value: dict[str, Any], report: Report, place: str) -> None:
    identity, at = text_of(value, "uuid"), time_of(value.get("created_at"))
    labels = [text for text in texts_of(value.get("labels")) if text != _ENTITY_LABEL]
    kind = labels[0].lower() if labels else "entity"
    tags = (*labels[1:], *texts_of(value.get("group_id")))
    summary = text_of(value, "summary") or None
    entity = Entity(text_of(value, "name"), kind, summary=summary, tags=tags, created_at=at)
    graph.add_entity(identity, entity)
    nested = value.get("attributes")
    attributes = dict(nested) if isinstance(nested, dict) else {}
    # A dump of the database has the attributes beside the other fields.
    attributes |= {name: field for name, field in value.items() if name not in _NODE_FIELDS}
    for text in attribute_texts(attributes, report, place, "attributes."):
        graph.observe(identity, text, at, 0, f"graphiti:{identity}")


IMPORTER = Importer(
    "graphiti", "Graphiti or Zep nodes, edges and episodes (JSON)", recognizes, read
)
