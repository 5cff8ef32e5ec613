"""MemPalace: the SQLite file of its knowledge graph, `~/.mempalace/knowledge_graph.sqlite3`."""

from collections.abc import Iterator, Mapping
from time import time_ns
from typing import Any

from polymnia.engine.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    attribute_texts,
    leave_fields,
    text_of,
    time_of,
)
from polymnia.importers.source import Source, parse_leniently
from polymnia.importers.temporal import Fact, TemporalGraph
from polymnia.model import Entity
from polymnia.stores.open import foreign_rows, foreign_tables

_TRIPLE_COLUMNS = {"subject", "predicate", "object", "valid_from", "valid_to"}
_SOURCES = ("source_file", "source_closet", "source_drawer_id")
_KNOWN = {"id", *_TRIPLE_COLUMNS, *_SOURCES, "extracted_at", "confidence"}
_UNKNOWN_TYPE = "unknown"


def recognizes(source: Source) -> bool:
    """Return True for a SQLite file with entities and with triples that hold for a time."""
    tables = foreign_tables(str(source.path)) if source.is_file else {}
    return set(tables.get("triples", ())) >= _TRIPLE_COLUMNS and {"id", "name"} <= set(
        tables.get("entities", ())
    )


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield the entities with their properties and dated facts, and a relation for each triple that still holds."""
    path = str(source.path)
    tables = foreign_tables(path)
    graph = TemporalGraph(time_ns() // 1000)
    for number, row in enumerate(foreign_rows(path, "entities") if "entities" in tables else (), 1):
        _add_entity(graph, row, report, f"entity {number}")
    for number, row in enumerate(foreign_rows(path, "triples") if "triples" in tables else (), 1):
        _add_triple(graph, dict(row), report, f"triple {number}")
    yield from graph.items()


def _add_entity(graph: TemporalGraph, row: Mapping[str, Any], report: Report, place: str) -> None:
    values = dict(row)
    identity, name = text_of(values, "id"), text_of(values, "name")
    if not identity or not name:
        report.skip(place, "an entity without a name")
        return
    at = time_of(values.get("created_at"))
    kind = text_of(values, "type")
    graph.add_entity(
        identity, Entity(name, kind if kind != _UNKNOWN_TYPE else "entity", created_at=at)
    )
    properties = values.get("properties")
    parsed = (
        parse_leniently(properties.encode(errors="replace"))
        if isinstance(properties, str)
        else None
    )
    for text in attribute_texts(parsed, report, place, "properties."):
        graph.observe(identity, text, at, 0, "mempalace")


def _add_triple(graph: TemporalGraph, row: dict[str, Any], report: Report, place: str) -> None:
    source, target, relation = [text_of(row, name) for name in ("subject", "object", "predicate")]
    since, until = time_of(row.get("valid_from")), time_of(row.get("valid_to"))
    words = (graph.name_of(source), relation.replace("_", " "), graph.name_of(target))
    text = " ".join(words) if since or until else ""  # the relation says the rest
    origin = next(
        (f"mempalace:{found}" for name in _SOURCES if (found := text_of(row, name))), "mempalace"
    )
    created_at = time_of(row.get("extracted_at"))
    graph.add_fact(
        Fact(source, target, relation, text, since, until, created_at, origin), report, place
    )
    leave_fields(row, _KNOWN, report, place)
    if row.get("confidence") not in (None, 1, 1.0):
        report.leave(place, "confidence")


IMPORTER = Importer("mempalace", "SQLite file of MemPalace's knowledge graph", recognizes, read)
