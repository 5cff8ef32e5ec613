"""`memory.json` and `memory.jsonl` of the reference server, and the variants that its relatives write.

A line, or an element of an array, is an entity or a relation. An object may have them as `entities` and `relations`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from polymnia.engine.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    decode_part,
    leave_fields,
    objects,
    tags_of,
    text_of,
    texts_of,
    time_of,
)
from polymnia.importers.source import Source, parse_line
from polymnia.model import Entity, Observation, Relation

_NAMES = ("name", "entityName", "entity_name", "id")
_TYPES = ("entityType", "entity_type")
_SOURCES = ("from", "from_id", "fromId", "source", "from_entity")
_TARGETS = ("to", "to_id", "toId", "target", "to_entity")
_RELATION_TYPES = ("relationType", "relation_type")
_LISTS = ("entities", "relations")
_TIMES = ("createdAt", "created_at", "updatedAt", "updated_at")
_KNOWN = {
    *("type", "observations", "summary", "tags", *_TIMES),
    *(*_NAMES, *_TYPES, *_SOURCES, *_TARGETS, *_RELATION_TYPES),
}
_LINES_TO_TRY = 10


class _EntityLine(Struct, tag_field="type", tag="entity", forbid_unknown_fields=True):
    """An entity as the reference server writes it."""

    name: str
    entityType: str  # noqa: N815  # the format's own name
    observations: list[str]


class _RelationLine(Struct, tag_field="type", tag="relation", forbid_unknown_fields=True):
    """A relation as the reference server writes it."""

    source: str = field(name="from")
    target: str = field(name="to")
    relationType: str  # noqa: N815  # the format's own name


_decoder: Decoder[_EntityLine | _RelationLine] = Decoder(_EntityLine | _RelationLine)


def recognizes(source: Source) -> bool:
    """Return True if the first line, element or entity is of this format."""
    if not source.is_file:
        return False
    (name,) = source.names
    if source.head(name).lstrip()[:1] == b"{" and any(
        map(_is_line, islice(source.lines(name), _LINES_TO_TRY))
    ):
        return True
    outline = source.outline(name)
    elements = islice(_elements(outline, Report()), _LINES_TO_TRY)
    return any(_kind(value, kind) for kind, value in elements) or _is_empty(outline)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield the entities and relations."""
    (name,) = source.names
    outline = source.outline(name)
    if (isinstance(outline, dict) and not set(_LISTS) & set(outline)) or outline is None:
        yield from _read_lines(source.lines(name), report)
        return
    for number, (kind, value) in enumerate(_elements(outline, report)):
        item = _item(value, kind)
        if item is None:
            report.skip(f"element {number + 1}", "neither an entity nor a relation")
        else:
            leave_fields(value, _KNOWN, report, f"element {number + 1}")
            yield item


def _read_lines(lines: Iterator[bytes], report: Report) -> Iterator[Item]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        if plain := _plain_item(line):
            yield plain
            continue
        value = parse_line(line)
        item = None if value is None else _item(value)
        if value is not None and item is not None:
            leave_fields(value, _KNOWN, report, f"line {number}")
            yield item
        else:
            reason = "not valid JSON" if value is None else "neither an entity nor a relation"
            report.skip(f"line {number}", reason)


def _plain_item(line: bytes) -> Item | None:
    """Return what a line of the exact format has, without the search for variants; None for any other line."""
    try:
        value = _decoder.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if b"\\u0000" in line:
        return None
    if isinstance(value, _RelationLine):
        key = (value.source, value.target, value.relationType)
        return Relation(*key) if all(map(str.strip, key)) else None
    texts = value.observations
    if not all(map(str.strip, (value.name, value.entityType, *texts))):
        return None
    observations = tuple(map(Observation, range(1, len(texts) + 1), texts))
    return Entity(value.name, value.entityType, observations, next_ordinal=len(texts) + 1)


def _is_line(line: bytes) -> bool:
    value = parse_line(line)
    return value is not None and _kind(value) != ""


def _elements(
    outline: list[Raw] | dict[str, Raw] | None, report: Report
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the elements of an array, or of the arrays of an object, with the kind that the array tells."""
    if isinstance(outline, list):
        for _, value in objects(outline, report, "element"):
            yield "", value
        return
    for name, kind in zip(_LISTS, ("entity", "relation"), strict=True):
        values = decode_part(outline[name]) if outline is not None and name in outline else []
        for value in values if isinstance(values, list) else []:
            if isinstance(value, dict):
                yield kind, value
            else:
                report.skip(name, "not a JSON object")


def _is_empty(outline: list[Raw] | dict[str, Raw] | None) -> bool:
    """Return True for an object that has both arrays, without elements."""
    if not isinstance(outline, dict) or not set(_LISTS) <= set(outline):
        return False
    return all(decode_part(outline[name]) == [] for name in _LISTS)


def _kind(value: dict[str, Any], known: str = "") -> str:
    """Return whether this is an entity or a relation; empty if it is neither."""
    kind = known or value.get("type")
    if kind == "relation" and text_of(value, *_SOURCES) and text_of(value, *_TARGETS):
        return "relation"
    if kind == "entity" and text_of(value, *_NAMES):
        return "entity"
    # Without a type the fields tell, if they can be nothing else.
    if (
        text_of(value, "from", "from_id")
        and text_of(value, "to", "to_id")
        and text_of(value, *_RELATION_TYPES)
    ):
        return "relation"
    return (
        "entity"
        if text_of(value, *_NAMES) and text_of(value, *_TYPES) and "observations" in value
        else ""
    )


def _item(value: dict[str, Any], known: str = "") -> Item | None:
    kind = _kind(value, known)
    created_at = time_of(value.get("createdAt") or value.get("created_at"))
    if kind == "relation":
        ends = (text_of(value, *_SOURCES), text_of(value, *_TARGETS))
        named = text_of(value, *_RELATION_TYPES) or (
            "" if value.get("type") == "relation" else text_of(value, "type")
        )
        return Relation(*ends, named or "related_to", created_at)
    if kind != "entity":
        return None
    named = text_of(value, *_TYPES) or (
        "" if value.get("type") == "entity" else text_of(value, "type")
    )
    observations = tuple(_observations(value.get("observations")))
    return Entity(
        text_of(value, *_NAMES),
        named or "entity",
        observations,
        next_ordinal=len(observations) + 1,
        summary=text_of(value, "summary") or None,
        tags=tags_of(value.get("tags")),
        created_at=created_at,
        updated_at=time_of(value.get("updatedAt") or value.get("updated_at")),
    )


def _observations(values: Any) -> Iterator[Observation]:
    """Yield observations from texts, and from objects with a text and a time."""
    listed = values if isinstance(values, list) else [values]
    ordinal = 0
    for value in listed:
        if isinstance(value, dict):
            text = text_of(value, "content", "text", "observation")
            at = time_of(
                value.get("timestamp") or value.get("created_at") or value.get("createdAt")
            )
            source = text_of(value, "source")
        else:
            text, at, source = (
                next(iter(texts_of(value)), "") if isinstance(value, str) else "",
                0,
                "",
            )
        if text:
            ordinal += 1
            yield Observation(ordinal, text, at, 0, source)


IMPORTER = Importer(
    "memory-json", "memory.json or memory.jsonl of the reference server", recognizes, read
)
