"""mem0: the JSON list that `get_all`, `search` and its HTTP API return.

A memory is a fact about a user, an agent or a run: an observation of the entity with that name. An observation has no
fields of its own, so metadata, categories and other owners are left out and reported.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from polymnia.engine.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    first_keys,
    leave_fields,
    objects,
    text_of,
    time_of,
)
from polymnia.importers.source import Source, parts_of
from polymnia.model import Entity, Observation, Relation

_LISTS = ("results", "memories")
_OWNERS = (("user_id", "user"), ("agent_id", "agent"), ("run_id", "run"), ("app_id", "app"))
_UNKNOWN_OWNER = ("", "mem0", "memory")
# What is kept, and what tells nothing: the hash of the text, its vector, and its score in the search that found it.
_KNOWN = ("id", "memory", "content", "data", "created_at", "metadata", "hash", "embedding", "score")


def recognizes(source: Source) -> bool:
    """Return True for memories with an id, a text and an owner, a hash or a time."""
    keys = first_keys(_parts(source)) if source.is_file else set()
    owned = {"user_id", "agent_id", "run_id"} & keys
    return ("memory" in keys and "id" in keys) or bool({"id", "content"} <= keys and owned)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each owner, and the relations of a graph memory."""
    said: dict[tuple[str, str], list[Observation]] = {}
    for place, value in objects(_parts(source), report, "memories"):
        if text := text_of(value, "memory", "content", "data"):
            at = time_of(value.get("created_at"))
            field, *owner = _owner(value)
            _leave_rest(value, field, report, place)
            told = said.setdefault((owner[0], owner[1]), [])
            told.append(Observation(len(told) + 1, text, at, at, f"mem0:{text_of(value, 'id')}"))
        else:
            report.skip(place, "a memory without text")
    for (name, kind), told in said.items():
        first = min([each.created_at for each in told if each.created_at], default=0)
        yield Entity(name, kind, tuple(told), next_ordinal=len(told) + 1, created_at=first)
    yield from _relations(source, report)


def _relations(source: Source, report: Report) -> Iterator[Relation]:
    outline = source.outline(source.names[0])
    parts = (
        parts_of(outline["relations"])
        if isinstance(outline, dict) and "relations" in outline
        else []
    )
    for place, value in objects(parts, report, "relations"):
        kind = text_of(value, "relationship", "relation")
        ends = (text_of(value, "source"), text_of(value, "target", "destination"))
        if kind and all(ends):
            yield Relation(*ends, kind)
        else:
            report.skip(place, "a relation without both ends and a type")


def _owner(value: dict[str, Any]) -> tuple[str, str, str]:
    """Return the field that names the owner, its name and its type."""
    return next(
        ((field, name, kind) for field, kind in _OWNERS if (name := text_of(value, field))),
        _UNKNOWN_OWNER,
    )


def _leave_rest(value: dict[str, Any], owner: str, report: Report, place: str) -> None:
    leave_fields(value, {*_KNOWN, owner}, report, place)
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        leave_fields(metadata, (), report, place, "metadata.")


def _parts(source: Source) -> list[Raw]:
    outline = source.outline(source.names[0])
    if isinstance(outline, list):
        return outline
    found = [outline[name] for name in _LISTS if name in outline] if outline is not None else []
    return parts_of(found[0]) if found else []


IMPORTER = Importer("mem0", "mem0 list of memories (JSON)", recognizes, read)
