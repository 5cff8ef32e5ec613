"""A store that keeps its graph in memory and in one file, whatever the format of the file."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock, refuse_other_names
from polymnia.disk.replace import Leftovers, make_parent
from polymnia.errors import StoreError, StoreStopped
from polymnia.stores.contract import Capabilities, OpenReaders
from polymnia.stores.files.graph import GraphOnlyStore, MemoryGraph


class GraphFile(Protocol):
    """A file of some format, and the graph that it holds. One thread uses it at a time."""

    best_batch: int
    graph: MemoryGraph

    def catch_up(self) -> None:
        """Read what other processes wrote. Change nothing on disk."""

    def prepare(self) -> None:
        """Catch up, and get the file ready for a write. The lock of the file is held."""

    def save(self) -> None:
        """Write the changes that were applied to the graph."""

    def forget(self) -> None:
        """Have the whole file read again."""

    def compact(self) -> None:
        """Write the smallest file of the graph."""

    def check(self) -> list[str]:
        """Return what is wrong with the file, a sentence for each problem."""

    def close(self) -> None:
        """Close the file. It is opened again when it is next used."""


class FileStore(GraphOnlyStore):
    """A graph in memory. A read first catches up with the file; a write is in the file at once."""

    capabilities = Capabilities()

    def __init__(self, path: str, file: GraphFile, *, read_only: bool = False) -> None:
        self.url = path
        self.best_batch = file.best_batch
        self._path = Path(path)
        self._file = file
        self._read_only = read_only
        self._os_errors = map_os_errors(path)
        self._lock = threading.RLock()
        self._readers: OpenReaders[MemoryGraph] = OpenReaders()
        self._leftovers = Leftovers(self._path)
        self._stopped: str | None = None
        if not read_only:
            make_parent(self._path)

    @contextmanager
    def reading(self, *, may_lag: bool = False) -> Iterator[MemoryGraph]:
        with self._lock, self._os_errors:
            # The lock is held, so an open reader can only be of this thread.
            if self._readers.last is None:
                self._file.catch_up()
            with self._readers.hold(self._file.graph) as reader:
                yield reader

    @contextmanager
    def writing(self) -> Iterator[MemoryGraph]:
        self._readers.forget()
        with self._exclusive():
            graph = self._file.graph
            try:
                yield graph
                if graph.applied:
                    self._file.save()
            except BaseException:
                if graph.applied:  # memory may be ahead of the file
                    self._file.forget()
                raise

    def check(self) -> list[str]:
        with self._lock, self._os_errors:
            return self._file.check() if self._path.exists() else []

    def compact(self) -> None:
        with self._exclusive():
            self._file.compact()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the lock of the file, ready for a write."""
        with self._lock, self._os_errors:
            if self._read_only:
                raise StoreError(f"{self._path} was opened read-only; nothing was changed")
            if self._stopped is not None:
                raise StoreStopped(self._stopped)
            with file_lock(self._path):
                refuse_other_names(self._path)
                self._leftovers.remove()
                try:
                    self._file.prepare()
                    yield
                except StoreStopped as exc:  # the disk did not confirm a write
                    self._stopped = str(exc)
                    raise
