"""A whole memory as one JSON document: the graph as the camelCase catalogues spell it, and the vault's notes."""

from collections.abc import Sequence

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import decode

from polymnia.dialects import camel
from polymnia.dialects.base import indented
from polymnia.dialects.times import iso_time
from polymnia.dialects.vault.moment import microseconds
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph, Note, Observation
from polymnia.search.embedding import packed, unpacked

_NUMBER_BYTES = 4


class NoteShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str
    content: str
    tags: list[str] = []
    embedding: bytes = b""  # in JSON it is Base64
    created_at: str | None = None
    updated_at: str | None = None


class Document(Struct, frozen=True, omit_defaults=True):
    entities: list[camel.EntityShape]
    relations: list[camel.RelationShape]
    notes: list[NoteShape] = []


class _Outline(Struct):
    """What tells a document from any other JSON."""

    entities: Raw
    relations: Raw


def spelled(graph: Graph, notes: Sequence[Note]) -> bytes:
    """The document of a graph and the vault's notes."""
    shape = camel.graph_shape(graph)
    return indented(Document(shape.entities, shape.relations, [_note_shape(note) for note in notes])).encode() + b"\n"


def parsed(data: bytes) -> tuple[Graph, list[Note]] | None:
    """The graph and the notes of a document; None when it is none. Raises BadInput when it is one with a mistake."""
    try:
        document = decode(data, type=Document)
    except (DecodeError, UnicodeDecodeError) as exc:
        if _is_document(data):
            raise BadInput(f"not as an export writes it: {exc}") from exc
        return None
    graph = Graph([_entity(each) for each in document.entities], [camel.relation(each) for each in document.relations])
    return graph, [_note(each, f"notes[{place}]") for place, each in enumerate(document.notes)]


def _is_document(data: bytes) -> bool:
    try:
        decode(data, type=_Outline)
    except (ValidationError, DecodeError, UnicodeDecodeError):
        return False
    return True


def _entity(shape: camel.EntityShape) -> Entity:
    observations = tuple([Observation(place, text) for place, text in enumerate(shape.observations, 1)])
    return Entity(shape.name, shape.entity_type, observations, next_ordinal=len(observations) + 1)


def _note(shape: NoteShape, name: str) -> Note:
    if not shape.key:
        raise BadInput(f"{name}.key: must not be empty")
    return Note(
        shape.key,
        shape.content,
        tuple(dict.fromkeys(shape.tags)),
        embedding=_checked(shape.embedding, f"{name}.embedding"),
        created_at=_moment(shape.created_at, f"{name}.createdAt"),
        updated_at=_moment(shape.updated_at, f"{name}.updatedAt"),
    )


def _checked(embedding: bytes, name: str) -> bytes:
    if not embedding:
        return b""
    if len(embedding) % _NUMBER_BYTES:
        raise BadInput(f"{name}: expected 32-bit floats, got {len(embedding)} bytes")
    return packed(unpacked(embedding), len(embedding) // _NUMBER_BYTES, name)


def _moment(text: str | None, name: str) -> int:
    return 0 if text is None else microseconds(text, name)


def _note_shape(note: Note) -> NoteShape:
    times = (iso_time(note.created_at), iso_time(note.updated_at))
    return NoteShape(note.key, note.content, list(note.tags), note.embedding, *times)
