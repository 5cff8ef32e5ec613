"""The forms a log may have: ours, the same without its mark, and two that older programs left behind.

`docs/formats/binlog.md` describes all four. Only ours is written; the others are read and rewritten.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from polymnia.stores.files.binlog_bulk import fill
from polymnia.stores.files.binlog_records import SHAPES, Fault, Found, WholeAt, fault_at, plain_at, whole_at
from polymnia.stores.files.binlog_replay import Replay
from polymnia.stores.files.pause import collection_paused
from polymnia.stores.memory import MemoryGraph

_OLD_LIMIT = 1024 * 1024
_BEGIN, _COMMIT = 6, 7
_total_at = Struct("<I").unpack_from
_count_at = Struct("<I").unpack_from
_length_at = Struct("<H").unpack_from


class Form(NamedTuple):
    """How to read a log: where its records start, how to find one, what is wrong where there is none."""

    name: str
    start: int
    whole_at: WholeAt
    fault_at: Callable[[bytes, int], Fault]


class Loaded(NamedTuple):
    """What a log gave: the graph, how much of it is useless, where reading ended, and why if before the end."""

    graph: MemoryGraph
    waste: int
    end: int
    fault: Fault | None


def form_of(data: bytes) -> Form:
    """The form of a log, from how it begins."""
    for magic, form in _BY_MAGIC.items():
        if data.startswith(magic):
            return form
    if whole_at(data, 0) is None and plain_at(data, 0) is not None:
        return PLAIN
    return OURS


def load(data: bytes, form: Form) -> Loaded:
    """The graph that a log's records make, as far as they are sound."""
    graph = MemoryGraph()
    replay = Replay(graph)
    with collection_paused():
        if form is OURS:
            end = replay.run(data, fill(graph, data), whole_at)
        elif form is PLAIN:
            end = replay.run(data, 0, plain_at)
        else:
            end = _replay_committed(data, form, replay)
    fault = form.fault_at(data, end) if end < len(data) else None
    return Loaded(graph, replay.waste, end, fault)


def _replay_committed(data: bytes, form: Form, replay: Replay) -> int:
    """Carry out records, those of a transaction only when it was committed."""
    at = form.start
    waiting: list[tuple[int, list[str]]] | None = None
    while (found := form.whole_at(data, at)) is not None:
        kind, strings, at = found
        if kind == _BEGIN:
            waiting = []
        elif kind == _COMMIT:
            for each in waiting or ():
                replay.take(*each)
            waiting = None
        elif waiting is not None:
            waiting.append((kind, strings))
        else:
            replay.take(kind, strings)
    replay.finish()
    return at


def _old_at(data: bytes, at: int, checksum_size: int) -> Found | None:
    if len(data) - at < 5:
        return None
    (total,) = _total_at(data, at)
    if not 5 + checksum_size <= total <= min(_OLD_LIMIT, len(data) - at):
        return None
    kind = data[at + 4]
    end = at + total
    body = data[at + 5 : end - checksum_size]
    if checksum_size and crc32(body) != _total_at(data, end - checksum_size)[0]:
        return None
    if kind >= len(SHAPES):
        return kind, [], end
    found = _old_strings(kind, body)
    return (kind, found[0], end) if found and found[1] == len(body) else None


def _old_strings(kind: int, body: bytes) -> tuple[list[str], int] | None:
    count, listed = SHAPES[kind]
    strings: list[str] = []
    try:
        place = _take_old_strings(body, 0, count, strings)
        if listed:
            (count,) = _count_at(body, place)
            place = _take_old_strings(body, place + 4, count, strings)
    except (error, UnicodeDecodeError):
        return None
    return strings, place


def _take_old_strings(body: bytes, place: int, count: int, strings: list[str]) -> int:
    for _ in range(count):
        (length,) = _length_at(body, place)
        end = place + 2 + length
        strings.append(body[place + 2 : end].decode())
        place = end
    return place


def _old_fault_at(data: bytes, at: int, checksum_size: int) -> Fault:
    left = len(data) - at
    unfinished = Fault(f"{left} bytes of a record that was not finished", torn=True)
    if left < 4 or not data[at:].strip(b"\x00"):
        return unfinished
    (total,) = _total_at(data, at)
    if not 5 + checksum_size <= total <= _OLD_LIMIT:
        return Fault(f"a record of {total} bytes, which cannot be", torn=False)
    if total <= left:
        return Fault("the checksum is wrong, or the data is not that of its kind", torn=False)
    if left < 5 or data[at + 4] >= len(SHAPES):
        return unfinished
    found = _old_strings(data[at + 4], data[at + 5 :])
    whole = found is not None and found[1] + 5 + checksum_size <= left
    return Fault(f"a length of {total} bytes leads past the end", torn=False) if whole else unfinished


OURS = Form("a log", 0, whole_at, fault_at)
PLAIN = Form("a log without marks", 0, plain_at, lambda data, at: fault_at(data, at, plain_at, 0))
_V1 = Form("a log of version 1", 8, lambda data, at: _old_at(data, at, 0), lambda data, at: _old_fault_at(data, at, 0))
_V2 = Form("a log of version 2", 8, lambda data, at: _old_at(data, at, 4), lambda data, at: _old_fault_at(data, at, 4))
_BY_MAGIC = {b"MCPMEMV1": _V1, b"MCPMEMV2": _V2}
