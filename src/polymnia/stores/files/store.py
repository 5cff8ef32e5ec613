"""A store that keeps its graph in memory and in one file, whatever the format of the file."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from polymnia.disk.files import (
    FileStamp,
    Leftovers,
    fsync,
    fsync_directory,
    make_parent,
    map_os_errors,
)
from polymnia.disk.lock import file_lock, refuse_other_names
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


_UNREAD = FileStamp(-1, -1, -1, -1)
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# No other file gets the inode number of an open file. Windows never reuses numbers, but cannot
# replace an open file.
_KEEP_OPEN = sys.platform != "win32"
# The last bytes before the known end. They are compared, in case the file was overwritten in place.
_TAIL_BYTES = 64


class KnownFile:
    """A file and the offset up to which its content is known. It is kept open for reading."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._stamp: FileStamp | None = _UNREAD
        self._stamp_read: FileStamp = _UNREAD
        self._tail = b""
        self.end = 0

    def is_unchanged(self) -> bool:
        """Return True if the file has not changed since it was last read or written."""
        return self._current_stamp() == self._stamp

    def read(self) -> bytes:
        """Return the whole content; empty if there is no file."""
        self.close()
        return self._read_from(0) if self._open() else b""

    def read_appended(self) -> bytes | None:
        """Return what follows the known end; None if the part before it may have changed."""
        known, now = self._stamp, self._current_stamp()
        if known is None or now is None or known.identity != now.identity:
            return None
        if now.size <= self.end or not self._open():
            return None
        appended = self._read_from(self.end - len(self._tail))
        return appended[len(self._tail) :] if appended.startswith(self._tail) else None

    def mark_known(self, end: int) -> None:
        """Declare the content that was last read known up to an offset."""
        if not self._open():
            self.mark_absent()
            return
        stamp = self._stamp_read
        self.end = end
        length = min(end, _TAIL_BYTES)
        self._tail = self._read_from(end - length)[:length]
        self._stamp = stamp
        if not _KEEP_OPEN and self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def mark_replaced(self) -> None:
        """Declare all of the file known, after this process replaced it."""
        self.close()
        try:
            if self._open():
                assert self._descriptor is not None
                self._stamp_read = FileStamp.of(os.fstat(self._descriptor))
            self.mark_known(self._stamp_read.size)
        except OSError:
            self.forget()  # the file is on disk, so the write must not fail any more

    def mark_absent(self) -> None:
        """Declare that there is no file."""
        self.close()
        self.end, self._tail, self._stamp = 0, b"", None

    def append(self, data: bytes) -> None:
        """Append data and wait for the disk. A failure leaves the file as it was."""
        with self._writable(os.O_APPEND | os.O_CREAT) as descriptor:
            try:
                write_all(descriptor, data)
                fsync(descriptor, Path(self._path))
                if self.end == 0:
                    fsync_directory(Path(self._path).resolve().parent)
            except BaseException:
                # If this fails too, the next writer cuts the unfinished change off.
                with suppress(OSError):
                    os.ftruncate(descriptor, self.end)
                raise
            self._stamp = FileStamp.of(os.fstat(descriptor))
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        self.end += len(data)
        if _KEEP_OPEN:
            try:
                self._open()
            except OSError:
                self.forget()  # the data is on disk, so the write must not fail any more

    def cut(self, end: int) -> None:
        """Remove everything after an offset and wait for the disk."""
        with self._writable(0) as descriptor:
            os.ftruncate(descriptor, end)
            fsync(descriptor, Path(self._path))
            self._stamp_read = FileStamp.of(os.fstat(descriptor))

    def forget(self) -> None:
        """Have the whole file read again."""
        self._stamp = _UNREAD

    def close(self) -> None:
        """Close the file. It is read again when it is next used."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._stamp = _UNREAD

    def _current_stamp(self) -> FileStamp | None:
        try:
            # This runs before every operation, and Path.stat is slower.
            return FileStamp.of(os.stat(self._path))  # noqa: PTH116
        except FileNotFoundError:
            return None

    def _open(self) -> bool:
        """Open the file for reading. Return False if there is none."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | _BINARY)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def _writable(self, flags: int) -> Iterator[int]:
        descriptor = os.open(self._path, os.O_WRONLY | _BINARY | flags, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _read_from(self, at: int) -> bytes:
        """Return the content from an offset on."""
        assert self._descriptor is not None
        # Before reading: without a lock, a reader may get more than the stamp says.
        self._stamp_read = FileStamp.of(os.fstat(self._descriptor))
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(at)
            return file.read()


def write_private(path: Path, data: bytes, *, append: bool) -> None:
    """Write data to a private file. Raise FileExistsError for an existing one, unless appending."""
    mode = os.O_WRONLY | os.O_CREAT | _BINARY | (os.O_APPEND if append else os.O_EXCL)
    descriptor = os.open(path, mode, 0o600)
    try:
        write_all(descriptor, data)
        fsync(descriptor, path)
    finally:
        os.close(descriptor)
    fsync_directory(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data; one call may write less."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])
