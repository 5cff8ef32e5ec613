"""Verbs on the attributes of an entity: its summary and its tags."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Rows


def set_summary(memory: Memory, name: str, summary: str, *, by: str) -> Entity:
    """Set or replace the summary of an entity; return the entity. Raise EntityNotFound."""
    with memory.writing("set_summary", by) as transaction:
        found = transaction.read.find([name])
        changed = _change(
            found, name, summary=summary, summary_at=transaction.at, updated_at=transaction.at
        )
        transaction.apply(before=Rows(entities=tuple(found)), after=Rows(entities=(changed,)))
    return changed


def set_tags(memory: Memory, name: str, tags: Sequence[str], *, by: str) -> Entity:
    """Replace the tags of an entity, each once; return the entity. Raise EntityNotFound."""
    with memory.writing("set_tags", by) as transaction:
        found = transaction.read.find([name])
        changed = _change(found, name, tags=tuple(dict.fromkeys(tags)), updated_at=transaction.at)
        if changed.tags != found[0].tags:
            transaction.apply(before=Rows(entities=tuple(found)), after=Rows(entities=(changed,)))
    return changed


def _change(found: list[Entity], name: str, **values: Any) -> Entity:
    if not found:
        raise EntityNotFound(name)
    return replace(found[0], **values)
