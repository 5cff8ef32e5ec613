"""Records of a binary log: encode a change, find the records of one in the bytes of a log.

A change is a list of operations (a kind and its strings). It is written as one or more records,
each with its own checksum. `docs/formats/binlog.md` describes the format. Nothing here touches a
file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from msgspec.structs import replace

from polymnia.model import Change, Entity, Fact, FactSet, Relation
from polymnia.stores.files.graph import MemoryGraph

(
    CREATE_ENTITY,
    CREATE_RELATION,
    ADD_OBSERVATIONS,
    DELETE_ENTITY,
    DELETE_OBSERVATIONS,
    DELETE_RELATION,
) = range(6)
# For each kind: how many strings come first, and whether a list of strings follows.
SHAPES = ((2, True), (3, False), (1, True), (1, False), (1, True), (3, False))
MAX_DATA_BYTES = 64 * 1024

HEADER = Struct("<IBI")
_NUMBER = Struct("<Q")
_header_at = HEADER.unpack_from
_number_at = _NUMBER.unpack_from
_MARK_SIZE = 1
# The mark is the last byte of the data: the kind and these flags.
_MORE, _CONTINUES, _SPLIT = 0x80, 0x40, 0x20
_KIND_BITS = 0x1F
# The rest of a record is the distance to the first record of its change, and the mark.
MAX_PAYLOAD_BYTES = MAX_DATA_BYTES - _NUMBER.size - _MARK_SIZE
_HEADER_LIKE = re.compile(rb"....[\x00-\x05]..[\x00\x01]\x00", re.DOTALL)

# A kind and its strings.
Operation = tuple[int, list[str]]
# A kind and its encoded strings.
Encoded = tuple[int, bytes]
_RECORDS_PER_CHUNK = 2000


class LogRecord(NamedTuple):
    """One record: its part of an operation, and its place in the change."""

    kind: int
    payload: bytes
    flags: int
    # Bytes between the start of the change and this record.
    distance: int
    end: int

    @property
    def is_last(self) -> bool:
        return not self.flags & _MORE

    @property
    def is_split(self) -> bool:
        """True if the operation continues in the next record."""
        return bool(self.flags & _SPLIT)


def encode_payload(strings: Sequence[str], listed: Sequence[bytes] | None = None) -> bytes:
    """Encode the strings of an operation, then its list if its kind has one."""
    parts: list[bytes] = []
    for text in strings:
        raw = text.encode()
        parts += (_NUMBER.pack(len(raw)), raw)
    if listed is not None:
        parts.append(_NUMBER.pack(len(listed)))
        for raw in listed:
            parts += (_NUMBER.pack(len(raw)), raw)
    return b"".join(parts)


def encode_change(operations: Sequence[tuple[int, bytes]]) -> bytes:
    """Encode kinds and payloads as the records of one change. A large payload is split."""
    pieces: list[tuple[int, bytes, int]] = []
    for kind, payload in operations:
        for start in range(0, len(payload), MAX_PAYLOAD_BYTES):
            end = start + MAX_PAYLOAD_BYTES
            pieces.append((kind, payload[start:end], _SPLIT if end < len(payload) else 0))
    records: list[bytes] = []
    size = 0
    for number, (kind, payload, flags) in enumerate(pieces):
        if number < len(pieces) - 1:
            flags |= _MORE
        if number:
            flags |= _CONTINUES
            payload += _NUMBER.pack(size)
        data = payload + bytes((kind | flags,))
        records.append(HEADER.pack(crc32(data), kind, len(data)) + data)
        size += len(records[-1])
    return b"".join(records)


def _record_size(*strings: str) -> int:
    """Return the size of a record of these strings and no list."""
    return HEADER.size + _MARK_SIZE + sum(_string_size(text) for text in strings)


def _string_size(text: str) -> int:
    """Return how many bytes a string takes in a record."""
    return _NUMBER.size + (len(text) if text.isascii() else len(text.encode()))


def list_room(*strings: str) -> int:
    """Return how many bytes a record with these strings has left for the items of a list."""
    return MAX_PAYLOAD_BYTES - _NUMBER.size - sum(_string_size(text) for text in strings)


def count_fitting(raws: Sequence[bytes], start: int, room: int) -> int:
    """Return the index after the last item that fits, counting from `start`."""
    for index in range(start, len(raws)):
        room -= _NUMBER.size + len(raws[index])
        if room < 0:
            return index
    return len(raws)


def change_at(data: bytes, at: int) -> tuple[list[Operation], int] | None:
    """Return the operations of the change at an offset, and its end; None if it is not whole."""
    checked = raw_record_at(data, at)
    if checked is None:
        return None
    kind, body = checked
    if body[-1] != kind:
        return _long_change_at(data, at)
    strings = parse_payload(kind, body, len(body) - 1)
    return None if strings is None else ([(kind, strings)], at + 9 + len(body))


def _long_change_at(data: bytes, start: int) -> tuple[list[Operation], int] | None:
    """Return a change of several records."""
    operations: list[Operation] = []
    pieces: list[bytes] = []
    kind = None
    for record in records_at(data, start):
        if kind not in (None, record.kind):
            return None
        pieces.append(record.payload)
        kind = record.kind
        if record.is_split:
            continue
        payload = b"".join(pieces)
        strings = parse_payload(kind, payload, len(payload))
        if strings is None:
            return None
        operations.append((kind, strings))
        if record.is_last:
            return operations, record.end
        pieces, kind = [], None
    return None


def records_at(data: bytes, start: int) -> Iterator[LogRecord]:
    """Return the whole records of the change at an offset, up to the first that is not."""
    at = start
    while (record := record_at(data, at)) is not None and record.distance == at - start:
        yield record
        if record.is_last:
            return
        at = record.end


def record_at(data: bytes, at: int) -> LogRecord | None:
    """Return the record at an offset; None unless its checksum and its mark are right."""
    checked = raw_record_at(data, at)
    if checked is None:
        return None
    kind, body = checked
    flags = body[-1] & ~_KIND_BITS
    if body[-1] & _KIND_BITS != kind or flags & (_MORE | _SPLIT) == _SPLIT:
        return None
    payload, distance = body[:-1], 0
    if flags & _CONTINUES:
        if len(payload) < _NUMBER.size:
            return None
        distance = _number_at(payload, len(payload) - _NUMBER.size)[0]
        payload = payload[: -_NUMBER.size]
    return LogRecord(kind, payload, flags, distance, at + HEADER.size + len(body))


def raw_record_at(data: bytes, at: int) -> tuple[int, bytes] | None:
    """Return the kind and data of the record at an offset; None without a valid checksum."""
    if len(data) - at < 9:
        return None
    checksum, kind, length = _header_at(data, at)
    if kind > DELETE_RELATION or not 0 < length <= MAX_DATA_BYTES:
        return None
    body = data[at + 9 : at + 9 + length]
    return (kind, body) if len(body) == length and crc32(body) == checksum else None


def next_record(
    data: bytes, at: int, find: Callable[[bytes, int], object] = record_at
) -> int | None:
    """Return the offset of the next whole record, at this offset or after it."""
    while (match := _HEADER_LIKE.search(data, at)) is not None:
        if find(data, match.start()) is not None:
            return match.start()
        at = match.start() + 1
    return None


def parse_payload(kind: int, data: bytes, end: int) -> list[str] | None:
    """Return the strings of an operation; None if they do not end exactly there."""
    count, has_list = SHAPES[kind]
    strings = []
    offset = 0
    try:
        for _ in range(count):
            (length,) = _number_at(data, offset)
            after = offset + 8 + length
            strings.append(data[offset + 8 : after].decode())
            offset = after
        if has_list:
            (count,) = _number_at(data, offset)
            offset += 8
            for _ in range(count):
                (length,) = _number_at(data, offset)
                after = offset + 8 + length
                strings.append(data[offset + 8 : after].decode())
                offset = after
    except (error, UnicodeDecodeError, OverflowError):
        return None
    return strings if offset == end else None


def encode_graph(entities: Sequence[Entity], relations: Sequence[Relation]) -> Iterator[bytes]:
    """Encode the smallest log of a graph in chunks: entities, then relations, a change each."""
    chunk: list[bytes] = []
    for entity in entities:
        chunk += [encode_change([creation]) for creation in _creations(entity)]
        if len(chunk) >= _RECORDS_PER_CHUNK:
            yield b"".join(chunk)
            chunk.clear()
    for relation in relations:
        chunk.append(encode_change([(CREATE_RELATION, encode_payload(relation.key))]))
        if len(chunk) >= _RECORDS_PER_CHUNK:
            yield b"".join(chunk)
            chunk.clear()
    yield b"".join(chunk)


def encode_operations(change: Change, graph: MemoryGraph) -> list[Encoded] | None:
    """Return the operations that led to the graph; None if no operations can express the change."""
    known = {entity.name for entity in change.before.entities}
    deleted = known - {entity.name for entity in change.after.entities}
    if not _is_expressible(change, graph, deleted):
        return None
    operations: list[Encoded] = []
    for name, texts in _texts_by_name(change.before.facts).items():
        operations += _split_texts(DELETE_OBSERVATIONS, name, list(dict.fromkeys(texts)))
    for relation in change.before.relations:
        if relation.source not in deleted and relation.target not in deleted:
            operations.append((DELETE_RELATION, encode_payload(relation.key)))
    for entity in change.after.entities:
        if entity.name not in known:
            operations += _creations(entity)
    for name, texts in _texts_by_name(change.after.facts).items():
        operations += _split_texts(ADD_OBSERVATIONS, name, texts)
    for relation in change.after.relations:
        operations.append((CREATE_RELATION, encode_payload(relation.key)))
    # Last: a reader that stops in the middle has too much rather than too little.
    for entity in change.before.entities:
        if entity.name in deleted:
            operations.append((DELETE_ENTITY, encode_payload((entity.name,))))
    return operations


def graph_size(graph: MemoryGraph) -> int:
    """Return about how many bytes the smallest log of a graph takes."""
    size = 0
    for entity in graph.entities():
        size += _record_size(entity.name, entity.type, *entity.texts)
    for relation in graph.relations():
        size += _record_size(*relation.key)
    return size


def _is_expressible(change: Change, graph: MemoryGraph, deleted: set[str]) -> bool:
    """Return False if an entity gets another name or type, or if a reader would get another graph.

    That is so if a deleted entity keeps relations, or if facts change their order.
    """
    types = {entity.name: entity.type for entity in change.before.entities}
    created = [entity for entity in change.after.entities if entity.name not in types]
    if (deleted and created) or graph.relations(deleted):
        return False
    for entity in change.after.entities:
        if types.get(entity.name, entity.type) != entity.type:
            return False
    removed = _texts_by_name(change.before.facts)
    added = _texts_by_name(change.after.facts)
    for name in removed | added:
        changed = graph.get(name)
        if changed is None:
            continue
        # Removing all equal texts and then appending must give exactly these texts.
        new_texts = added.get(name, [])
        old_texts = changed.texts[: len(changed.texts) - len(new_texts)]
        if changed.texts != (*old_texts, *new_texts) or set(removed.get(name, [])) & set(old_texts):
            return False
    return True


def _creations(entity: Entity) -> Iterator[Encoded]:
    """Create an entity with the facts that fit into one record, then add the others."""
    raws = [text.encode() for text in entity.texts]
    first = count_fitting(raws, 0, list_room(entity.name, entity.type))
    yield CREATE_ENTITY, encode_payload((entity.name, entity.type), raws[:first])
    yield from _split_texts(ADD_OBSERVATIONS, entity.name, entity.texts[first:])


def _split_texts(kind: int, name: str, texts: Sequence[str]) -> Iterator[Encoded]:
    """Distribute texts over operations that fit into one record each, if a text fits at all."""
    raws = [text.encode() for text in texts]
    start = 0
    while start < len(raws):
        end = max(count_fitting(raws, start, list_room(name)), start + 1)
        yield kind, encode_payload((name,), raws[start:end])
        start = end


def _texts_by_name(groups: Iterable[FactSet]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for group in groups:
        group_texts = [fact.text for fact in group.facts]
        texts.setdefault(group.entity, []).extend(group_texts)
    return texts


class Replay:
    """Applies operations to a graph.

    An operation that does not fit the graph (creates a known name, changes an unknown one) is
    ignored.
    """

    def __init__(self, graph: MemoryGraph) -> None:
        self._graph = graph
        # Facts to add to an entity together: one by one takes quadratic time.
        self._added: dict[str, list[str]] = {}

    def apply(self, operations: Iterable[Operation]) -> None:
        """Apply operations; unknown kinds are ignored. Call `finish` after the last one."""
        graph = self._graph
        for kind, strings in operations:
            if kind == CREATE_ENTITY:
                if graph.get(strings[0]) is None:
                    name, entity_type, *texts = strings
                    facts = tuple([Fact(ordinal, text) for ordinal, text in enumerate(texts, 1)])
                    graph.put(Entity(name, entity_type, facts, "", len(facts) + 1))
            elif kind == CREATE_RELATION:
                source, target, relation_type = strings
                graph.link(Relation(source, target, relation_type))
            elif kind == ADD_OBSERVATIONS:
                if graph.get(strings[0]) is not None:
                    self._added.setdefault(strings[0], []).extend(strings[1:])
            elif kind == DELETE_RELATION:
                source, target, relation_type = strings
                for key in graph.find_relations([(source, target, relation_type)]):
                    graph.unlink(key)
            elif kind in (DELETE_ENTITY, DELETE_OBSERVATIONS):
                name = strings[0]
                self._add_texts(name)
                entity = graph.get(name)
                if kind == DELETE_OBSERVATIONS and entity is not None:
                    deleted_texts = set(strings[1:])
                    kept = [fact for fact in entity.facts if fact.text not in deleted_texts]
                    graph.put(replace(entity, facts=tuple(kept)))
                elif kind == DELETE_ENTITY:
                    if entity is not None:
                        graph.remove(name)
                    for relation in graph.relations((name,)):
                        graph.unlink(relation.key)

    def finish(self) -> None:
        """Bring the graph up to date."""
        for name in list(self._added):
            self._add_texts(name)

    def _add_texts(self, name: str) -> None:
        texts = self._added.pop(name, ())
        entity = self._graph.get(name)
        if entity is not None and texts:
            added = [Fact(ordinal, text) for ordinal, text in enumerate(texts, entity.next_ordinal)]
            next_ordinal = entity.next_ordinal + len(added)
            with_texts = replace(entity, facts=(*entity.facts, *added), next_ordinal=next_ordinal)
            self._graph.put(with_texts)
