"""`memory.json` and `memory.jsonl` of the reference server, and the variants of similar servers.

A line, or an element of an array, is an entity or a relation. An object may have them as
`entities` and `relations`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    decode_part,
    drop_fields,
    make_entity,
    objects,
    tags_of,
    text_of,
    texts_of,
    time_of,
)
from polymnia.importers.source import Source, parse_line
from polymnia.model import Entity, Fact, Relation

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


class _ReferenceEntity(Struct, tag_field="type", tag="entity", forbid_unknown_fields=True):
    """An entity as the reference server writes it."""

    name: str
    entityType: str  # noqa: N815  # the format's own name
    observations: list[str]


class _ReferenceRelation(Struct, tag_field="type", tag="relation", forbid_unknown_fields=True):
    """A relation as the reference server writes it."""

    source: str = field(name="from")
    target: str = field(name="to")
    relationType: str  # noqa: N815  # the format's own name


_decoder: Decoder[_ReferenceEntity | _ReferenceRelation] = Decoder(
    _ReferenceEntity | _ReferenceRelation
)


def recognizes(source: Source) -> bool:
    """Return True if the first line, element or entity is of this format."""
    if not source.is_file:
        return False
    (name,) = source.names
    if source.head(name).lstrip()[:1] == b"{":
        for line in islice(source.lines(name), _LINES_TO_TRY):
            value = parse_line(line)
            if value is not None and _kind(value):
                return True
    outline = source.outline(name)
    elements = islice(_elements(outline, Report()), _LINES_TO_TRY)
    if any(_kind(value, kind) for kind, value in elements):
        return True
    # An object with both arrays, without elements, is an empty memory.
    if not isinstance(outline, dict) or not set(_LISTS) <= set(outline):
        return False
    return all(decode_part(outline[name]) == [] for name in _LISTS)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield the entities and relations."""
    (name,) = source.names
    outline = source.outline(name)
    if outline is None or (isinstance(outline, dict) and not set(_LISTS) & set(outline)):
        yield from _read_lines(source.lines(name), report)
        return
    for number, (kind, value) in enumerate(_elements(outline, report)):
        place = f"element {number + 1}"
        item = _item(value, kind)
        if item is None:
            report.drop_part(place, "neither an entity nor a relation")
        else:
            drop_fields(value, _KNOWN, report, place)
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
            drop_fields(value, _KNOWN, report, f"line {number}")
            yield item
        else:
            reason = "not valid JSON" if value is None else "neither an entity nor a relation"
            report.drop_part(f"line {number}", reason)


def _plain_item(line: bytes) -> Item | None:
    """Return the item of a line in the exact format, which is fast; None for any other line."""
    try:
        value = _decoder.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if b"\\u0000" in line:
        return None
    if isinstance(value, _ReferenceRelation):
        key = (value.source, value.target, value.relationType)
        return Relation(*key) if all(map(str.strip, key)) else None
    texts = value.observations
    if not all(map(str.strip, (value.name, value.entityType, *texts))):
        return None
    facts = tuple(map(Fact, range(1, len(texts) + 1), texts))
    return Entity(value.name, value.entityType, facts, next_ordinal=len(texts) + 1)


def _elements(
    outline: list[Raw] | dict[str, Raw] | None, report: Report
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the elements of an array, or of the arrays of an object, with the kind of the array."""
    if isinstance(outline, list):
        for _, value in objects(outline, report, "element"):
            yield "", value
        return
    for name, kind in zip(_LISTS, ("entity", "relation"), strict=True):
        values = decode_part(outline[name]) if outline is not None and name in outline else []
        for value in report.count_parts(values if isinstance(values, list) else []):
            if isinstance(value, dict):
                yield kind, value
            else:
                report.drop_part(name, "not a JSON object")


def _kind(value: dict[str, Any], known: str = "") -> str:
    """Return whether this is an entity or a relation; empty if it is neither."""
    kind = known or value.get("type")
    if kind == "relation" and text_of(value, *_SOURCES) and text_of(value, *_TARGETS):
        return "relation"
    if kind == "entity" and text_of(value, *_NAMES):
        return "entity"
    # Without a type the fields tell, if they can be nothing else.
    ends = text_of(value, "from", "from_id"), text_of(value, "to", "to_id")
    if all(ends) and text_of(value, *_RELATION_TYPES):
        return "relation"
    if text_of(value, *_NAMES) and text_of(value, *_TYPES) and "observations" in value:
        return "entity"
    return ""


def _item(value: dict[str, Any], known: str = "") -> Item | None:
    kind = _kind(value, known)
    # In some variants `type` is not the kind of the line but the type of the entity or relation.
    own_type = text_of(value, "type") if value.get("type") != kind else ""
    created_at = time_of(value.get("createdAt") or value.get("created_at"))
    if kind == "relation":
        relation_type = text_of(value, *_RELATION_TYPES) or own_type or "related_to"
        source, target = text_of(value, *_SOURCES), text_of(value, *_TARGETS)
        return Relation(source, target, relation_type, created_at)
    if kind != "entity":
        return None
    return make_entity(
        text_of(value, *_NAMES),
        text_of(value, *_TYPES) or own_type or "entity",
        list(_facts(value.get("observations"))),
        summary=text_of(value, "summary") or None,
        tags=tags_of(value.get("tags")),
        created_at=created_at,
        updated_at=time_of(value.get("updatedAt") or value.get("updated_at")),
    )


def _facts(values: Any) -> Iterator[Fact]:
    """Yield facts from texts, and from objects with a text and a time."""
    ordinal = 0
    for value in values if isinstance(values, list) else [values]:
        fields = value if isinstance(value, dict) else {}
        text = text_of(fields, "content", "text", "fact")
        if isinstance(value, str):
            text = "".join(texts_of(value))
        if text:
            ordinal += 1
            at = fields.get("timestamp") or fields.get("created_at") or fields.get("createdAt")
            yield Fact(ordinal, text, time_of(at), 0, text_of(fields, "source"))


IMPORTER = Importer(
    "memory-json", "memory.json or memory.jsonl of the reference server", recognizes, read
)
