"""What the Python API returns: frozen values, times in UTC. Fields are never removed."""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from polymnia.engine.facts.forget import ForgetReceipt
from polymnia.engine.history.changes import differences
from polymnia.errors import BadInput
from polymnia.model import Change, Graph, Hit, Note


class FactRecord(Struct, frozen=True, kw_only=True):
    """A fact about an entity. Its ordinal is never reused."""

    ordinal: int
    text: str
    recorded_at: datetime | None
    valid_at: datetime | None
    source: str


class RelationRecord(Struct, frozen=True, kw_only=True):
    """A directed, typed relation between two names."""

    source: str
    type: str
    target: str


class EntityRecord(Struct, frozen=True, kw_only=True):
    """An entity, its facts, and the relations that start or end at it."""

    name: str
    type: str
    summary: str | None
    tags: tuple[str, ...]
    facts: tuple[FactRecord, ...]
    relations: tuple[RelationRecord, ...]
    created_at: datetime | None
    updated_at: datetime | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the facts, oldest first."""
        return tuple(fact.text for fact in self.facts)


class SearchHit(Struct, frozen=True, kw_only=True):
    """What a search found: a fact, an entity (ordinal 0) or a note, whose name is its key.

    A hit is weak if it has little in common with the question: nothing may answer it.
    """

    kind: str
    name: str
    type: str
    ordinal: int
    text: str
    score: float
    at: datetime | None
    is_weak: bool


class NoteRecord(Struct, frozen=True, kw_only=True):
    """A text under a key."""

    key: str
    content: str
    tags: tuple[str, ...]
    created_at: datetime | None
    updated_at: datetime | None


class ChangeRecord(Struct, frozen=True, kw_only=True):
    """One change: who made it, when, by which operation, and a line for each thing it altered."""

    id: int
    at: datetime | None
    actor: str
    operation: str
    lines: tuple[str, ...]


class ForgottenRecord(Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be. `unknown` lists what was named and does not exist."""

    change: int
    entities: tuple[str, ...]
    facts: int
    relations: int
    notes: tuple[str, ...]
    unknown: tuple[str, ...]


def flat_texts(texts: Iterable[str | Iterable[str]]) -> list[str]:
    """Return the texts, which may be in lists. Raise BadInput for anything else."""
    flat: list[str] = []
    for text in texts:
        flat += [text] if isinstance(text, str) else text
    for text in flat:
        if not isinstance(text, str):
            raise BadInput(f"a fact is a text, and this is one of type {type(text).__name__}")
    return flat


def to_datetime(at: int) -> datetime | None:
    """Return a model time as a datetime; None if it is unknown."""
    return datetime.fromtimestamp(at / 1_000_000, UTC) if at else None


def to_model_time(at: datetime | None) -> int:
    """Return a datetime as a model time; one without a time zone is local time. None is unknown."""
    return 0 if at is None else int(at.timestamp() * 1_000_000)


def entity_record(graph: Graph) -> EntityRecord:
    """Return the only entity of a graph with its relations."""
    (entity,) = graph.entities
    relations = []
    for relation in graph.relations:
        source, target, kind = relation.key
        relations.append(RelationRecord(source=source, type=kind, target=target))
    return EntityRecord(
        name=entity.name,
        type=entity.type,
        summary=entity.summary,
        tags=entity.tags,
        facts=tuple(
            FactRecord(
                ordinal=fact.ordinal,
                text=fact.text,
                recorded_at=to_datetime(fact.created_at),
                valid_at=to_datetime(fact.valid_at),
                source=fact.source,
            )
            for fact in entity.facts
        ),
        relations=tuple(relations),
        created_at=to_datetime(entity.created_at),
        updated_at=to_datetime(entity.updated_at),
    )


def search_hit(hit: Hit) -> SearchHit:
    passage = hit.passage
    return SearchHit(
        kind=passage.kind,
        name=passage.entity,
        type=passage.type,
        ordinal=max(passage.ordinal, 0),
        text=passage.text,
        score=hit.score,
        at=to_datetime(passage.valid_at or passage.created_at),
        is_weak=hit.is_weak,
    )


def note_record(note: Note) -> NoteRecord:
    return NoteRecord(
        key=note.key,
        content=note.content,
        tags=note.tags,
        created_at=to_datetime(note.created_at),
        updated_at=to_datetime(note.updated_at),
    )


def change_record(change: Change) -> ChangeRecord:
    return ChangeRecord(
        id=change.id,
        at=to_datetime(change.at),
        actor=change.actor,
        operation=change.operation,
        lines=tuple(difference.describe() for difference in differences(change)),
    )


def forgotten_record(receipt: ForgetReceipt) -> ForgottenRecord:
    return ForgottenRecord(
        change=receipt.change,
        entities=tuple(entity.name for entity in receipt.entities),
        facts=receipt.fact_count,
        relations=len(receipt.relations),
        notes=tuple(note.key for note in receipt.notes),
        unknown=receipt.unknown,
    )
