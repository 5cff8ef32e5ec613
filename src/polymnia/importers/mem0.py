"""mem0: the JSON list that `get_all`, `search` and its HTTP API return.

A memory is a fact about a user, an agent or a run: a fact of the entity with that name.
A fact has no fields of its own, so metadata, categories and other owners are dropped.
"""

from collections.abc import Iterator

from msgspec import Raw

from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import (
    Importer,
    Report,
    drop_fields,
    first_keys,
    make_entity,
    objects,
    text_of,
    time_of,
)
from polymnia.importers.source import Source, parts_of
from polymnia.model import Fact, Relation

# What is kept, and what says nothing: hash and vector of the text, and its score in a search.
_OWNERS = ("user", "agent", "run", "app")
_KNOWN = ("id", "memory", "content", "data", "created_at", "metadata", "hash", "embedding", "score")


def recognizes(source: Source) -> bool:
    """Return True for memories with an id, a text and an owner, a hash or a time."""
    keys = first_keys(_parts(source)) if source.is_file else set()
    owned = {"user_id", "agent_id", "run_id"} & keys
    return ("memory" in keys and "id" in keys) or bool({"id", "content"} <= keys and owned)


def read(source: Source, report: Report) -> Iterator[Item]:
    """Yield an entity for each owner, and the relations of a graph memory."""
    by_owner: dict[tuple[str, str], list[Fact]] = {}
    for place, value in objects(_parts(source), report, "memories"):
        text = text_of(value, "memory", "content", "data")
        if not text:
            report.drop_part(place, "a memory without text")
            continue
        at = time_of(value.get("created_at"))
        # The first of these that is given owns it.
        field, name, kind = "", "mem0", "memory"
        for owner in reversed(_OWNERS):
            if owner_name := text_of(value, f"{owner}_id"):
                field, name, kind = f"{owner}_id", owner_name, owner
        drop_fields(value, {*_KNOWN, field}, report, place)
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            drop_fields(metadata, (), report, place, "metadata.")
        facts = by_owner.setdefault((name, kind), [])
        facts.append(Fact(len(facts) + 1, text, at, at, f"mem0:{text_of(value, 'id')}"))
    for (name, kind), facts in by_owner.items():
        times = [fact.created_at for fact in facts if fact.created_at]
        yield make_entity(name, kind, facts, created_at=min(times, default=0))
    outline = source.outline(source.names[0])
    if not isinstance(outline, dict) or "relations" not in outline:
        return
    for place, value in objects(parts_of(outline["relations"]), report, "relations"):
        kind = text_of(value, "relationship", "relation")
        ends = (text_of(value, "source"), text_of(value, "target", "destination"))
        if kind and all(ends):
            yield Relation(*ends, kind)
        else:
            report.drop_part(place, "a relation without both ends and a type")


def _parts(source: Source) -> list[Raw]:
    lists = ("results", "memories")
    outline = source.outline(source.names[0])
    if isinstance(outline, list):
        return outline
    for name in lists:
        if outline is not None and name in outline:
            return parts_of(outline[name])
    return []


IMPORTER = Importer("mem0", "mem0 list of memories (JSON)", recognizes, read)
