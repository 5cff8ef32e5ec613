"""Records of a binary log: encode a change, find the records of one in the bytes of a log.

A change is a list of operations (a kind and its strings). It is written as one or more records, each with its own
checksum. `docs/formats/binlog.md` describes the format. Nothing here touches a file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

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
# What a record can hold of an operation, beside the distance to the first record of its change and the mark.
MAX_PAYLOAD_BYTES = MAX_DATA_BYTES - _NUMBER.size - _MARK_SIZE
_HEADER_LIKE = re.compile(rb"....[\x00-\x05]..[\x00\x01]\x00", re.DOTALL)

# A kind and its strings.
Operation = tuple[int, list[str]]


class Record(NamedTuple):
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
    """Encode kinds and payloads as the records of one change. A payload too large for one record is split."""
    pieces = [piece for kind, payload in operations for piece in _split(kind, payload)]
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


def _split(kind: int, payload: bytes) -> Iterator[tuple[int, bytes, int]]:
    for start in range(0, len(payload), MAX_PAYLOAD_BYTES):
        end = start + MAX_PAYLOAD_BYTES
        yield kind, payload[start:end], _SPLIT if end < len(payload) else 0


def record_size(*strings: str) -> int:
    """Return the size of a record of these strings and no list."""
    return HEADER.size + _MARK_SIZE + sum([string_size(text) for text in strings])


def string_size(text: str) -> int:
    """Return how many bytes a string takes in a record."""
    return _NUMBER.size + (len(text) if text.isascii() else len(text.encode()))


def list_room(*strings: str) -> int:
    """Return how many bytes a record with these strings has left for the items of a list."""
    return MAX_PAYLOAD_BYTES - _NUMBER.size - sum([string_size(text) for text in strings])


def count_fitting(raws: Sequence[bytes], start: int, room: int) -> int:
    """Return the index after the last item that fits, counting from `start`."""
    for index in range(start, len(raws)):
        room -= _NUMBER.size + len(raws[index])
        if room < 0:
            return index
    return len(raws)


def change_at(data: bytes, at: int) -> tuple[list[Operation], int] | None:
    """Return the operations of the change at an offset, and the offset after it; None if it is not whole."""
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


def records_at(data: bytes, start: int) -> Iterator[Record]:
    """Return the whole records of the change at an offset, up to the first that is not."""
    at = start
    while (record := record_at(data, at)) is not None and record.distance == at - start:
        yield record
        if record.is_last:
            return
        at = record.end


def record_at(data: bytes, at: int) -> Record | None:
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
    return Record(kind, payload, flags, distance, at + HEADER.size + len(body))


def raw_record_at(data: bytes, at: int) -> tuple[int, bytes] | None:
    """Return the kind and data of a record at an offset, if its header is possible and its checksum right."""
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
