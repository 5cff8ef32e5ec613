"""The store of the `graph` dialect: a log of changes in one file, replayed into memory.

`docs/formats/binlog.md` describes the format and what happens to a log that does not follow it.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock, refuse_other_names
from polymnia.disk.replace import Leftovers, make_parent, replace_file
from polymnia.errors import StoreDamaged, StoreError, StoreStopped, StoreTooNew
from polymnia.stores.contract import Capabilities, OpenReaders
from polymnia.stores.files.binlog.forms import (
    OURS,
    Fault,
    Form,
    LoadedLog,
    form_of,
    load,
    replay_changes,
)
from polymnia.stores.files.binlog.records import (
    Replay,
    encode_change,
    encode_graph,
    encode_operations,
    estimate_waste,
)
from polymnia.stores.files.known_file import KnownFile, write_private
from polymnia.stores.memory.graph import GraphOnlyStore, MemoryGraph

logger = logging.getLogger(__name__)

MIN_BYTES_TO_COMPACT = 1024 * 1024


class BinlogStore(GraphOnlyStore):
    """A graph in memory. A write appends to the log; a read first applies what others appended.

    Reading never changes the file. The next write cuts off an unfinished end, and rewrites a log of
    another form.
    """

    best_batch = 40_000
    capabilities = Capabilities()

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.url = path
        self._path = Path(path)
        self._os_errors = map_os_errors(path)
        self._lock = threading.RLock()
        self._readers: OpenReaders[MemoryGraph] = OpenReaders()
        self._read_only = read_only
        self._file = KnownFile(path)
        self._leftovers = Leftovers(self._path)
        self._form = OURS
        self._fault: Fault | None = None
        self._graph = MemoryGraph(is_file=True)
        self._waste = 0
        self._compact_from = MIN_BYTES_TO_COMPACT
        self._stopped: str | None = None
        if not read_only:
            make_parent(self._path)

    @contextmanager
    def reading(self, *, may_lag: bool = False) -> Iterator[MemoryGraph]:
        with self._lock, self._os_errors:
            # The lock is held, so an open reader can only be of this thread.
            if self._readers.last is None:
                self._catch_up()
            with self._readers.hold(self._graph) as reader:
                yield reader

    @contextmanager
    def writing(self) -> Iterator[MemoryGraph]:
        self._readers.forget()
        with self._lock, self._os_errors, self._exclusive():
            try:
                yield self._graph
                self._save()
            except BaseException:
                self._forget_unsaved()
                raise
            self._compact_if_worthwhile()

    def check(self) -> list[str]:
        with self._lock, self._os_errors:
            if not self._path.exists():
                return []
            with file_lock(self._path, create=False):
                return _problems(self._path, self._path.read_bytes())

    def compact(self) -> None:
        with self._lock, self._os_errors, self._exclusive():
            if self._file.end:
                self._rewrite()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the lock on a log that is known to its end and ready for appending."""
        if self._read_only:
            raise StoreError(f"{self._path} was opened read-only; nothing was changed")
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        with file_lock(self._path):
            refuse_other_names(self._path)
            self._leftovers.remove()
            if not self._file.is_unchanged():
                self._read()
            if self._form is not OURS:
                self._adopt()
            elif self._fault is not None:
                self._cut_off(self._fault)
            yield

    def _catch_up(self) -> None:
        if self._file.is_unchanged():
            return
        if not self._path.exists():
            self._file.mark_absent()
            self._take(LoadedLog(MemoryGraph(is_file=True), 0, 0, None), OURS)
            return
        # Without the lock, a change that is being written looks unfinished.
        with file_lock(self._path, create=False):
            self._read()
        if self._fault is not None:
            logger.warning("%s ends in %s; they are ignored", self._path, self._fault.reason)

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
        replay = Replay(self._graph)
        end = replay_changes(data, replay)
        replay.finish()
        if end < len(data):
            return False
        self._waste += replay.waste
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
        self._take(loaded, form)
        self._file.mark_known(loaded.end)

    def _take(self, loaded: LoadedLog, form: Form) -> None:
        self._graph, self._waste, self._fault, self._form = (
            loaded.graph,
            loaded.waste,
            loaded.fault,
            form,
        )
        self._compact_from = MIN_BYTES_TO_COMPACT

    def _cut_off(self, fault: Fault) -> None:
        """Move an unfinished end of the log to a file of its own."""
        aside = Path(f"{self._path}.torn")
        end = self._file.end
        with self._stop_on_failure():
            write_private(aside, self._file.read()[end:], append=True)
            self._file.cut(end)
        self._file.mark_known(end)
        self._fault = None
        logger.warning("%s ended in %s; they are now in %s", self._path, fault.reason, aside)

    def _adopt(self) -> None:
        """Rewrite a log of another form and keep the old one."""
        # Write a copy of a log beside it, under a name that no file has.
        path = self._path
        data = self._file.read()
        for number in count():
            copy = Path(f"{path}.bak{number or ''}")
            try:
                write_private(copy, data, append=False)
            except FileExistsError:
                continue
            break
        kept = copy
        name, fault = self._form.name, self._fault
        self._rewrite()
        logger.warning(
            "%s was %s and was rewritten; the old one is kept as %s", self._path, name, kept
        )
        if fault is not None:
            logger.warning("%s ended in %s; they are only in %s", self._path, fault.reason, kept)

    def _save(self) -> None:
        changes = self._graph.applied
        if not changes:
            return
        # Operations need the graph after their change, and the one between two changes is unknown.
        operations = encode_operations(changes[0], self._graph) if len(changes) == 1 else None
        if operations is None:
            self._rewrite()
        elif operations:
            with self._stop_on_failure():
                self._file.append(encode_change(operations))
            self._waste += estimate_waste(changes[0])
        changes.clear()

    def _compact_if_worthwhile(self) -> None:
        if self._file.end < self._compact_from or self._waste * 2 <= self._file.end:
            return
        try:
            self._rewrite()
        except (OSError, StoreError) as exc:
            # The change itself is on disk. Try again when the log has grown.
            self._compact_from = self._file.end + MIN_BYTES_TO_COMPACT
            logger.warning("%s could not be compacted: %s", self._path, exc)

    def _rewrite(self) -> None:
        """Replace the log by the smallest one of the same graph."""
        self._file.close()
        with self._stop_on_failure():
            try:
                replace_file(
                    self._path, encode_graph(self._graph.entities(), self._graph.relations())
                )
            finally:
                # The lock is held, so the log, old or new, has the content of the graph.
                self._file.mark_replaced()
        self._form, self._fault = OURS, None
        self._waste = 0
        self._compact_from = MIN_BYTES_TO_COMPACT

    @contextmanager
    def _stop_on_failure(self) -> Iterator[None]:
        """Accept no more writes after one that the disk did not confirm."""
        try:
            yield
        except StoreStopped as exc:
            self._stopped = str(exc)
            raise

    def _forget_unsaved(self) -> None:
        """Have the file read again if memory may be ahead of it."""
        if self._graph.applied:
            self._file.forget()


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


def _problems(path: Path, data: bytes) -> list[str]:
    """Describe what is wrong with a log, one sentence per problem."""
    try:
        _refuse_other_files(path, data)
    except StoreError as exc:
        return [str(exc)]
    fault = load(data, form_of(data)).fault
    if fault is None:
        return []
    if fault.is_unfinished:
        return [f"{path} ends in {fault.reason}; the next write moves them to {path}.torn"]
    return [str(_damage(path, fault))]
