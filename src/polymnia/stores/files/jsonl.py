"""The reference server's file: one JSON object a line, entities first, then relations.

`docs/formats/jsonl.md` describes the format and what happens to lines that do not follow it.
"""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from polymnia.errors import StoreStopped
from polymnia.model import Graph
from polymnia.stores.files.errors import Translated
from polymnia.stores.files.jsonl_lines import Loaded, encode_lines, parse
from polymnia.stores.files.lock import locked
from polymnia.stores.files.replace import force, replace_file
from polymnia.stores.memory import MemoryGraph
from polymnia.stores.place import make_place

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
    legacy.rename(path)
    logger.info("%s is now %s", legacy, path)


class JsonlStore:
    """The graph in memory, read again when the file has changed, the file replaced whole at every write."""

    best_batch = 1_000_000

    def __init__(self, path: str) -> None:
        self.url = path
        self._path = Path(path)
        self._path_text = path
        self._translated = Translated(path)
        self._lock = threading.RLock()
        self._graph = MemoryGraph()
        self._rejected: list[bytes] = []
        self._stamp: Stamp | None = _UNREAD
        self._stopped: str | None = None
        self._held: int | None = None
        self._swept = False
        make_place(self._path)

    def look_up(self, name: str) -> Graph:
        with self._lock, self._translated:
            self._catch_up()
            return self._graph.look_up(name)

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
            with locked(self._path.resolve()):
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
        loaded = parse(self._path.read_bytes())
        return [f"{self._path}, line {number}: {reason}" for number, reason in loaded.problems]

    def tidy(self) -> bool:
        return False

    def compact(self) -> None:
        """The file never holds more than it must."""

    def close(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _catch_up(self) -> None:
        stamp = self._current_stamp()
        if stamp == self._stamp:
            return
        self._hold()
        loaded = parse(self._path.read_bytes()) if stamp else Loaded()
        for number, reason in loaded.problems:
            logger.warning("%s, line %d: %s; the line is kept and the rest is loaded", self._path, number, reason)
        self._graph, self._rejected, self._stamp = loaded.graph, loaded.rejected, stamp

    def _current_stamp(self) -> Stamp | None:
        try:
            state = os.stat(self._path_text)  # noqa: PTH116  # before every operation, and Path.stat takes longer
        except FileNotFoundError:
            return None
        return (state.st_ino, state.st_size, state.st_mtime_ns)

    def _save(self) -> None:
        try:
            self._sweep()
            self._keep_rejected()
            replace_file(self._path, encode_lines(self._graph.entities(), self._graph.relations()))
        except StoreStopped as exc:
            self._stopped = str(exc)
            raise
        self._graph.applied.clear()
        self._stamp = self._current_stamp()
        self._hold()

    def _hold(self) -> None:
        """Keep the file open whose stamp is known: as long as it is, no other file gets its inode."""
        self.close()
        if os.name == "posix" and self._path.exists():
            self._held = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)

    def _sweep(self) -> None:
        """Remove what writers that were killed have left; nobody else writes while the lock is held."""
        if self._swept:
            return
        target = self._path.resolve()
        for spare in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            spare.unlink(missing_ok=True)
        self._swept = True

    def _keep_rejected(self) -> None:
        """Lines that cannot be loaded go to a file of their own before the rewrite would drop them."""
        if not self._rejected:
            return
        block = b"".join(line + b"\n" for line in self._rejected)
        with Path(f"{self._path}.rejected").open("a+b") as file:
            file.seek(max(0, file.tell() - len(block)))
            if file.read() != block:  # else a write that failed later has put them there
                file.write(block)
            file.flush()
            force(file.fileno(), self._path)
        logger.warning("%d lines that could not be loaded are now in %s.rejected", len(self._rejected), self._path)
        self._rejected = []

    def _forget_unsaved(self) -> None:
        """What is in memory may be ahead of the file: read it again next time."""
        if self._graph.applied:
            self._stamp = _UNREAD
