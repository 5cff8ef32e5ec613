"""A whole memory as one JSON document: entities, relations and notes as other programs know them, then the history.

Every element is on a line of its own, so a document is written and read without holding it in memory.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder, encode

from polymnia.dialects.document_rows import row_lines
from polymnia.dialects.times import iso_time, parse_time
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph, Note, Observation, Relation
from polymnia.search.embedding import pack_vector, unpack_vector
from polymnia.stores.contract import TableReader

HEADER = b'{"format":"polymnia","version":1'
SECTIONS = ("entities", "relations", "notes")
_FLOAT_BYTES = 4

S = TypeVar("S", bound=Struct)


class NoteShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str
    content: str
    tags: list[str] = []
    embedding: bytes = b""  # Base64 in JSON
    created_at: str | None = None
    updated_at: str | None = None


class OriginShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of an observation besides its text. Without an ordinal it is the one after its predecessor's."""

    ordinal: int = 0
    created_at: str | None = None
    valid_at: str | None = None
    source: str = ""


class EntityShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An entity. `origins` is empty, or has one value for each observation."""

    name: str
    entity_type: str
    observations: list[str]
    origins: list[OriginShape] = []
    id: str = ""
    next_ordinal: int = 0
    tags: list[str] = []
    summary: str | None = None
    summary_at: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class RelationShape(Struct, frozen=True, omit_defaults=True):
    source: str = field(name="from")
    target: str = field(name="to")
    type: str = field(name="relationType")
    created_at: str | None = field(name="createdAt", default=None)


_ENTITIES = Decoder(EntityShape)
_RELATIONS = Decoder(RelationShape)
_NOTES = Decoder(NoteShape)
_DECODERS: dict[str, Decoder[Any]] = {
    "entities": _ENTITIES,
    "relations": _RELATIONS,
    "notes": _NOTES,
}


def encode_document(graph: Graph, notes: Iterable[Note]) -> bytes:
    """Return the document of a graph and the notes of the vault, without a history."""
    return b"".join(document_lines(graph.entities, graph.relations, notes))


def document_lines(
    entities: Iterable[Entity],
    relations: Iterable[Relation],
    notes: Iterable[Note],
    tables: TableReader | None = None,
) -> Iterator[bytes]:
    """Yield the document of what is living and, if the store keeps versions, of all rows."""
    seal = sha256()
    shapes: tuple[Iterable[Struct], ...] = (
        map(_entity_shape, entities),
        map(_relation_shape, relations),
        map(_note_shape, notes),
    )
    yield HEADER
    for name, elements in zip(SECTIONS, shapes, strict=True):
        yield b',\n"%s":[' % name.encode()
        separator = b"\n"
        for element in elements:
            line = encode(element)
            seal.update(line)
            yield separator + line
            separator = b",\n"
        yield b"\n]"
    if tables is not None:
        yield from row_lines(tables, seal.hexdigest())
    yield b"}\n"


def canonical_element(section: str, data: bytes, place: str) -> bytes:
    """Return an element of a section as `document_lines` writes it. Raise BadInput."""
    return encode(_decode(_DECODERS[section], data, place))


def parse_entity(data: bytes, place: str) -> Entity:
    """Return an entity. Raise BadInput."""
    return _entity(_decode(_ENTITIES, data, place), place)


def parse_relation(data: bytes, place: str) -> Relation:
    """Return a relation. Raise BadInput."""
    shape = _decode(_RELATIONS, data, place)
    created_at = _parse_optional_time(shape.created_at, f"{place}.createdAt")
    return Relation(shape.source, shape.target, shape.type, created_at)


def parse_note(data: bytes, place: str) -> Note:
    """Return a note. Raise BadInput."""
    return _note(_decode(_NOTES, data, place), place)


def _decode(decoder: Decoder[S], data: bytes, place: str) -> S:
    try:
        return decoder.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"{place}: {exc}") from exc


def _entity(shape: EntityShape, place: str) -> Entity:
    observations = tuple(_observations(shape, place))
    last = observations[-1].ordinal if observations else 0
    return Entity(
        shape.name,
        shape.entity_type,
        observations,
        shape.id,
        max(shape.next_ordinal, last + 1),
        shape.summary,
        _parse_optional_time(shape.summary_at, f"{place}.summaryAt"),
        tuple(dict.fromkeys(shape.tags)),
        _parse_optional_time(shape.created_at, f"{place}.createdAt"),
        _parse_optional_time(shape.updated_at, f"{place}.updatedAt"),
    )


def _observations(shape: EntityShape, place: str) -> Iterator[Observation]:
    count = len(shape.observations)
    if len(shape.origins) not in (0, count):
        raise BadInput(
            f"{place}.origins: expected one for each of the {count} observations, got {len(shape.origins)}"
        )
    last, origins = 0, shape.origins or [OriginShape()] * count
    for number, (text, origin) in enumerate(zip(shape.observations, origins, strict=True)):
        where = f"{place}.origins[{number}]"
        if origin.ordinal and origin.ordinal <= last:
            raise BadInput(f"{where}.ordinal: expected more than {last}, got {origin.ordinal}")
        last = origin.ordinal or last + 1
        created_at = _parse_optional_time(origin.created_at, f"{where}.createdAt")
        valid_at = _parse_optional_time(origin.valid_at, f"{where}.validAt")
        yield Observation(last, text, created_at, valid_at, origin.source)


def _note(shape: NoteShape, place: str) -> Note:
    if not shape.key:
        raise BadInput(f"{place}.key: must not be empty")
    return Note(
        shape.key,
        shape.content,
        tuple(dict.fromkeys(shape.tags)),
        embedding=_check_embedding(shape.embedding, f"{place}.embedding"),
        created_at=_parse_optional_time(shape.created_at, f"{place}.createdAt"),
        updated_at=_parse_optional_time(shape.updated_at, f"{place}.updatedAt"),
    )


def _check_embedding(embedding: bytes, name: str) -> bytes:
    if not embedding:
        return b""
    if len(embedding) % _FLOAT_BYTES:
        raise BadInput(f"{name}: expected 32-bit floats, got {len(embedding)} bytes")
    return pack_vector(unpack_vector(embedding), len(embedding) // _FLOAT_BYTES, name)


def _parse_optional_time(text: str | None, name: str) -> int:
    return 0 if text is None else parse_time(text, name)


def _entity_shape(entity: Entity) -> EntityShape:
    last = entity.observations[-1].ordinal if entity.observations else 0
    return EntityShape(
        entity.name,
        entity.type,
        list(entity.texts),
        _origins(entity),
        entity.id,
        entity.next_ordinal if entity.next_ordinal > last + 1 else 0,
        list(entity.tags),
        entity.summary,
        iso_time(entity.summary_at),
        iso_time(entity.created_at),
        iso_time(entity.updated_at),
    )


def _origins(entity: Entity) -> list[OriginShape]:
    """Return the ordinals, times and sources of the observations; nothing if none has any to keep."""
    last = 0
    origins: list[OriginShape] = []
    for each in entity.observations:
        ordinal = each.ordinal if each.ordinal != last + 1 else 0
        origins.append(
            OriginShape(ordinal, iso_time(each.created_at), iso_time(each.valid_at), each.source)
        )
        last = each.ordinal
    return origins if any(each != OriginShape() for each in origins) else []


def _relation_shape(relation: Relation) -> RelationShape:
    return RelationShape(*relation.key, iso_time(relation.created_at))


def _note_shape(note: Note) -> NoteShape:
    times = (iso_time(note.created_at), iso_time(note.updated_at))
    return NoteShape(note.key, note.content, list(note.tags), note.embedding, *times)
