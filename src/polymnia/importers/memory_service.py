"""mcp-memory-service: its JSON export and its SQLite file.

A memory becomes an entity, because it has its own tags and associations. The first line is the
name, with a part of the hash; the text is its first fact, and its metadata are the others.
Vectors are computed again.
"""

from collections.abc import Iterator
from typing import Any

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    attribute_texts,
    drop_fields,
    first_keys,
    make_entity,
    make_observations,
    objects,
    tags_of,
    text_of,
    time_of,
    title_of,
)
from polymnia.importers.source import Source, parse_leniently, parts_of
from polymnia.model import Entity, Relation
from polymnia.stores.open import foreign_rows, foreign_tables

_NO_CONTENT = "a memory without content"
# What is kept, what follows from it, and what only that server needs.
_KNOWN = (
    *("id", "content", "content_hash", "tags", "memory_type", "metadata", "deleted_at"),
    *("superseded_by", "created_at", "created_at_iso", "updated_at", "updated_at_iso"),
    *("embedding", "embedding_pending", "store", "export_source", "version"),
)
# Metadata that the server keeps on the use and the quality of a memory. They are not facts.
_MEASURES = (
    *("quality_", "access_", "last_accessed", "ai_scores", "relevance_"),
    *("connection_", "consolidat", "sync_"),
)


def recognizes_export(source: Source) -> bool:
    """Return True for an object with `memories` whose first one has a hash and content."""
    outline = source.outline(source.names[0]) if source.is_file else None
    if not isinstance(outline, dict) or "memories" not in outline:
        return False
    return "export_metadata" in outline or {"content", "content_hash"} <= first_keys(
        parts_of(outline["memories"])
    )


def read_export(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each memory."""
    outline = source.outline(source.names[0])
    if not isinstance(outline, dict) or "memories" not in outline:
        return
    for place, memory in objects(parts_of(outline["memories"]), report, "memories"):
        entity = _entity(memory, report, place)
        if entity is None:
            report.drop_part(place, _NO_CONTENT)
        else:
            yield entity


def recognizes_file(source: Source) -> bool:
    """Return True for a SQLite file with the table `memories` of that server."""
    columns = foreign_tables(str(source.path)).get("memories", ()) if source.is_file else ()
    return {"content_hash", "content", "memory_type"} <= set(columns)


def read_file(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each memory, and a relation for each association of two of them."""
    path = str(source.path)
    names: dict[str, str] = {}
    total = sum(1 for _ in foreign_rows(path, "memories"))
    rows = report.count_known(total, foreign_rows(path, "memories"))
    for number, row in enumerate(rows, 1):
        memory, place = dict(row), f"memory {number}"
        if memory.get("deleted_at") is not None:
            report.drop_part(place, "deleted there")
        elif memory.get("superseded_by"):
            report.drop_part(place, "superseded there by a newer version")
        elif (entity := _entity(memory, report, place)) is None:
            report.drop_part(place, _NO_CONTENT)
        else:
            names[text_of(memory, "content_hash")] = entity.name
            yield entity
    if "memory_graph" not in foreign_tables(path):
        return
    known_of_association = ("source_hash", "target_hash", "relationship_type", "created_at")
    for number, edge in enumerate(foreign_rows(path, "memory_graph"), 1):
        place = f"association {number}"
        start = names.get(str(edge.get("source_hash")))
        target = names.get(str(edge.get("target_hash")))
        if start is None or target is None:
            report.drop_part(place, "an association with a memory that is not there")
            continue
        drop_fields(edge, known_of_association, report, place)
        kind = text_of(dict(edge), "relationship_type") or "related"
        yield Relation(start, target, kind, time_of(edge.get("created_at")))


def _entity(memory: dict[str, Any], report: Report, place: str) -> Entity | None:
    default_store = "default"
    hash_length = 8
    content, digest = text_of(memory, "content"), text_of(memory, "content_hash")
    if not content:
        return None
    name, source = title_of(content), "mcp-memory-service"
    if digest:
        name, source = f"{name} ({digest[:hash_length]})", f"{source}:{digest}"
    at = time_of(memory.get("created_at")) or time_of(memory.get("created_at_iso"))
    # Metadata as sentences. Report what is nested, and what the server measures.
    metadata = _parse_json(memory.get("metadata"))
    values = metadata if isinstance(metadata, dict) else {}
    facts = {name: value for name, value in values.items() if not name.startswith(_MEASURES)}
    drop_fields(values, facts, report, place, "metadata.")
    texts = [content, *attribute_texts(facts, report, place, "metadata.")]
    tags = tags_of(_parse_json(memory.get("tags")))
    if memory.get("store") != default_store:
        tags += tags_of(memory.get("store"))
    drop_fields(memory, _KNOWN, report, place)
    return make_entity(
        name,
        text_of(memory, "memory_type") or "memory",
        make_observations(texts, source, at, at),
        tags=tags,
        created_at=at,
        updated_at=time_of(memory.get("updated_at")) or at,
    )


def _parse_json(value: Any) -> Any:
    """Return a value, decoded if it is JSON: the file has metadata, and some tags, as JSON."""
    if not isinstance(value, str) or not value.startswith(("[", "{")):
        return value
    parsed = parse_leniently(value.encode(errors="replace"))
    return value if parsed is None else parsed


EXPORT = Importer(
    "memory-service", "JSON export of mcp-memory-service", recognizes_export, read_export
)
FILE = Importer(
    "memory-service-db", "SQLite file of mcp-memory-service", recognizes_file, read_file
)
