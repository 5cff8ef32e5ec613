"""MemPalace: the SQLite file of its knowledge graph, `~/.mempalace/knowledge_graph.sqlite3`."""

from collections.abc import Iterator
from time import time_ns
from typing import Any

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    attribute_texts,
    drop_fields,
    text_of,
    time_of,
)
from polymnia.importers.graphiti import TemporalFact, TemporalGraph
from polymnia.importers.source import Source, parse_leniently
from polymnia.model import Entity
from polymnia.stores.open import foreign_rows, foreign_tables

_TRIPLE_COLUMNS = {"subject", "predicate", "object", "valid_from", "valid_to"}
_SOURCES = ("source_file", "source_closet", "source_drawer_id")
_KNOWN = {"id", *_TRIPLE_COLUMNS, *_SOURCES, "extracted_at", "confidence"}


def recognizes(source: Source) -> bool:
    """Return True for a SQLite file with entities and with triples that hold for a time."""
    tables = foreign_tables(str(source.path)) if source.is_file else {}
    triple_columns, entity_columns = tables.get("triples", ()), tables.get("entities", ())
    return set(triple_columns) >= _TRIPLE_COLUMNS and {"id", "name"} <= set(entity_columns)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield the entities with properties and dated facts, and the triples that still hold."""
    path = str(source.path)
    tables = foreign_tables(path)
    graph = TemporalGraph(time_ns() // 1000)
    if "entities" in tables:
        for number, row in enumerate(foreign_rows(path, "entities"), 1):
            _add_entity(graph, dict(row), report, f"entity {number}")
    if "triples" in tables:
        for number, row in enumerate(foreign_rows(path, "triples"), 1):
            _add_triple(graph, dict(row), report, f"triple {number}")
    yield from report.count_parts(list(graph.items()))


def _add_entity(graph: TemporalGraph, row: dict[str, Any], report: Report, place: str) -> None:
    unknown_type = "unknown"
    identity, name = text_of(row, "id"), text_of(row, "name")
    if not identity or not name:
        report.drop_part(place, "an entity without a name")
        return
    at = time_of(row.get("created_at"))
    kind = text_of(row, "type")
    if kind == unknown_type:
        kind = "entity"
    graph.add_entity(identity, Entity(name, kind, created_at=at))
    properties = row.get("properties")
    if isinstance(properties, str):
        properties = parse_leniently(properties.encode(errors="replace"))
    for text in attribute_texts(properties, report, place, "properties."):
        graph.observe(identity, text, at, 0, "mempalace")


def _add_triple(graph: TemporalGraph, row: dict[str, Any], report: Report, place: str) -> None:
    source, target, relation = [text_of(row, name) for name in ("subject", "object", "predicate")]
    since, until = time_of(row.get("valid_from")), time_of(row.get("valid_to"))
    text = ""
    if since or until:  # else the relation says everything
        words = relation.replace("_", " ")
        text = f"{graph.name_of(source)} {words} {graph.name_of(target)}"
    origin = text_of(row, *_SOURCES)
    fact = TemporalFact(
        source,
        target,
        relation,
        text,
        since,
        until,
        created_at=time_of(row.get("extracted_at")),
        origin=f"mempalace:{origin}" if origin else "mempalace",
    )
    graph.add_fact(fact, report, place)
    drop_fields(row, _KNOWN, report, place)
    if row.get("confidence") not in (None, 1, 1.0):
        report.drop_field(place, "confidence")


IMPORTER = Importer("mempalace", "SQLite file of MemPalace's knowledge graph", recognizes, read)
