"""mcp-memory-service: its JSON export and its SQLite file.

A memory becomes an entity of its own, because it has tags of its own and associations with other memories. The first
line is the name, with a part of the hash; the text is its first observation, and its metadata are the others. Vectors
are made again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from polymnia.engine.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    attribute_texts,
    first_keys,
    leave_fields,
    objects,
    tags_of,
    text_of,
    time_of,
    title_of,
)
from polymnia.importers.source import Source, parse_leniently, parts_of
from polymnia.model import Entity, Observation, Relation
from polymnia.stores.open import foreign_rows, foreign_tables

_HASH_LENGTH = 8
_NO_CONTENT = "a memory without content"
# What is kept, what follows from it, and what only that server needs.
_KNOWN = (
    *(
        "id",
        "content",
        "content_hash",
        "tags",
        "memory_type",
        "metadata",
        "deleted_at",
        "superseded_by",
    ),
    *(
        "created_at",
        "created_at_iso",
        "updated_at",
        "updated_at_iso",
        "embedding",
        "embedding_pending",
    ),
    *("store", "export_source", "version"),
)
_DEFAULT_STORE = "default"
_KNOWN_OF_ASSOCIATION = ("source_hash", "target_hash", "relationship_type", "created_at")
# Metadata that the server keeps on the use and the quality of a memory. They are no facts.
_MEASURES = (
    "quality_",
    "access_",
    "last_accessed",
    "ai_scores",
    "relevance_",
    "connection_",
    "consolidat",
    "sync_",
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
    parts = (
        parts_of(outline["memories"]) if isinstance(outline, dict) and "memories" in outline else []
    )
    for place, memory in objects(parts, report, "memories"):
        entity = _entity(memory, report, place)
        if entity is None:
            report.skip(place, _NO_CONTENT)
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
    for number, memory in enumerate(foreign_rows(path, "memories"), 1):
        place = f"memory {number}"
        if memory.get("deleted_at") is not None:
            report.skip(place, "deleted there")
        elif memory.get("superseded_by"):
            report.skip(place, "superseded there by a newer version")
        elif (entity := _entity(memory, report, place)) is None:
            report.skip(place, _NO_CONTENT)
        else:
            names[text_of(memory, "content_hash")] = entity.name
            yield entity
    if "memory_graph" in foreign_tables(path):
        yield from _relations(foreign_rows(path, "memory_graph"), names, report)


def _relations(
    edges: Iterable[Mapping[str, Any]], names: dict[str, str], report: Report
) -> Iterator[Relation]:
    for number, edge in enumerate(edges, 1):
        ends = [names.get(str(edge.get(name))) for name in ("source_hash", "target_hash")]
        source, target = ends
        if source is None or target is None:
            report.skip(f"association {number}", "an association with a memory that is not there")
        else:
            leave_fields(edge, _KNOWN_OF_ASSOCIATION, report, f"association {number}")
            kind = text_of(dict(edge), "relationship_type") or "related"
            yield Relation(source, target, kind, time_of(edge.get("created_at")))


def _entity(memory: Mapping[str, Any], report: Report, place: str) -> Entity | None:
    values = dict(memory)
    content, digest = text_of(values, "content"), text_of(values, "content_hash")
    if not content:
        return None
    at = time_of(values.get("created_at")) or time_of(values.get("created_at_iso"))
    name = f"{title_of(content)} ({digest[:_HASH_LENGTH]})" if digest else title_of(content)
    source = f"mcp-memory-service:{digest}" if digest else "mcp-memory-service"
    texts = [content, *_metadata_texts(_parse_json(values.get("metadata")), report, place)]
    store = tags_of(values.get("store")) if values.get("store") != _DEFAULT_STORE else ()
    leave_fields(values, _KNOWN, report, place)
    return Entity(
        name,
        text_of(values, "memory_type") or "memory",
        tuple([Observation(number, text, at, at, source) for number, text in enumerate(texts, 1)]),
        next_ordinal=len(texts) + 1,
        tags=(*tags_of(_parse_json(values.get("tags"))), *store),
        created_at=at,
        updated_at=time_of(values.get("updated_at")) or at,
    )


def _metadata_texts(metadata: Any, report: Report, place: str) -> Iterator[str]:
    """Return metadata as sentences. Report what is nested, and what the server measures."""
    values = metadata if isinstance(metadata, dict) else {}
    facts = {name: value for name, value in values.items() if not name.startswith(_MEASURES)}
    leave_fields(values, facts, report, place, "metadata.")
    return attribute_texts(facts, report, place, "metadata.")


def _parse_json(value: Any) -> Any:
    """Return a value as it is, or what its JSON says: the file has metadata and, of some releases, tags as JSON."""
    if not isinstance(value, str) or not value.startswith(("[", "{")):
        return value
    found = parse_leniently(value.encode(errors="replace"))
    return value if found is None else found


EXPORT = Importer(
    "memory-service", "JSON export of mcp-memory-service", recognizes_export, read_export
)
FILE = Importer(
    "memory-service-db", "SQLite file of mcp-memory-service", recognizes_file, read_file
)
