"""What is living in a memory, as one JSON document: its entities, relations and notes.

Every element is on a line of its own, so a document is written without holding it in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder, encode

from polymnia.errors import BadInput
from polymnia.model import VAULT, Entity, Fact, Graph, Note, Relation
from polymnia.search.embedding import pack_vector, unpack_vector
from polymnia.search.times import iso_time, parse_time
from polymnia.stores.contract import Reader, Store

VERSION = 1
HEADER = b'{"format":"polymnia","version":%d' % VERSION

T = TypeVar("T")


class NoteShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str
    content: str
    tags: list[str] = []
    embedding: bytes = b""  # Base64 in JSON
    created_at: str | None = None
    updated_at: str | None = None


class OriginShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a document says about a fact besides its text.

    Without an ordinal it is the one after its predecessor's.
    """

    ordinal: int = 0
    created_at: str | None = None
    valid_at: str | None = None
    source: str = ""
    expires: str | None = None
    author: str = ""


class EntityShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An entity. `origins` is empty, or has one value for each fact."""

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
    aliases: list[str] = []
    due: str | None = None
    status: str = ""
    expires: str | None = None


class RelationShape(Struct, frozen=True, omit_defaults=True):
    source: str = field(name="from")
    target: str = field(name="to")
    type: str = field(name="relationType")
    created_at: str | None = field(name="createdAt", default=None)


_ENTITIES = Decoder(EntityShape)
_RELATIONS = Decoder(RelationShape)
_NOTES = Decoder(NoteShape)


def encode_document(graph: Graph, notes: Iterable[Note]) -> bytes:
    """Return the document of a graph and the notes of the vault."""
    return b"".join(document_lines(graph.entities, graph.relations, notes))


def document_lines(
    entities: Iterable[Entity], relations: Iterable[Relation], notes: Iterable[Note]
) -> Iterator[bytes]:
    """Yield the document piece by piece."""
    sections: dict[str, Iterable[Struct]] = {
        "entities": map(_entity_shape, entities),
        "relations": (
            RelationShape(*relation.key, iso_time(relation.created_at)) for relation in relations
        ),
        "notes": map(_note_shape, notes),
    }
    yield HEADER
    for name, elements in sections.items():
        yield b',\n"%s":[' % name.encode()
        separator = b"\n"
        for element in elements:
            yield separator + encode(element)
            separator = b",\n"
        yield b"\n]"
    yield b"}\n"


def memory_lines(store: Store, read: Reader) -> Iterator[bytes]:
    """Yield the document of everything that lives in a store."""
    page_size = 2_000
    entities = _read_pages(lambda offset: read.entities(offset=offset, limit=page_size))
    return document_lines(
        entities, living_relations(store, read), living_notes(store, read, page_size)
    )


def living_relations(store: Store, read: Reader) -> Iterator[Relation]:
    """Yield the relations in order of creation."""
    if not store.capabilities.tables:
        yield from read.relations()
        return
    # A table is read row by row: a large graph has more relations than fit in memory.
    for _, source, target, kind, created_at, _, until in read.read_rows("relations"):
        if until is None:
            yield Relation(source, target, kind, created_at)


def living_notes(store: Store, read: Reader, page_size: int = 2_000) -> Iterator[Note]:
    """Yield the vault's notes with their embeddings, oldest first; none without notes."""
    if store.capabilities.notes:
        notes = read.notes
        yield from _read_pages(lambda offset: notes.notes(VAULT, offset=offset, limit=page_size))


def _read_pages(read: Callable[[int], list[T]]) -> Iterator[T]:
    """Yield the items of all pages until one is empty."""
    offset = 0
    while page := read(offset):
        yield from page
        offset += len(page)


def parse_entity(data: bytes, place: str) -> Entity:
    """Return an entity. Raise BadInput."""
    shape = _decode(_ENTITIES, data, place)
    count = len(shape.observations)
    origins = shape.origins or [OriginShape()] * count
    if len(origins) != count:
        expected = f"expected one for each of the {count} observations"
        raise BadInput(f"{place}.origins: {expected}, got {len(origins)}")
    facts = []
    ordinal = 0
    for number, (text, origin) in enumerate(zip(shape.observations, origins, strict=True)):
        where = f"{place}.origins[{number}]"
        if origin.ordinal and origin.ordinal <= ordinal:
            raise BadInput(f"{where}.ordinal: expected more than {ordinal}, got {origin.ordinal}")
        ordinal = origin.ordinal or ordinal + 1
        created_at = _parse_optional_time(origin.created_at, f"{where}.createdAt")
        valid_at = _parse_optional_time(origin.valid_at, f"{where}.validAt")
        expires = _parse_optional_time(origin.expires, f"{where}.expires")
        fact = Fact(ordinal, text, created_at, valid_at, origin.source, expires, origin.author)
        facts.append(fact)
    return Entity(
        shape.name,
        shape.entity_type,
        tuple(facts),
        shape.id,
        max(shape.next_ordinal, ordinal + 1),
        shape.summary,
        _parse_optional_time(shape.summary_at, f"{place}.summaryAt"),
        tuple(dict.fromkeys(shape.tags)),
        _parse_optional_time(shape.created_at, f"{place}.createdAt"),
        _parse_optional_time(shape.updated_at, f"{place}.updatedAt"),
        tuple(dict.fromkeys(shape.aliases)),
        _parse_optional_time(shape.due, f"{place}.due"),
        shape.status,
        _parse_optional_time(shape.expires, f"{place}.expires"),
    )


def parse_relation(data: bytes, place: str) -> Relation:
    """Return a relation. Raise BadInput."""
    shape = _decode(_RELATIONS, data, place)
    created_at = _parse_optional_time(shape.created_at, f"{place}.createdAt")
    return Relation(shape.source, shape.target, shape.type, created_at)


def parse_note(data: bytes, place: str) -> Note:
    """Return a note. Raise BadInput."""
    shape = _decode(_NOTES, data, place)
    if not shape.key:
        raise BadInput(f"{place}.key: must not be empty")
    vector, float_bytes = shape.embedding, 4
    if len(vector) % float_bytes:
        raise BadInput(f"{place}.embedding: expected 32-bit floats, got {len(vector)} bytes")
    if vector:
        size = len(vector) // float_bytes
        vector = pack_vector(unpack_vector(vector), size, f"{place}.embedding")
    return Note(
        shape.key,
        shape.content,
        tuple(dict.fromkeys(shape.tags)),
        embedding=vector,
        created_at=_parse_optional_time(shape.created_at, f"{place}.createdAt"),
        updated_at=_parse_optional_time(shape.updated_at, f"{place}.updatedAt"),
    )


def _decode(decoder: Decoder[T], data: bytes, place: str) -> T:
    try:
        return decoder.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"{place}: {exc}") from exc


def _parse_optional_time(text: str | None, name: str) -> int:
    return 0 if text is None else parse_time(text, name)


def _entity_shape(entity: Entity) -> EntityShape:
    origins: list[OriginShape] = []
    expected_ordinal = 1
    for fact in entity.facts:
        ordinal = fact.ordinal if fact.ordinal != expected_ordinal else 0
        times = (iso_time(fact.created_at), iso_time(fact.valid_at))
        expires = iso_time(fact.expires)
        origins.append(OriginShape(ordinal, *times, fact.source, expires, fact.author))
        expected_ordinal = fact.ordinal + 1
    if all(origin == OriginShape() for origin in origins):
        origins = []
    next_ordinal = 0  # the one after the last
    if entity.next_ordinal > expected_ordinal:
        next_ordinal = entity.next_ordinal
    return EntityShape(
        entity.name,
        entity.type,
        list(entity.texts),
        origins,
        entity.id,
        next_ordinal,
        list(entity.tags),
        entity.summary,
        iso_time(entity.summary_at),
        iso_time(entity.created_at),
        iso_time(entity.updated_at),
        list(entity.aliases),
        iso_time(entity.due),
        entity.status,
        iso_time(entity.expires),
    )


def _note_shape(note: Note) -> NoteShape:
    times = (iso_time(note.created_at), iso_time(note.updated_at))
    return NoteShape(note.key, note.content, list(note.tags), note.embedding, *times)
