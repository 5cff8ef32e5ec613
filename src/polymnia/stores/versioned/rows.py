"""The rows of a database with named columns, and the values of the model that they become.

The order of each type's fields is that of the columns of the queries that they name."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from polymnia.model import Entity, Fact, Note, Passage, Relation
from polymnia.stores.versioned.port import DatabasePort, Row


class EntityColumns(NamedTuple):
    """The columns of the fragment `entity_columns`."""

    id: int
    name: str
    type: str
    uid: Any
    next_ordinal: int
    summary: str | None
    summary_at: int | None
    tags: Any
    created_at: int
    updated_at: int
    aliases: Any
    due: int | None
    status: str | None
    expires: int | None


class FactColumns(NamedTuple):
    """The columns of the fragment `observation_columns`."""

    entity: int
    ordinal: int
    text: str
    created_at: int
    valid_at: int | None
    source: str | None
    expires: int | None
    author: str | None


class NoteRow(NamedTuple):
    """A vault note, with the vector that its client gave."""

    id: int
    key: str
    text: str
    tags: Any
    created_at: int
    updated_at: int
    embedding: bytes | None = None


class ChangeColumns(NamedTuple):
    """A change without its rows."""

    id: int
    at: int
    actor: str
    operation: str
    server: str


class PassageRow(NamedTuple):
    """A passage with the name of its entity, or a note with its key."""

    id: int
    name: str
    type: str
    ordinal: int
    text: str
    created_at: int
    valid_at: int
    tags: Any
    source: str | None
    expires: int | None


class VersionedCard(NamedTuple):
    """A card, the changes that created and ended it, and the last change to its entity."""

    since: int
    until: int | None
    row: EntityColumns
    touched: int


class VersionedFact(NamedTuple):
    """A fact, and the changes that created and ended it."""

    since: int
    until: int | None
    row: FactColumns


class NewCard(NamedTuple):
    """What `insert_cards` writes."""

    id: int
    entity: int
    name: str
    type: str
    summary: str | None
    summary_at: int | None
    tags: Any
    created_at: int
    aliases: Any
    due: int | None
    status: str | None
    expires: int | None


class NewFact(NamedTuple):
    """What `insert_observations` writes."""

    id: int
    entity: int
    ordinal: int
    text: str
    created_at: int
    valid_at: int | None
    source: str | None
    expires: int | None
    author: str | None


class NewNote(NamedTuple):
    """What `insert_notes` writes."""

    id: int
    key: str
    text: str
    tags: Any
    created_at: int
    updated_at: int


class SessionNoteRow(NamedTuple):
    """What `upsert_session_notes` writes."""

    id: int
    owner: str
    session: str
    key: str
    text: str
    tags: Any
    embedding: bytes | None
    created_at: int
    updated_at: int


def assemble(
    port: DatabasePort, entities: Iterable[Row], facts: Iterable[Row] = ()
) -> list[Entity]:
    """Return the entities of rows that begin like EntityColumns, with the facts of FactColumns."""
    facts_by_entity: defaultdict[int, list[Fact]] = defaultdict(list)
    for entity, *columns in facts:
        facts_by_entity[entity].append(unpack_fact(*columns))
    return [unpack_entity(port, row, tuple(facts_by_entity[row[0]])) for row in entities]


def unpack_entity(port: DatabasePort, row: Row, facts: tuple[Fact, ...] = ()) -> Entity:
    """Return the entity of a row that begins like EntityColumns."""
    columns = EntityColumns(*row[: len(EntityColumns._fields)])
    return Entity(
        name=columns.name,
        type=columns.type,
        facts=facts,
        id=port.unpack_uid(columns.uid),
        next_ordinal=columns.next_ordinal,
        summary=columns.summary,
        summary_at=columns.summary_at or 0,
        tags=port.unpack_tags(columns.tags),
        created_at=columns.created_at,
        updated_at=columns.updated_at,
        aliases=port.unpack_tags(columns.aliases),
        due=columns.due or 0,
        status=columns.status or "",
        expires=columns.expires or 0,
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
    """Return the fact of the columns of FactColumns after the entity."""
    return Fact(ordinal, text, created_at, valid_at or 0, source or "", expires or 0, author or "")


def card_versions(rows: Iterable[Row]) -> list[VersionedCard]:
    """Return the rows of `cards_until` with named columns."""
    return [
        VersionedCard(since, until, EntityColumns(*columns), touched)
        for since, until, *columns, touched in rows
    ]


def fact_versions(rows: Iterable[Row]) -> list[VersionedFact]:
    """Return the rows of `observations_until` with named columns."""
    return [VersionedFact(since, until, FactColumns(*columns)) for since, until, *columns in rows]


def unpack_relations(rows: Iterable[Row]) -> list[Relation]:
    """Return the relations of rows that start with a row id."""
    return [Relation(source, target, kind, at) for _, source, target, kind, at in rows]


def unpack_note(port: DatabasePort, row: Row) -> Note:
    """Return the vault note of a row that begins like NoteRow."""
    columns = NoteRow(*row[: len(NoteRow._fields)])
    return Note(
        key=columns.key,
        content=columns.text,
        tags=port.unpack_tags(columns.tags),
        embedding=columns.embedding or b"",
        created_at=columns.created_at,
        updated_at=columns.updated_at,
    )


def unpack_passages(port: DatabasePort, rows: Iterable[Row]) -> list[Passage]:
    """Return the passages of PassageRows."""
    passages = []
    for row in rows:
        columns = PassageRow(*row)
        passage = Passage(
            columns.name,
            columns.type,
            columns.ordinal,
            columns.text,
            columns.created_at,
            columns.valid_at,
            id=columns.id,
            tags=port.unpack_tags(columns.tags),
            source=columns.source or "",
            expires=columns.expires or 0,
        )
        passages.append(passage)
    return passages
