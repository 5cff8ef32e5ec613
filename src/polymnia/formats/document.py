"""A whole memory as one JSON document: its entities, relations and notes, and then its history.

Every element is on a line of its own, so a document is written and read without holding it in
memory.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Annotated, Any, TypeVar

from msgspec import DecodeError, Meta, Struct, field, msgpack
from msgspec.json import Decoder, encode

from polymnia.errors import BadInput
from polymnia.formats.times import iso_time, parse_time
from polymnia.model import Entity, Fact, Graph, Note, Relation
from polymnia.search.embedding import pack_vector, unpack_vector
from polymnia.stores.contract import TABLES, ReadRows, TableRow

VERSION = 1
HEADER = b'{"format":"polymnia","version":%d' % VERSION
SECTIONS = ("entities", "relations", "notes")
_FLOAT_BYTES = 4

T = TypeVar("T")


class NoteShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str
    content: str
    tags: list[str] = []
    embedding: bytes = b""  # Base64 in JSON
    created_at: str | None = None
    updated_at: str | None = None


class OriginShape(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a fact besides its text.

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
_DECODERS: dict[str, Decoder[Any]] = {
    "entities": _ENTITIES,
    "relations": _RELATIONS,
    "notes": _NOTES,
}


Number = Annotated[int, Meta(ge=-(2**62), le=2**62)]
Tags = tuple[str, ...] | None
# The types of the values of a row, for each table of the history.
_ROWS: dict[str, Any] = {
    "changes": tuple[Number, Number, str, str, str, Number],
    "purges": tuple[Number],
    "marks": tuple[str, Number, Number],
    "entities": tuple[Number, str, Number, Number, Number],
    "updates": tuple[Number, Number, Number],
    "cards": tuple[
        Number,
        Number,
        str,
        str,
        str | None,
        Number | None,
        Tags,
        Number,
        Tags,
        Number | None,
        str | None,
        Number | None,
        Number,
        Number | None,
    ],
    "observations": tuple[
        Number,
        Number,
        Number,
        str,
        Number,
        Number | None,
        str | None,
        Number | None,
        str | None,
        Number,
        Number | None,
    ],
    "relations": tuple[Number, str, str, str, Number, Number, Number | None],
    "notes": tuple[Number, str, str, Tags, Number, Number, Number, Number | None],
    "models": tuple[Number, str, str, Number, float | None, float | None],
    "templates": tuple[Number, str],
    "perspectives": tuple[Number, str, Number, str],
    "vectors": tuple[Number, Number, Number, bytes],
}
_ROW_DECODERS = {table: Decoder(shape) for table, shape in _ROWS.items()}
# The `url` of the models whose vectors clients supplied.
_CLIENT = "client"
_NUL = b"\\u0000"
_MODEL_OF_VECTOR = TABLES["vectors"].index("model")
_URL_OF_MODEL = TABLES["models"].index("url")


def encode_document(graph: Graph, notes: Iterable[Note]) -> bytes:
    """Return the document of a graph and the notes of the vault, without a history."""
    return b"".join(document_lines(graph.entities, graph.relations, notes))


def document_lines(
    entities: Iterable[Entity],
    relations: Iterable[Relation],
    notes: Iterable[Note],
    read_rows: ReadRows | None = None,
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
    if read_rows is not None:
        yield from _history_lines(read_rows, seal.hexdigest())
    yield b"}\n"


def _history_lines(read_rows: ReadRows, seal: str) -> Iterator[bytes]:
    """Yield the member `history` of a document whose other elements have this checksum."""
    checksum = sha256()
    yield b',\n"history":{"tables":{'
    comma = b""
    for table, columns in TABLES.items():
        yield b'%s\n"%s":{"columns":%s,"rows":[' % (comma, table.encode(), encode(columns))
        comma = b","
        separator = b"\n"
        for row in _exported_rows(read_rows, table):
            checksum.update(msgpack.encode(row))
            yield separator + encode(row)
            separator = b",\n"
        yield b"\n]}"
    yield b'\n},"document":"%s","rows":"%s"}' % (seal.encode(), checksum.hexdigest().encode())


def _exported_rows(read_rows: ReadRows, table: str) -> Iterator[TableRow]:
    """Yield the rows of a table, except the vectors that an embedder can make again."""
    if table != "vectors":
        return read_rows(table)
    client_models = {row[0] for row in read_rows("models") if row[_URL_OF_MODEL] == _CLIENT}
    return (row for row in read_rows(table) if row[_MODEL_OF_VECTOR] in client_models)


def parse_row(table: str, data: bytes, place: str) -> TableRow:
    """Return a row of a table. Raise BadInput."""
    row: TableRow = _decode(_ROW_DECODERS[table], data, place)
    if _NUL in data:  # or an escaped backslash before "u0000"
        for value in row:
            if isinstance(value, str | tuple) and "\x00" in "".join(value):
                problem = "a text contains a NUL character (U+0000), which cannot be stored"
                raise BadInput(f"{place}: {problem}; remove it")
    return row


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


def _decode(decoder: Decoder[T], data: bytes, place: str) -> T:
    try:
        return decoder.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"{place}: {exc}") from exc


def _entity(shape: EntityShape, place: str) -> Entity:
    facts = tuple(_facts(shape, place))
    last_ordinal = facts[-1].ordinal if facts else 0
    return Entity(
        shape.name,
        shape.entity_type,
        facts,
        shape.id,
        max(shape.next_ordinal, last_ordinal + 1),
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


def _facts(shape: EntityShape, place: str) -> Iterator[Fact]:
    count = len(shape.observations)
    origins = shape.origins or [OriginShape()] * count
    if len(origins) != count:
        expected = f"expected one for each of the {count} observations"
        raise BadInput(f"{place}.origins: {expected}, got {len(origins)}")
    ordinal = 0
    for number, (text, origin) in enumerate(zip(shape.observations, origins, strict=True)):
        where = f"{place}.origins[{number}]"
        if origin.ordinal and origin.ordinal <= ordinal:
            raise BadInput(f"{where}.ordinal: expected more than {ordinal}, got {origin.ordinal}")
        ordinal = origin.ordinal or ordinal + 1
        created_at = _parse_optional_time(origin.created_at, f"{where}.createdAt")
        valid_at = _parse_optional_time(origin.valid_at, f"{where}.validAt")
        expires = _parse_optional_time(origin.expires, f"{where}.expires")
        yield Fact(ordinal, text, created_at, valid_at, origin.source, expires, origin.author)


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
    last_ordinal = entity.facts[-1].ordinal if entity.facts else 0
    next_ordinal = 0  # the one after the last
    if entity.next_ordinal > last_ordinal + 1:
        next_ordinal = entity.next_ordinal
    return EntityShape(
        entity.name,
        entity.type,
        list(entity.texts),
        _origins(entity),
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


def _origins(entity: Entity) -> list[OriginShape]:
    """Return the ordinals, times and sources of the facts; nothing if all are unknown."""
    origins: list[OriginShape] = []
    expected_ordinal = 1
    for fact in entity.facts:
        ordinal = 0
        if fact.ordinal != expected_ordinal:
            ordinal = fact.ordinal
        times = (iso_time(fact.created_at), iso_time(fact.valid_at))
        expires = iso_time(fact.expires)
        origins.append(OriginShape(ordinal, *times, fact.source, expires, fact.author))
        expected_ordinal = fact.ordinal + 1
    if all(origin == OriginShape() for origin in origins):
        return []
    return origins


def _relation_shape(relation: Relation) -> RelationShape:
    return RelationShape(*relation.key, iso_time(relation.created_at))


def _note_shape(note: Note) -> NoteShape:
    times = (iso_time(note.created_at), iso_time(note.updated_at))
    return NoteShape(note.key, note.content, list(note.tags), note.embedding, *times)
