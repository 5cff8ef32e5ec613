"""The file of the `graph` dialect: a log of changes, replayed into memory.

A log has one of four forms: ours, ours without marks, and two of older programs. Only ours is
written: the first write to a log of another form rewrites it. `docs/formats/binlog.md` describes
them, and what happens to a log that does not follow its form.
"""

import logging
from collections.abc import Callable
from itertools import count
from pathlib import Path
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from polymnia.disk.files import map_os_errors, replace_file
from polymnia.disk.lock import file_lock
from polymnia.errors import BadInput, StoreDamaged, StoreError, StoreStopped, StoreTooNew
from polymnia.model import Counts
from polymnia.stores.files.graph import MemoryGraph
from polymnia.stores.files.records import (
    ADD_OBSERVATIONS,
    CREATE_ENTITY,
    CREATE_RELATION,
    HEADER,
    MAX_DATA_BYTES,
    SHAPES,
    Operation,
    Replay,
    change_at,
    encode_change,
    encode_graph,
    encode_operations,
    graph_size,
    next_record,
    parse_payload,
    raw_record_at,
    record_at,
    records_at,
)
from polymnia.stores.files.store import KnownFile, write_private

logger = logging.getLogger(__name__)

MIN_BYTES_TO_COMPACT = 1024 * 1024
_BEGIN, _COMMIT = 6, 7
_CREATING = {CREATE_ENTITY, CREATE_RELATION, ADD_OBSERVATIONS}
_number_at = Struct("<Q").unpack_from
_total_at = Struct("<I").unpack_from
_length_at = Struct("<H").unpack_from

# Operations, and the offset after them.
OperationsAt = tuple[list[Operation], int]


class Fault(NamedTuple):
    """Why the rest of a log cannot be read: an unfinished last change, or damage."""

    at: int
    reason: str
    is_unfinished: bool


class Form(NamedTuple):
    """How to read a log."""

    name: str
    start: int
    # Return the operations of the whole change at an offset.
    change_at: Callable[[bytes, int], OperationsAt | None]
    # Explain why there is no whole change at an offset.
    fault_at: Callable[[bytes, int], Fault]
    # Return operations that can be salvaged at an offset, even from a change that is not whole.
    usable_at: Callable[[bytes, int], OperationsAt | None]
    # Return the offset of the next whole record.
    next_record: Callable[[bytes, int], int | None]

    def replay(self, data: bytes, replay: Replay) -> int:
        """Apply the changes of a log; return the offset after the last whole one.

        Some older logs have transactions. Those that were not committed are not applied.
        """
        at = self.start
        pending: list[Operation] | None = None
        while (change := self.change_at(data, at)) is not None:
            operations, at = change
            kind = operations[0][0]
            if kind == _BEGIN:
                pending = []
            elif kind == _COMMIT:
                replay.apply(pending or ())
                pending = None
            elif pending is not None:
                pending += operations
            else:
                replay.apply(operations)
        return at


class LoadedLog(NamedTuple):
    """The graph of a log, the end of its last whole change, and what follows."""

    graph: MemoryGraph
    end: int
    fault: Fault | None


class SalvageResult(NamedTuple):
    """What the new log holds, and which ranges of the old one could not be read."""

    counts: Counts
    gaps: list[tuple[int, int]]


class BinlogFile:
    """A log to which a write appends. Reading applies what others have appended.

    The next write cuts off an unfinished end, and rewrites a log of another form.
    """

    best_batch = 40_000

    def __init__(self, path: str) -> None:
        self.graph = MemoryGraph(is_file=True)
        self._path = Path(path)
        self._file = KnownFile(path)
        self._form = OURS
        self._fault: Fault | None = None
        self._compact_from = MIN_BYTES_TO_COMPACT
        self._stopped: str | None = None

    def catch_up(self) -> None:
        if self._file.is_unchanged():
            return
        if not self._path.exists():
            self._file.mark_absent()
            self.graph, self._fault, self._form = MemoryGraph(is_file=True), None, OURS
            return
        # Without the lock, a change that is being written looks unfinished.
        with file_lock(self._path, create=False):
            self._read()
        if self._fault is not None:
            logger.warning("%s ends in %s; they are ignored", self._path, self._fault.reason)

    def prepare(self) -> None:
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        if not self._file.is_unchanged():
            self._read()
        if self._form is not OURS:
            self._adopt()
        elif self._fault is not None:
            # Move an unfinished end of the log to a file of its own.
            aside, end = Path(f"{self._path}.torn"), self._file.end
            write_private(aside, self._file.read()[end:], append=True)
            self._file.cut(end)
            self._file.mark_known(end)
            reason, self._fault = self._fault.reason, None
            logger.warning("%s ended in %s; they are now in %s", self._path, reason, aside)

    def save(self) -> None:
        changes = self.graph.applied
        # Operations need the graph after their change, and the one between two changes is unknown.
        operations = encode_operations(changes[0], self.graph) if len(changes) == 1 else None
        if operations is None:
            self._rewrite()
        elif operations:
            self._file.append(encode_change(operations))
        changes.clear()
        end = self._file.end
        if end < self._compact_from:
            return
        # Measuring the graph reads all of it, so the log must first grow again by a quarter.
        self._compact_from = end + max(MIN_BYTES_TO_COMPACT, end // 4)
        if 2 * graph_size(self.graph) >= end:
            return
        try:
            self._rewrite()
        except (OSError, StoreError) as exc:
            # The change itself is on disk.
            logger.warning("%s could not be compacted: %s", self._path, exc)
            if isinstance(exc, StoreStopped):
                self._stopped = str(exc)

    def forget(self) -> None:
        self._file.forget()

    def compact(self) -> None:
        if self._file.end:
            self._rewrite()

    def check(self) -> list[str]:
        with file_lock(self._path, create=False):
            data = self._path.read_bytes()
        try:
            _refuse_other_files(self._path, data)
        except StoreError as exc:
            return [str(exc)]
        fault = load(data, form_of(data)).fault
        if fault is None:
            return []
        if fault.is_unfinished:
            aside = f"{self._path}.torn"
            return [f"{self._path} ends in {fault.reason}; the next write moves them to {aside}"]
        return [str(_damage(self._path, fault))]

    def close(self) -> None:
        self._file.close()

    def _read(self) -> None:
        try:
            if self._form is OURS:
                # Apply what others have appended, unless the whole log must be read.
                data = self._file.read_appended()
                if data is not None:
                    replay = Replay(self.graph)
                    end = OURS.replay(data, replay)
                    replay.finish()
                    if end == len(data):
                        self._fault = None
                        self._file.mark_known(self._file.end + end)
                        return
            data = self._file.read()
            _refuse_other_files(self._path, data)
            form = form_of(data)
            loaded = load(data, form)
            if loaded.fault is not None and not loaded.fault.is_unfinished:
                raise _damage(self._path, loaded.fault)
            self.graph, self._fault, self._form = loaded.graph, loaded.fault, form
            self._compact_from = MIN_BYTES_TO_COMPACT
            self._file.mark_known(loaded.end)
        except BaseException:
            self._file.forget()
            raise

    def _adopt(self) -> None:
        """Rewrite a log of another form, and keep the old one under a name that no file has."""
        data = self._file.read()
        for number in count():
            kept = Path(f"{self._path}.bak{number or ''}")
            try:
                write_private(kept, data, append=False)
            except FileExistsError:
                continue
            break
        name, fault = self._form.name, self._fault
        self._rewrite()
        logger.warning(
            "%s was %s and was rewritten; the old one is kept as %s", self._path, name, kept
        )
        if fault is not None:
            logger.warning("%s ended in %s; they are only in %s", self._path, fault.reason, kept)

    def _rewrite(self) -> None:
        """Replace the log by the smallest one of the same graph."""
        self._file.close()
        try:
            replace_file(self._path, encode_graph(self.graph.entities(), self.graph.relations()))
        finally:
            # The lock is held, so the log, old or new, has the content of the graph.
            self._file.mark_replaced()
        self._form, self._fault = OURS, None
        self._compact_from = MIN_BYTES_TO_COMPACT


def _refuse_other_files(path: Path, data: bytes) -> None:
    """Raise StoreError for a file of another kind, StoreTooNew for a log of a later version."""
    if data.startswith(b"SQLite format 3\x00"):
        raise StoreError(
            f"{path} is a SQLite file, not a binary log; "
            "rename it to end in .db, or choose another path"
        )
    if data.startswith(b"MCPMEM") and form_of(data) is OURS:
        version = data[6:8].decode(errors="replace")
        raise StoreTooNew(f"{path} is a log of version {version}, which this version cannot read")


def _damage(path: Path, fault: Fault) -> StoreDamaged:
    return StoreDamaged(
        f"{path} is damaged at byte {fault.at}: {fault.reason}; nothing was changed. Keep a copy, "
        f"then save what can be read with `polymnia doctor --salvage --store {path}`"
    )


def form_of(data: bytes) -> Form:
    """Return the form of a log, judging by how it begins."""
    for magic, form in _BY_MAGIC.items():
        if data.startswith(magic):
            return form
    return PLAIN if _plain_at(data, 0) is not None else OURS


def load(data: bytes, form: Form) -> LoadedLog:
    """Return the graph of the whole changes at the beginning of a log."""
    graph = MemoryGraph(is_file=True)
    replay = Replay(graph)
    end = form.replay(data, replay)
    replay.finish()
    fault = form.fault_at(data, end) if end < len(data) else None
    return LoadedLog(graph, end, fault)


def salvage(path: Path, target: Path) -> SalvageResult:
    """Write everything that can be read in a log to a new log. Do not touch the old one.

    Raise BadInput if the new log exists, or the old one does not.
    """
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if target.exists():
        raise BadInput(f"{target} exists already; name another file to write to")
    with map_os_errors(str(path)), file_lock(path, create=False):
        data = path.read_bytes()
    form = form_of(data)
    if form is OURS and next_record(data, 0) is None:
        form = PLAIN
    graph = MemoryGraph(is_file=True)
    replay = Replay(graph)
    gaps: list[tuple[int, int]] = []
    at = form.start
    while at < len(data):
        usable = form.usable_at(data, at)
        if usable is not None:
            operations, at = usable
            replay.apply(operations)
            continue
        following = form.next_record(data, at + 1)
        start = gaps.pop()[0] if gaps and gaps[-1][1] == at else at
        at = len(data) if following is None else following
        gaps.append((start, at))
    replay.finish()
    with map_os_errors(str(target)):
        replace_file(target, encode_graph(graph.entities(), graph.relations()))
    return SalvageResult(graph.counts(), gaps)


def _fault_at(data: bytes, at: int) -> Fault:
    """Tell a last change that was not finished from damage.

    An unfinished change is the last of its log: no whole record of a later change follows.
    """

    def damage(at: int, reason: str) -> Fault:
        return Fault(at, reason, is_unfinished=False)

    bad = at
    for record in records_at(data, at):
        if record.is_last:
            return damage(at, f"the data does not have the form of kind {record.kind}")
        bad = record.end
    if len(data) - bad >= HEADER.size:
        checksum, kind, length = HEADER.unpack_from(data, bad)
        body = data[bad + HEADER.size : bad + HEADER.size + length]
        is_whole = 0 < length == len(body) <= MAX_DATA_BYTES and crc32(body) == checksum
        if is_whole and kind >= len(SHAPES):
            return damage(bad, f"the record kind {kind} is unknown")
    # Where the changes of the following records start, until one does not belong to this change.
    # A record without a mark belongs to none.
    starts: set[int] = set()
    following = next_record(data, bad, raw_record_at)
    while following is not None and not starts - {at}:
        marked = record_at(data, following)
        starts.add(-1 if marked is None else following - marked.distance)
        end = following + 1 if marked is None else marked.end
        following = next_record(data, end, raw_record_at)
    if starts - {at}:
        return damage(bad, "the record is not whole, and records of later changes follow")
    if at == 0 and not starts and not _may_be_a_log(data):
        return damage(bad, "no record of a binary log begins there")
    reason = f"{len(data) - at} bytes of a change that was not finished"
    return Fault(bad, reason, is_unfinished=True)


def _may_be_a_log(data: bytes) -> bool:
    """Return True if a file without a whole record may be a log with an unfinished first change."""
    if len(data) < HEADER.size or not data.strip(b"\x00"):
        return True
    _, kind, length = HEADER.unpack_from(data)
    if kind >= len(SHAPES) or not 0 < length <= MAX_DATA_BYTES:
        return False
    start = HEADER.size
    # No string is longer: a number above this at the start of the data is not the length of one.
    return len(data) < start + 8 or bool(_number_at(data, start)[0] < (1 << 40))


def _usable_at(data: bytes, at: int) -> OperationsAt | None:
    """Return a whole change, or what one record of a damaged change creates.

    Deletions in a damaged change are not used: a lost record may have moved what they delete.
    """
    change = change_at(data, at)
    if change is not None:
        return change
    record = record_at(data, at)
    if record is None or record.is_split:
        return None
    strings = parse_payload(record.kind, record.payload, len(record.payload))
    if strings is None:
        return None
    return ([(record.kind, strings)] if record.kind in _CREATING else []), record.end


def _plain_at(data: bytes, at: int) -> OperationsAt | None:
    """Return the record at an offset of a log whose records have no mark."""
    checked = raw_record_at(data, at)
    if checked is None:
        return None
    kind, body = checked
    strings = parse_payload(kind, body, len(body))
    return None if strings is None else ([(kind, strings)], at + HEADER.size + len(body))


def _old_at(data: bytes, at: int, checksum_size: int) -> OperationsAt | None:
    """Return the record at an offset of a log of version 1 or 2."""
    if len(data) - at < 5:
        return None
    (total,) = _total_at(data, at)
    # The programs that wrote these logs had records of at most a mebibyte.
    if not 5 + checksum_size <= total <= min(1024 * 1024, len(data) - at):
        return None
    kind = data[at + 4]
    end = at + total
    body = data[at + 5 : end - checksum_size]
    if checksum_size and crc32(body) != _total_at(data, end - checksum_size)[0]:
        return None
    strings = _old_strings(kind, body) if kind < len(SHAPES) else []
    return None if strings is None else ([(kind, strings)], end)


def _old_strings(kind: int, body: bytes) -> list[str] | None:
    count, has_list = SHAPES[kind]
    strings: list[str] = []
    try:
        offset = _take_old_strings(body, 0, count, strings)
        if has_list:
            (count,) = _total_at(body, offset)
            offset = _take_old_strings(body, offset + 4, count, strings)
    except (error, UnicodeDecodeError):
        return None
    return strings if offset == len(body) else None


def _take_old_strings(body: bytes, offset: int, count: int, strings: list[str]) -> int:
    for _ in range(count):
        (length,) = _length_at(body, offset)
        end = offset + 2 + length
        strings.append(body[offset + 2 : end].decode())
        offset = end
    return offset


def _make_other_form(
    name: str, start: int, find: Callable[[bytes, int], OperationsAt | None]
) -> Form:
    """Make a form in which every record is a change of its own, except in transactions."""

    def next_at(data: bytes, at: int) -> int | None:
        for offset in range(at, len(data)):
            record = find(data, offset)
            if record is None:
                continue
            ((kind, _),), _ = record
            if kind < len(SHAPES):
                return offset
        return None

    def fault_at(data: bytes, at: int) -> Fault:
        if next_at(data, at + 1) is not None:
            return Fault(
                at, "the record is not whole, and other records follow", is_unfinished=False
            )
        return Fault(
            at, f"{len(data) - at} bytes of a record that was not finished", is_unfinished=True
        )

    return Form(name, start, find, fault_at, find, next_at)


OURS = Form("a log", 0, change_at, _fault_at, _usable_at, next_record)
PLAIN = _make_other_form("a log without marks", 0, _plain_at)
_BY_MAGIC = {
    b"MCPMEMV1": _make_other_form("a log of version 1", 8, lambda data, at: _old_at(data, at, 0)),
    b"MCPMEMV2": _make_other_form("a log of version 2", 8, lambda data, at: _old_at(data, at, 4)),
}
