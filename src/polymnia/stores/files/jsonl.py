"""The reference server's file: one JSON object per line, entities first, then relations.

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
from polymnia.disk.replace import fsync, fsync_directory, make_parent, open_private, replace_file
from polymnia.errors import StoreError, StoreStopped
from polymnia.stores.contract import Capabilities
from polymnia.stores.files.jsonl_lines import LoadedFile, encode_lines, parse
from polymnia.stores.memory import GraphOnlyStore
from polymnia.stores.memory_graph import MemoryGraph

logger = logging.getLogger(__name__)

# Inode, size and modification time: writers replace the file, so the inode changes too.
Stamp = tuple[int, int, int]
_UNREAD: Stamp = (-1, -1, -1)


def adopt_legacy(path: Path) -> None:
    """Rename a `memory.json` of the reference server's early versions to `memory.jsonl`, unless that name is taken.

    Lines that cannot be read are moved with it; the store reports them, and keeps them aside when it first writes.
    """
    legacy = path.with_suffix(".json")
    if path.suffix != ".jsonl" or path.exists() or not legacy.is_file():
        return
    loaded = parse(legacy.read_bytes())
    counts = loaded.graph.counts()
    if loaded.problems and not counts.entities and not counts.relations:
        logger.warning(
            "%s is not a memory file (one entity or relation per line); it is left alone", legacy
        )
        return
    try:
        legacy.rename(path)
    except FileNotFoundError:
        return  # another server renamed it first
    fsync_directory(path.parent)
    if not loaded.problems:
        logger.info("%s is now %s", legacy, path)
        return
    told = "%s is now %s; %d of its lines cannot be read, and the first write keeps them in %s.rejected"
    logger.warning(told, legacy, path, len(loaded.problems), path)


class JsonlStore(GraphOnlyStore):
    """A graph in memory. A read first reloads a file that has changed; a write replaces the whole file."""

    best_batch = 1_000_000
    short_reads = False
    capabilities = Capabilities()

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.url = path
        self._path = Path(path)
        self._os_errors = map_os_errors(path)
        self._lock = threading.RLock()
        self._read_only = read_only
        self._loaded = LoadedFile()
        self._stamp: Stamp | None = _UNREAD
        self._stopped: str | None = None
        self._open_file: FileIO | None = None
        self._has_removed_leftovers = False
        if not read_only:
            make_parent(self._path)

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[MemoryGraph]:
        with self._lock, self._os_errors:
            self._catch_up()
            yield self._loaded.graph

    @contextmanager
    def writing(self) -> Iterator[MemoryGraph]:
        with self._lock, self._os_errors:
            self._refuse_writes()
            with file_lock(self._path):
                self._catch_up()
                try:
                    yield self._loaded.graph
                    if self._loaded.graph.applied:
                        self._save()
                except BaseException:
                    self._forget_unsaved()
                    raise

    def check(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._os_errors:
            loaded = parse(self._path.read_bytes())
        return [f"{self._path}, line {number}: {reason}" for number, reason in loaded.problems]

    def compact(self) -> None:
        """Do nothing: every write leaves the smallest file."""

    def close(self) -> None:
        with self._lock:
            if self._open_file is not None:
                self._open_file.close()
                self._open_file = None

    def _refuse_writes(self) -> None:
        if self._read_only:
            raise StoreError(f"{self._path} was opened read-only; nothing was changed")
        if self._stopped is not None:
            raise StoreStopped(self._stopped)

    def _catch_up(self) -> None:
        if self._current_stamp() == self._stamp:
            return
        stamp = self._open()
        loaded = parse(self._open_file.readall() if self._open_file else b"")
        self._close_if_needed()
        for number, reason in loaded.problems:
            logger.warning(
                "%s, line %d: %s; the line is kept and the rest is loaded",
                self._path,
                number,
                reason,
            )
        self._loaded, self._stamp = loaded, stamp

    def _current_stamp(self) -> Stamp | None:
        try:
            return _stamp(os.stat(self.url))  # noqa: PTH116  # before every operation, and Path.stat is slower
        except FileNotFoundError:
            return None

    def _save(self) -> None:
        graph = self._loaded.graph
        try:
            self._remove_leftovers()
            self._keep_rejected()
            replace_file(
                self._path,
                encode_lines(graph.entities(), graph.relations(), self._loaded.surrogates),
            )
        except StoreStopped as exc:
            self._stopped = str(exc)
            raise
        graph.applied.clear()
        try:
            self._stamp = self._open()
            self._close_if_needed()
        except OSError:  # the change is on disk anyway; read the file again next time
            self._stamp = _UNREAD

    def _open(self) -> Stamp | None:
        """Open the file and return its stamp. While it is open, no other file gets its inode number."""
        self.close()
        try:
            self._open_file = self._path.open("rb", buffering=0)
        except FileNotFoundError:
            return None
        return _stamp(os.fstat(self._open_file.fileno()))

    def _close_if_needed(self) -> None:
        """Close the file on Windows, which does not replace an open file and never reuses an inode number."""
        if os.name == "nt":
            self.close()

    def _remove_leftovers(self) -> None:
        """Remove the temporary files of writers that were killed. The lock is held, so no other writer is active."""
        if self._has_removed_leftovers:
            return
        target = self._path.resolve()
        for temporary in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            with suppress(OSError):  # a leftover file only takes space
                temporary.unlink()
        self._has_removed_leftovers = True

    def _keep_rejected(self) -> None:
        """Append the lines that cannot be loaded to a file of their own, before the rewrite drops them."""
        rejected = self._loaded.rejected
        if not rejected:
            return
        aside = Path(f"{self._path}.rejected")
        block = b"".join(line + b"\n" for line in rejected)
        with open(aside, "a+b", opener=open_private) as file:
            file.seek(0)
            before = b"\n" + file.read()
            if not before.endswith(
                b"\n" + block
            ):  # otherwise an earlier write kept them, and failed later
                file.write(block if before.endswith(b"\n") else b"\n" + block)
            file.flush()
            fsync(file.fileno(), self._path)
        fsync_directory(aside.parent)
        logger.warning("%d lines that could not be loaded are now in %s", len(rejected), aside)
        self._loaded.rejected = []

    def _forget_unsaved(self) -> None:
        """Have the file read again if memory may be ahead of it."""
        if self._loaded.graph.applied:
            self._stamp = _UNREAD


def _stamp(state: os.stat_result) -> Stamp:
    return (state.st_ino, state.st_size, state.st_mtime_ns)
