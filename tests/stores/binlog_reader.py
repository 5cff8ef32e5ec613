"""A reader of binary logs written from docs/formats/binlog.md alone.

It shares no code with the store.
"""

import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple[str, str, str]
MORE, CONTINUES, SPLIT = 0x80, 0x40, 0x20
STRINGS = {0: 2, 1: 3, 2: 1, 3: 1, 4: 1, 5: 3}


@dataclass
class Picture:
    """Return the graph of a log."""

    entities: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    relations: list[Key] = field(default_factory=list)


class Record(NamedTuple):
    kind: int
    payload: bytes
    flags: int
    distance: int
    end: int


def read_log(data: bytes) -> Picture:
    """Apply every change."""
    picture = Picture()
    at = 0
    while at < len(data):
        operations, at = read_change(data, at)
        for kind, strings in operations:
            apply(picture, kind, strings)
    return picture


def record_ends(data: bytes) -> list[int]:
    """Return where each record ends."""
    found = [0]
    while found[-1] < len(data):
        found.append(read_record(data, found[-1]).end)
    return found[1:]


def change_ends(data: bytes) -> list[int]:
    """Return where each change ends."""
    found = [0]
    while found[-1] < len(data):
        found.append(read_change(data, found[-1])[1])
    return found[1:]


def read_change(data: bytes, start: int) -> tuple[list[tuple[int, list[str]]], int]:
    operations = []
    payload = b""
    at = start
    while True:
        record = read_record(data, at)
        assert record.distance == at - start
        assert bool(record.flags & CONTINUES) == (at > start)
        payload += record.payload
        at = record.end
        if record.flags & SPLIT:
            assert record.flags & MORE
            continue
        operations.append((record.kind, read_strings(record.kind, payload)))
        payload = b""
        if not record.flags & MORE:
            return operations, at


def read_record(data: bytes, at: int) -> Record:
    checksum, kind, length = number(data, at, 4), data[at + 4], number(data, at + 5, 4)
    body = data[at + 9 : at + 9 + length]
    assert 1 <= len(body) == length <= 65_536
    assert zlib.crc32(body) == checksum
    mark, payload, distance = body[-1], body[:-1], 0
    assert mark & 0x1F == kind
    if mark & CONTINUES:
        payload, distance = body[:-9], number(body, len(body) - 9, 8)
    return Record(kind, payload, mark & 0xE0, distance, at + 9 + length)


def read_strings(kind: int, payload: bytes) -> list[str]:
    strings, place = [], 0
    for _ in range(STRINGS[kind]):
        text, place = string(payload, place)
        strings.append(text)
    if kind in (0, 2, 4):
        count, place = number(payload, place, 8), place + 8
        for _ in range(count):
            text, place = string(payload, place)
            strings.append(text)
    assert place == len(payload)
    return strings


def apply(picture: Picture, kind: int, strings: list[str]) -> None:
    name, rest = strings[0], strings[1:]
    entities, relations = picture.entities, picture.relations
    key = (*strings,)
    if kind == 0:
        entities.setdefault(name, (rest[0], rest[1:]))
    elif kind == 1 and key not in relations:
        relations.append((strings[0], strings[1], strings[2]))
    elif kind == 2 and name in entities:
        entities[name][1].extend(rest)
    elif kind == 3:
        entities.pop(name, None)
        relations[:] = [relation for relation in relations if name not in relation[:2]]
    elif kind == 4 and name in entities:
        entities[name][1][:] = [text for text in entities[name][1] if text not in rest]
    elif kind == 5:
        relations[:] = [relation for relation in relations if relation != key]


def string(payload: bytes, place: int) -> tuple[str, int]:
    end = place + 8 + number(payload, place, 8)
    assert end <= len(payload)
    return payload[place + 8 : end].decode(), end


def number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
