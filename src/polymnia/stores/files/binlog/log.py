"""The file of the `graph` dialect: a log of changes, replayed into memory.

`docs/formats/binlog.md` describes the format and what happens to a log that does not follow it.
"""

import logging
from itertools import count
from pathlib import Path

from polymnia.disk.lock import file_lock
from polymnia.disk.replace import replace_file
from polymnia.errors import StoreDamaged, StoreError, StoreStopped, StoreTooNew
from polymnia.stores.files.binlog.forms import OURS, Fault, form_of, load, replay_changes
from polymnia.stores.files.binlog.records import (
    Replay,
    encode_change,
    encode_graph,
    encode_operations,
    graph_size,
)
from polymnia.stores.files.known_file import KnownFile, write_private
from polymnia.stores.memory.graph import MemoryGraph

logger = logging.getLogger(__name__)

MIN_BYTES_TO_COMPACT = 1024 * 1024


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
            self._cut_off(self._fault)

    def save(self) -> None:
        changes = self.graph.applied
        # Operations need the graph after their change, and the one between two changes is unknown.
        operations = encode_operations(changes[0], self.graph) if len(changes) == 1 else None
        if operations is None:
            self._rewrite()
        elif operations:
            self._file.append(encode_change(operations))
        changes.clear()
        self._compact_if_worthwhile()

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
            if self._form is not OURS or not self._read_appended():
                self._read_all()
        except BaseException:
            self._file.forget()
            raise

    def _read_appended(self) -> bool:
        """Apply what others have appended. Return False if the whole log must be read."""
        data = self._file.read_appended()
        if data is None:
            return False
        replay = Replay(self.graph)
        end = replay_changes(data, replay)
        replay.finish()
        if end < len(data):
            return False
        self._fault = None
        self._file.mark_known(self._file.end + end)
        return True

    def _read_all(self) -> None:
        data = self._file.read()
        _refuse_other_files(self._path, data)
        form = form_of(data)
        loaded = load(data, form)
        if loaded.fault is not None and not loaded.fault.is_unfinished:
            raise _damage(self._path, loaded.fault)
        self.graph, self._fault, self._form = loaded.graph, loaded.fault, form
        self._compact_from = MIN_BYTES_TO_COMPACT
        self._file.mark_known(loaded.end)

    def _cut_off(self, fault: Fault) -> None:
        """Move an unfinished end of the log to a file of its own."""
        aside = Path(f"{self._path}.torn")
        end = self._file.end
        write_private(aside, self._file.read()[end:], append=True)
        self._file.cut(end)
        self._file.mark_known(end)
        self._fault = None
        logger.warning("%s ended in %s; they are now in %s", self._path, fault.reason, aside)

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

    def _compact_if_worthwhile(self) -> None:
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
