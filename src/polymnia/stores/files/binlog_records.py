"""Records of a binary log: spelling them, reading them, and telling an unfinished end from damage.

`docs/formats/binlog.md` describes the format. A record is a kind and strings; nothing here touches a file.
"""

from collections.abc import Callable, Iterator, Sequence
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from polymnia.model import Entity, Relation

CREATE_ENTITY, CREATE_RELATION, ADD_OBSERVATIONS, DELETE_ENTITY, DELETE_OBSERVATIONS, DELETE_RELATION = range(6)
# How many strings the data of each kind begins with, and whether a list of more follows.
SHAPES = ((2, True), (3, False), (1, True), (1, False), (1, True), (3, False))
# The most data a record may have.
LIMIT = 64 * 1024

_HEADER = Struct("<IBI")
_LENGTH = Struct("<Q")
_header_at = _HEADER.unpack_from
_length_at = _LENGTH.unpack_from
# The kind once more, after the strings: the checksum covers the data alone.
_MARK_SIZE = 1
_RECORDS_PER_CHUNK = 2000

# Kind, strings and the offset after a record; None where no whole record is.
Found = tuple[int, list[str], int]
WholeAt = Callable[[bytes, int], Found | None]


class Fault(NamedTuple):
    """Why no whole record could be read: a write that did not finish, or damage."""

    reason: str
    torn: bool


def encode(kind: int, strings: Sequence[str], listed: Sequence[bytes] | None = None) -> bytes:
    """One record; the caller has seen to it that it fits."""
    parts: list[bytes] = []
    for text in strings:
        raw = text.encode()
        parts += (_LENGTH.pack(len(raw)), raw)
    if listed is not None:
        parts.append(_LENGTH.pack(len(listed)))
        for raw in listed:
            parts += (_LENGTH.pack(len(raw)), raw)
    parts.append(bytes((kind,)))
    data = b"".join(parts)
    return _HEADER.pack(crc32(data), kind, len(data)) + data


def room(*strings: str) -> int:
    """The bytes that data of these strings leaves; below 0 it does not fit."""
    return LIMIT + _HEADER.size - record_size(*strings)


def room_for_list(*strings: str) -> int:
    """The bytes that data of these strings leaves for the items of a list."""
    return room(*strings) - _LENGTH.size


def encode_entity(name: str, kind: str, texts: Sequence[str]) -> Iterator[bytes]:
    """The record that creates an entity, then records that add the observations it has no room for."""
    raws = [text.encode() for text in texts]
    first = _fitting(raws, 0, room_for_list(name, kind))
    yield encode(CREATE_ENTITY, (name, kind), raws[:first])
    yield from encode_texts(ADD_OBSERVATIONS, name, texts[first:])


def encode_texts(kind: int, name: str, texts: Sequence[str]) -> Iterator[bytes]:
    """As many records as it takes to add to an entity, or take from it, these observations."""
    raws = [text.encode() for text in texts]
    start = 0
    while start < len(raws):
        end = max(_fitting(raws, start, room_for_list(name)), start + 1)
        yield encode(kind, (name,), raws[start:end])
        start = end


def encode_graph(entities: Sequence[Entity], relations: Sequence[Relation]) -> Iterator[bytes]:
    """The smallest log of a graph, in pieces: all entities, then all relations."""
    chunk: list[bytes] = []
    for entity in entities:
        chunk += encode_entity(entity.name, entity.type, entity.texts)
        if len(chunk) >= _RECORDS_PER_CHUNK:
            yield b"".join(chunk)
            chunk.clear()
    yield b"".join(chunk)
    for start in range(0, len(relations), _RECORDS_PER_CHUNK):
        several = relations[start : start + _RECORDS_PER_CHUNK]
        yield b"".join([encode(CREATE_RELATION, relation.key) for relation in several])


def entity_size(entity: Entity) -> int:
    """What an entity and its observations take in a log, splitting aside."""
    return record_size(entity.name, entity.type, *entity.texts) + _LENGTH.size


def record_size(*strings: str) -> int:
    """What a record of these strings and no list takes."""
    return _HEADER.size + _MARK_SIZE + sum([_LENGTH.size + size(text) for text in strings])


def size(text: str) -> int:
    """Its length in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def whole_at(data: bytes, at: int) -> Found | None:
    """The record at an offset."""
    checked = _checked_at(data, at)
    if checked is None:
        return None
    kind, body = checked
    found = _strings(kind, body)
    if found is None or found[1] != len(body) - 1 or body[-1] != kind:
        return None
    return kind, found[0], at + 9 + len(body)


def plain_at(data: bytes, at: int) -> Found | None:
    """The record at an offset in a log whose writer did not repeat the kind after the data."""
    checked = _checked_at(data, at)
    if checked is None:
        return None
    kind, body = checked
    found = _strings(kind, body)
    return (kind, found[0], at + 9 + len(body)) if found and found[1] == len(body) else None


def fault_at(data: bytes, at: int, whole: WholeAt = whole_at, mark_size: int = _MARK_SIZE) -> Fault:
    """What is wrong at an offset where there is no whole record."""
    left = len(data) - at
    unfinished = Fault(f"{left} bytes of a record that was not finished", torn=True)
    if left < _HEADER.size or not data[at:].strip(b"\x00"):
        return unfinished
    checksum, kind, length = _header_at(data, at)
    if kind >= len(SHAPES):
        return Fault(f"there is no record kind {kind}", torn=False)
    if length > LIMIT:
        return Fault(f"a record of {length} bytes, which is more than {LIMIT}", torn=False)
    body = data[at + 9 :]
    if length <= len(body):
        wrong = crc32(body[:length]) != checksum
        return Fault("the checksum is wrong" if wrong else f"the data is not that of kind {kind}", torn=False)
    if _is_whole(body, kind, checksum, mark_size) or next_whole(data, at + 1, whole) is not None:
        return Fault(f"a length of {length} bytes leads past the end", torn=False)
    return unfinished


def next_whole(data: bytes, at: int, whole: WholeAt) -> int | None:
    """Where the next record of a known kind is, at this offset or after it."""
    for offset in range(at, len(data)):
        found = whole(data, offset)
        if found is not None and found[0] < len(SHAPES):
            return offset
    return None


def _fitting(raws: Sequence[bytes], start: int, space: int) -> int:
    """The place after the last of the texts, from a start on, that fit into so many bytes."""
    for place in range(start, len(raws)):
        space -= _LENGTH.size + len(raws[place])
        if space < 0:
            return place
    return len(raws)


def _checked_at(data: bytes, at: int) -> tuple[int, bytes] | None:
    """Kind and data of what has a possible header and the right checksum."""
    if len(data) - at < 9:
        return None
    checksum, kind, length = _header_at(data, at)
    if kind > DELETE_RELATION or length > LIMIT:
        return None
    body = data[at + 9 : at + 9 + length]
    return (kind, body) if len(body) == length and crc32(body) == checksum else None


def _strings(kind: int, body: bytes) -> tuple[list[str], int] | None:
    """The strings the data begins with and where they end; None when it has not the kind's shape."""
    count, listed = SHAPES[kind]
    strings = []
    place = 0
    try:
        for _ in range(count):
            (length,) = _length_at(body, place)
            end = place + 8 + length
            strings.append(body[place + 8 : end].decode())
            place = end
        if listed:
            (count,) = _length_at(body, place)
            place += 8
            for _ in range(count):
                (length,) = _length_at(body, place)
                end = place + 8 + length
                strings.append(body[place + 8 : end].decode())
                place = end
    except (error, UnicodeDecodeError, OverflowError):
        return None
    return strings, place


def _is_whole(body: bytes, kind: int, checksum: int, mark_size: int) -> bool:
    """Whether a record is all there, whatever its header says of its length."""
    found = _strings(kind, body)
    if found is None:
        return False
    end = found[1] + mark_size
    return end <= len(body) and crc32(body[:end]) == checksum
