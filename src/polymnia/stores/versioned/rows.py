"""Convert rows of a database to values of the model."""

from collections import defaultdict
from collections.abc import Iterable

from polymnia.model import Entity, Fact, Note, Passage, Relation
from polymnia.stores.versioned.port import DatabasePort, Row

# How many columns of a row `unpack_entity` takes.
ENTITY_COLUMNS = 14


def assemble(port: DatabasePort, entities: list[Row], facts: Iterable[Row]) -> list[Entity]:
    """Return entities with their facts, whose rows start with the entity, in order."""
    facts_by_entity: defaultdict[int, list[Fact]] = defaultdict(list)
    for entity, *columns in facts:
        facts_by_entity[entity].append(unpack_fact(*columns))
    return [unpack_entity(port, row, tuple(facts_by_entity[row[0]])) for row in entities]


def outlines(port: DatabasePort, rows: list[Row]) -> list[Entity]:
    """Return the entities of these rows without their facts."""
    return [unpack_entity(port, row) for row in rows]


def unpack_entity(port: DatabasePort, row: Row, facts: tuple[Fact, ...] = ()) -> Entity:
    """Return the entity of a row that starts with the columns of an entity."""
    _, name, kind, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at, *more = row
    aliases, due, status, expires = more[:4]
    return Entity(
        name,
        kind,
        facts,
        port.unpack_uid(uid),
        next_ordinal,
        summary,
        summary_at or 0,
        port.unpack_tags(tags),
        created_at,
        updated_at,
        port.unpack_tags(aliases),
        due or 0,
        status or "",
        expires or 0,
    )


def unpack_fact(
    ordinal: int,
    text: str,
    created_at: int,
    valid_at: int | None,
    source: str | None,
    expires: int | None,
    author: str | None,
) -> Fact:
    """Return the fact of a row."""
    return Fact(ordinal, text, created_at, valid_at or 0, source or "", expires or 0, author or "")


def unpack_relations(rows: Iterable[Row]) -> list[Relation]:
    """Return the relations of rows that start with a row id."""
    return [Relation(source, target, kind, at) for _, source, target, kind, at in rows]


def unpack_note(port: DatabasePort, row: Row) -> Note:
    """Return the vault note of a row."""
    _, key, text, tags, created_at, updated_at, embedding, *_ = row
    return Note(
        key,
        text,
        port.unpack_tags(tags),
        embedding=embedding or b"",
        created_at=created_at,
        updated_at=updated_at,
    )


def unpack_passages(port: DatabasePort, rows: Iterable[Row]) -> list[Passage]:
    """Return the passages of rows."""
    passages = []
    for number, name, kind, ordinal, text, created_at, valid_at, tags, source, expires in rows:
        passage = Passage(
            name,
            kind,
            ordinal,
            text,
            created_at,
            valid_at,
            id=number,
            tags=port.unpack_tags(tags),
            source=source or "",
            expires=expires or 0,
        )
        passages.append(passage)
    return passages


def columns_of(passage: Passage) -> dict[str, str]:
    """Return the texts of a passage by the columns of the words index."""
    if passage.kind == "fact":
        return {"content": passage.text}
    labels = passage.tags if passage.kind == "note" else (passage.type, *passage.tags)
    return {"name": passage.entity, "labels": " ".join(labels), "content": passage.text}
