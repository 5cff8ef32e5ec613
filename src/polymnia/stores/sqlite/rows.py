"""Rows of the entities table become values here."""

import apsw
from msgspec import DecodeError, json

from polymnia.model import Entity, Observation
from polymnia.stores.sqlite.layout import Row


def entity_of(row: Row, observations: tuple[Observation, ...]) -> Entity:
    """The entity in a row, with its observations."""
    _, name, kind, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at = row
    parsed = () if tags == "[]" else _tags(tags)
    return Entity(name, kind, observations, uid, next_ordinal, summary, summary_at, parsed, created_at, updated_at)


def _tags(spelled: str) -> tuple[str, ...]:
    try:
        return json.decode(spelled, type=tuple[str, ...])
    except DecodeError as exc:
        raise apsw.CorruptError(f"tags are not a JSON array: {exc}") from exc
