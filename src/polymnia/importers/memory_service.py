"""mcp-memory-service: its JSON export and its SQLite file.

A memory becomes an entity of its own, because it has tags of its own and associations with other memories. The first
line is the name, with a part of the hash; the text is its only observation. Vectors are made again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

from polymnia.engine.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    first_keys,
    objects,
    tags_of,
    text_of,
    time_of,
    title_of,
)
from polymnia.importers.source import Source, parts_of
from polymnia.model import Entity, Observation, Relation
from polymnia.stores.open import foreign_rows, foreign_tables

_HASH_LENGTH = 8
_NO_CONTENT = "a memory without content"


def recognizes_export(source: Source) -> bool:
    """Return True for an object with `memories` whose first one has a hash and content."""
    outline = source.outline(source.names[0]) if source.is_file else None
    if not isinstance(outline, dict) or "memories" not in outline:
        return False
    return "export_metadata" in outline or {"content", "content_hash"} <= first_keys(parts_of(outline["memories"]))


def read_export(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each memory."""
    outline = source.outline(source.names[0])
    parts = parts_of(outline["memories"]) if isinstance(outline, dict) and "memories" in outline else []
    for place, memory in objects(parts, report, "memories"):
        entity = _entity(memory)
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
        entity = _entity(memory)
        if memory.get("deleted_at") is not None:
            report.skip(f"memory {number}", "deleted there")
        elif memory.get("superseded_by"):
            report.skip(f"memory {number}", "superseded there by a newer version")
        elif entity is None:
            report.skip(f"memory {number}", _NO_CONTENT)
        else:
            names[text_of(memory, "content_hash")] = entity.name
            yield entity
    if "memory_graph" in foreign_tables(path):
        yield from _relations(foreign_rows(path, "memory_graph"), names, report)


def _relations(edges: Iterable[Mapping[str, Any]], names: dict[str, str], report: Report) -> Iterator[Relation]:
    for number, edge in enumerate(edges, 1):
        ends = [names.get(str(edge.get(name))) for name in ("source_hash", "target_hash")]
        source, target = ends
        if source is None or target is None:
            report.skip(f"association {number}", "an association with a memory that is not there")
        else:
            kind = text_of(dict(edge), "relationship_type") or "related"
            yield Relation(source, target, kind, time_of(edge.get("created_at")))


def _entity(memory: Mapping[str, Any]) -> Entity | None:
    values = dict(memory)
    content, digest = text_of(values, "content"), text_of(values, "content_hash")
    if not content:
        return None
    at = time_of(values.get("created_at")) or time_of(values.get("created_at_iso"))
    name = f"{title_of(content)} ({digest[:_HASH_LENGTH]})" if digest else title_of(content)
    source = f"mcp-memory-service:{digest}" if digest else "mcp-memory-service"
    tags = tags_of(_tags(values.get("tags")))
    return Entity(
        name,
        text_of(values, "memory_type") or "memory",
        (Observation(1, content, at, at, source),),
        next_ordinal=2,
        tags=tags,
        created_at=at,
        updated_at=time_of(values.get("updated_at")) or at,
    )


def _tags(value: Any) -> Any:
    """Return tags as they are. Some releases wrote them into the file as a JSON array."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return decode(value)
    except (DecodeError, RecursionError):
        return value


EXPORT = Importer("memory-service", "JSON export of mcp-memory-service", recognizes_export, read_export)
FILE = Importer("memory-service-db", "SQLite file of mcp-memory-service", recognizes_file, read_file)
