"""A reader of binary logs written from docs/formats/binlog.md alone: it shares no code with the store."""

import zlib
from dataclasses import dataclass, field

Key = tuple[str, str, str]


@dataclass
class Picture:
    """What a log's records make."""

    entities: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    relations: list[Key] = field(default_factory=list)


def read_log(data: bytes) -> Picture:
    """Carry out every record."""
    picture = Picture()
    at = 0
    while at < len(data):
        kind, strings, at = read_one(data, at)
        carry_out(picture, kind, strings)
    return picture


def ends(data: bytes) -> list[int]:
    """Where each record ends."""
    found = [0]
    while found[-1] < len(data):
        found.append(read_one(data, found[-1])[2])
    return found[1:]


def read_one(data: bytes, at: int) -> tuple[int, list[str], int]:
    checksum, kind, length = number(data, at, 4), data[at + 4], number(data, at + 5, 4)
    body = data[at + 9 : at + 9 + length]
    assert len(body) == length <= 65_536
    assert zlib.crc32(body) == checksum
    strings, place = [], 0
    for _ in range({0: 2, 1: 3, 2: 1, 3: 1, 4: 1, 5: 3}[kind]):
        text, place = string(body, place)
        strings.append(text)
    if kind in (0, 2, 4):
        count, place = number(body, place, 8), place + 8
        for _ in range(count):
            text, place = string(body, place)
            strings.append(text)
    assert body[place:] == bytes([kind])
    return kind, strings, at + 9 + length


def carry_out(picture: Picture, kind: int, strings: list[str]) -> None:
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
        relations[:] = [each for each in relations if name not in each[:2]]
    elif kind == 4 and name in entities:
        entities[name][1][:] = [text for text in entities[name][1] if text not in rest]
    elif kind == 5:
        relations[:] = [each for each in relations if each != key]


def string(body: bytes, place: int) -> tuple[str, int]:
    end = place + 8 + number(body, place, 8)
    assert end <= len(body)
    return body[place + 8 : end].decode(), end


def number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
