"""The reference server's file: one JSON object a line, entities first, then relations.

`docs/formats/jsonl.md` describes the format and what happens to lines that do not follow it.
"""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from io import FileIO
from pathlib import Path

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.disk.replace import fsync, make_parent, open_private, replace_file
from polymnia.errors import StoreStopped
from polymnia.stores.contract import Capabilities
from polymnia.stores.files.jsonl_lines import encode_lines, parse
from polymnia.stores.memory import GraphOnlyStore, MemoryGraph

logger = logging.getLogger(__name__)

# What tells one state of the file from another: another process replaces it, so the inode moves too.
Stamp = tuple[int, int, int]
_UNREAD: Stamp = (-1, -1, -1)


def adopt_legacy(path: Path) -> None:
    """Give a `memory.json` of the reference server's early days its later name, unless that name is taken."""
    legacy = path.with_suffix(".json")
    if path.suffix != ".jsonl" or path.exists() or not legacy.is_file():
        return
    if parse(legacy.read_bytes()).problems:
        logger.warning("%s is not a memory file (one entity or relation a line); it is left alone", legacy)
        return
    try:
        legacy.rename(path)
    except FileNotFoundError:
        return  # another server was quicker
    logger.info("%s is now %s", legacy, path)


class JsonlStore(GraphOnlyStore):
    """The graph in memory, read again when the file has changed, the file replaced whole at every write."""

    best_batch = 1_000_000
    short_reads = False
    capabilities = Capabilities()

    def __init__(self, path: str) -> None:
        self.url = path
        self._path = Path(path)
        self._path_text = path
        self._translated = map_os_errors(path)
        self._lock = threading.RLock()
        self._graph = MemoryGraph()
        self._rejected: list[bytes] = []
        self._stamp: Stamp | None = _UNREAD
        self._stopped: str | None = None
        self._held: FileIO | None = None
        self._swept = False
        make_parent(self._path)

    @contextmanager
    def reading(self) -> Iterator[MemoryGraph]:
        with self._lock, self._translated:
            self._catch_up()
            yield self._graph

    @contextmanager
    def writing(self) -> Iterator[MemoryGraph]:
        with self._lock, self._translated:
            if self._stopped is not None:
                raise StoreStopped(self._stopped)
            with file_lock(self._path.resolve()):
                self._catch_up()
                try:
                    yield self._graph
                    if self._graph.applied:
                        self._save()
                except BaseException:
                    self._forget_unsaved()
                    raise

    def check(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._translated:
            loaded = parse(self._path.read_bytes())
        return [f"{self._path}, line {number}: {reason}" for number, reason in loaded.problems]

    def compact(self) -> None:
        """The file never holds more than it must."""

    def close(self) -> None:
        with self._lock:
            if self._held is not None:
                self._held.close()
                self._held = None

    def _catch_up(self) -> None:
        if self._current_stamp() == self._stamp:
            return
        stamp = self._hold()
        loaded = parse(self._held.readall() if self._held else b"")
        self._let_go()
        for number, reason in loaded.problems:
            logger.warning("%s, line %d: %s; the line is kept and the rest is loaded", self._path, number, reason)
        self._graph, self._rejected, self._stamp = loaded.graph, loaded.rejected, stamp

    def _current_stamp(self) -> Stamp | None:
        try:
            return _stamp(os.stat(self._path_text))  # noqa: PTH116  # before every operation, and Path.stat takes longer
        except FileNotFoundError:
            return None

    def _save(self) -> None:
        try:
            self._sweep()
            self._keep_rejected()
            replace_file(self._path, encode_lines(self._graph.entities(), self._graph.relations()))
        except StoreStopped as exc:
            self._stopped = str(exc)
            raise
        self._graph.applied.clear()
        try:
            self._stamp = self._hold()
            self._let_go()
        except OSError:  # it is written all the same: read it again next time
            self._stamp = _UNREAD

    def _hold(self) -> Stamp | None:
        """The file's stamp. It is kept open: as long as it is, no other file gets its inode."""
        self.close()
        try:
            self._held = self._path.open("rb", buffering=0)
        except FileNotFoundError:
            return None
        return _stamp(os.fstat(self._held.fileno()))

    def _let_go(self) -> None:
        """An open file cannot be replaced on Windows; there no inode is given out again either."""
        if os.name == "nt":
            self.close()

    def _sweep(self) -> None:
        """Remove what writers that were killed have left; nobody else writes while the lock is held."""
        if self._swept:
            return
        target = self._path.resolve()
        for spare in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            with suppress(OSError):  # it takes room, no more
                spare.unlink()
        self._swept = True

    def _keep_rejected(self) -> None:
        """Lines that cannot be loaded go to a file of their own before the rewrite would drop them."""
        if not self._rejected:
            return
        block = b"".join(line + b"\n" for line in self._rejected)
        with open(f"{self._path}.rejected", "a+b", opener=open_private) as file:
            file.seek(0)
            before = b"\n" + file.read()
            if not before.endswith(b"\n" + block):  # else a write that failed later has put them there
                file.write(block if before.endswith(b"\n") else b"\n" + block)
            file.flush()
            fsync(file.fileno(), self._path)
        logger.warning("%d lines that could not be loaded are now in %s.rejected", len(self._rejected), self._path)
        self._rejected = []

    def _forget_unsaved(self) -> None:
        """What is in memory may be ahead of the file: read it again next time."""
        if self._graph.applied:
            self._stamp = _UNREAD


def _stamp(state: os.stat_result) -> Stamp:
    return (state.st_ino, state.st_size, state.st_mtime_ns)
