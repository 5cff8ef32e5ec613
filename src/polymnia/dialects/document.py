"""A whole memory as one JSON document: the graph in the camelCase shapes, and the notes of the vault."""

from collections.abc import Sequence

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import decode

from polymnia.dialects.base import indented_json
from polymnia.dialects.reference import tools as reference
from polymnia.dialects.times import iso_time, parse_time
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph, Note, Observation
from polymnia.search.embedding import pack_vector, unpack_vector

_FLOAT_BYTES = 4


class NoteShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str
    content: str
    tags: list[str] = []
    embedding: bytes = b""  # Base64 in JSON
    created_at: str | None = None
    updated_at: str | None = None


class OriginShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """When an observation was said or true, and where it comes from."""

    valid_at: str | None = None
    source: str = ""


class EntityShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An entity. `origins` is empty, or has one value for each observation."""

    name: str
    entity_type: str
    observations: list[str]
    origins: list[OriginShape] = []


class Document(Struct, frozen=True, omit_defaults=True):
    entities: list[EntityShape]
    relations: list[reference.RelationShape]
    notes: list[NoteShape] = []


class _Outline(Struct):
    """What distinguishes a document from other JSON."""

    entities: Raw
    relations: Raw


def encode_document(graph: Graph, notes: Sequence[Note]) -> bytes:
    """Return the document of a graph and the notes of the vault."""
    entities = [_entity_shape(each) for each in graph.entities]
    relations = reference.graph_shape(Graph([], graph.relations)).relations
    return indented_json(Document(entities, relations, [_note_shape(note) for note in notes])).encode() + b"\n"


def parse_document(data: bytes) -> tuple[Graph, list[Note]] | None:
    """Return the graph and the notes of a document; None for other JSON. Raise BadInput if the document is wrong."""
    try:
        document = decode(data, type=Document)
    except (DecodeError, UnicodeDecodeError) as exc:
        if _is_document(data):
            raise BadInput(f"not a valid export: {exc}") from exc
        return None
    entities = [_entity(each, f"entities[{index}]") for index, each in enumerate(document.entities)]
    graph = Graph(entities, [reference.relation(each) for each in document.relations])
    return graph, [_note(each, f"notes[{index}]") for index, each in enumerate(document.notes)]


def _is_document(data: bytes) -> bool:
    try:
        decode(data, type=_Outline)
    except (ValidationError, DecodeError, UnicodeDecodeError):
        return False
    return True


def _entity(shape: EntityShape, name: str) -> Entity:
    texts, count = shape.observations, len(shape.observations)
    if len(shape.origins) not in (0, count):
        raise BadInput(f"{name}.origins: expected one for each of the {count} observations, got {len(shape.origins)}")
    numbered = zip(range(1, count + 1), texts, shape.origins or [OriginShape()] * count, strict=True)
    observations = tuple([_observation(*each, name) for each in numbered])
    return Entity(shape.name, shape.entity_type, observations, next_ordinal=count + 1)


def _observation(ordinal: int, text: str, origin: OriginShape, name: str) -> Observation:
    valid_at = _parse_optional_time(origin.valid_at, f"{name}.origins[{ordinal - 1}].validAt")
    return Observation(ordinal, text, valid_at=valid_at, source=origin.source)


def _note(shape: NoteShape, name: str) -> Note:
    if not shape.key:
        raise BadInput(f"{name}.key: must not be empty")
    return Note(
        shape.key,
        shape.content,
        tuple(dict.fromkeys(shape.tags)),
        embedding=_check_embedding(shape.embedding, f"{name}.embedding"),
        created_at=_parse_optional_time(shape.created_at, f"{name}.createdAt"),
        updated_at=_parse_optional_time(shape.updated_at, f"{name}.updatedAt"),
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
    known = any(each.valid_at or each.source for each in entity.observations)
    origins = [OriginShape(iso_time(each.valid_at), each.source) for each in entity.observations] if known else []
    return EntityShape(entity.name, entity.type, list(entity.texts), origins)


def _note_shape(note: Note) -> NoteShape:
    times = (iso_time(note.created_at), iso_time(note.updated_at))
    return NoteShape(note.key, note.content, list(note.tags), note.embedding, *times)
