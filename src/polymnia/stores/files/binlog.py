"""The `graph` dialect's file: a log of records, each a small change, carried out from the first to the last.

`docs/formats/binlog.md` describes the format and what happens to a log that does not follow it.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.disk.replace import make_parent, replace_file
from polymnia.errors import StoreDamaged, StoreError, StoreStopped, StoreTooNew
from polymnia.stores.contract import Capabilities
from polymnia.stores.files.binlog_changes import records_of, refuse_unfit, refuse_unfit_graph, waste_of
from polymnia.stores.files.binlog_file import LogFile, keep_aside
from polymnia.stores.files.binlog_forms import OURS, Form, Loaded, form_of, load
from polymnia.stores.files.binlog_records import Fault, encode_graph, fault_at, whole_at
from polymnia.stores.files.binlog_replay import Replay
from polymnia.stores.memory import GraphOnlyStore, MemoryGraph

logger = logging.getLogger(__name__)

# A log shorter than this is not worth compacting, however little of it is of use.
SMALLEST_TO_COMPACT = 1024 * 1024


class BinlogStore(GraphOnlyStore):
    """The graph in memory, the file appended to at every write and read on where others have appended."""

    best_batch = 10_000
    short_reads = False
    capabilities = Capabilities()

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.url = path
        self._path = Path(path)
        self._translated = map_os_errors(path)
        self._lock = threading.RLock()
        self._read_only = read_only
        self._file = LogFile(path, read_only=read_only)
        self._graph = MemoryGraph()
        self._waste = 0
        self._compact_from = SMALLEST_TO_COMPACT
        self._stopped: str | None = None
        if not read_only:
            make_parent(self._path)

    @contextmanager
    def reading(self) -> Iterator[MemoryGraph]:
        with self._lock, self._translated:
            self._catch_up()
            yield self._graph

    @contextmanager
    def writing(self) -> Iterator[MemoryGraph]:
        with self._lock, self._translated, self._alone():
            try:
                yield self._graph
                self._save()
            except BaseException:
                self._forget_unsaved()
                raise
            self._compact_if_worth_it()

    def check(self) -> list[str]:
        with self._lock, self._translated:
            if not self._path.exists():
                return []
            with file_lock(self._path):
                return problems(self._path, self._path.read_bytes())

    def compact(self) -> None:
        with self._lock, self._translated, self._alone():
            if self._file.end:
                self._rewrite()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes, and everything that anybody has written is known."""
        if self._read_only:
            raise StoreError(f"{self._path} was opened for reading only; nothing was changed")
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        with file_lock(self._path):
            if not self._file.unchanged():
                self._read()
            yield

    def _catch_up(self) -> None:
        if self._file.unchanged():
            return
        if not self._path.exists():
            self._file.settle_absent()
            self._become(MemoryGraph(), waste=0)
            return
        with file_lock(self._path):  # what another process is just writing is not an unfinished end
            self._read()

    def _read(self) -> None:
        news = self._file.read_news()
        try:
            if news is None:
                self._read_all()
            else:
                self._read_on(news)
        except BaseException:
            self._file.forget()
            raise

    def _read_on(self, news: bytes) -> None:
        replay = Replay(self._graph)
        end = replay.run(news, 0, whole_at)
        known = self._file.end + end
        if end < len(news):
            self._mend(fault_at(news, end), known, news[end:])
        self._waste += replay.waste
        self._file.settle()

    def _read_all(self) -> None:
        data = self._file.read()
        refuse_strangers(self._path, data)
        form = form_of(data)
        loaded = load(data, form)
        if form is not OURS:
            self._adopt(data, form, loaded)
            return
        if loaded.fault is not None:
            self._mend(loaded.fault, loaded.end, data[loaded.end :])
        self._become(loaded.graph, waste=loaded.waste)
        self._file.settle()

    def _become(self, graph: MemoryGraph, *, waste: int) -> None:
        graph.admit = refuse_unfit
        self._graph, self._waste = graph, waste
        self._compact_from = SMALLEST_TO_COMPACT

    def _mend(self, fault: Fault, at: int, rest: bytes) -> None:
        """Cut an unfinished end away and keep it aside. Raises StoreDamaged, with the file as it is, for damage."""
        if not fault.torn:
            raise damaged(self._path, at, fault)
        if self._read_only:
            logger.warning("%s ends in %s; they are left where they are", self._path, fault.reason)
            return
        aside = Path(f"{self._path}.torn")
        keep_aside(aside, rest, after_others=True)
        self._file.cut(at)
        logger.warning("%s ended in %s; they are now in %s", self._path, fault.reason, aside)

    def _adopt(self, data: bytes, form: Form, loaded: Loaded) -> None:
        """Rewrite a log of another form; the old one is kept."""
        if loaded.fault is not None and not loaded.fault.torn:
            raise damaged(self._path, loaded.end, loaded.fault)
        refuse_unfit_graph(loaded.graph)
        if self._read_only:
            self._become(loaded.graph, waste=0)
            self._file.settle()
            return
        kept = keep_copy(self._path, data)
        self._become(loaded.graph, waste=0)
        self._rewrite()
        logger.warning("%s was %s and is rewritten; the old one is kept as %s", self._path, form.name, kept)
        if loaded.fault is not None:
            logger.warning("%s ended in %s; they are in the old one only", self._path, loaded.fault.reason)

    def _save(self) -> None:
        changes = self._graph.applied
        if not changes:
            return
        # Records are made from one change and what it led to; of several, what they led to is known only at the end.
        records = records_of(changes[0], self._graph) if len(changes) == 1 else None
        if records is None:
            self._rewrite()
        elif records:
            with self._stopping():
                self._file.append(b"".join(records))
            self._waste += waste_of(changes[0])
        changes.clear()

    def _compact_if_worth_it(self) -> None:
        if self._file.end < self._compact_from or self._waste * 2 <= self._file.end:
            return
        try:
            self._rewrite()
        except (OSError, StoreError) as exc:
            # What was asked for is on disk; this can wait until there is more to gain.
            self._compact_from = self._file.end + SMALLEST_TO_COMPACT
            logger.warning("%s could not be compacted: %s", self._path, exc)

    def _rewrite(self) -> None:
        """Replace the log by the smallest one of the same graph."""
        self._file.close()
        try:
            with self._stopping():
                replace_file(self._path, encode_graph(self._graph.entities(), self._graph.relations()))
        finally:
            # Nobody else writes, so whichever log is there now holds just what the graph does.
            self._file.settle()
        self._waste = 0
        self._compact_from = SMALLEST_TO_COMPACT

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """After a failure to reach the disk nothing is acknowledged any more."""
        try:
            yield
        except StoreStopped as exc:
            self._stopped = str(exc)
            raise

    def _forget_unsaved(self) -> None:
        """What is in memory may be ahead of the file: read it again next time."""
        if self._graph.applied:
            self._file.forget()


def refuse_strangers(path: Path, data: bytes) -> None:
    """Raises StoreError for a file that begins as something else than a log this version reads."""
    if data.startswith(b"SQLite format 3\x00"):
        raise StoreError(f"{path} is a SQLite file, not a binary log; give it a name that ends in .db, or another path")
    if data.startswith(b"MCPMEM") and form_of(data) is OURS:
        raise StoreTooNew(f"{path} is a log of version {data[6:8].decode(errors='replace')}, which is not known here")


def damaged(path: Path, at: int, fault: Fault) -> StoreDamaged:
    """The sentence about a log that cannot be read on."""
    return StoreDamaged(
        f"{path} is damaged at byte {at}: {fault.reason}; nothing was changed. Keep a copy, then save what can be read "
        f"with `polymnia doctor --salvage --store {path}`"
    )


def problems(path: Path, data: bytes) -> list[str]:
    """What is wrong with a log, a sentence each."""
    try:
        refuse_strangers(path, data)
    except StoreError as exc:
        return [str(exc)]
    loaded = load(data, form_of(data))
    if loaded.fault is None:
        return []
    if loaded.fault.torn:
        return [f"{path} ends in {loaded.fault.reason}; they are put into {path}.torn when the log is next read"]
    return [str(damaged(path, loaded.end, loaded.fault))]


def keep_copy(path: Path, data: bytes) -> Path:
    """Put a copy of a log beside it, under a name that nothing has."""
    for number in count():
        copy = Path(f"{path}.bak{number or ''}")
        try:
            keep_aside(copy, data, after_others=False)
        except FileExistsError:
            continue
        break
    return copy
