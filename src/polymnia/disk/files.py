"""Durable files: replace one, force it to disk, keep small JSON in one, and map errors to ours."""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from itertools import count
from pathlib import Path
from time import gmtime, strftime
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import DecodeError, ValidationError, json

from polymnia.errors import (
    PolymniaError,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreStopped,
    StoreTooNew,
)


class FileStamp(NamedTuple):
    """What distinguishes one content of a file from another, without reading it."""

    device: int
    inode: int
    size: int
    changed_at: int

    @classmethod
    def of(cls, state: os.stat_result) -> "FileStamp":
        """Return the stamp of a file whose state was just read."""
        return cls(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)

    @property
    def identity(self) -> tuple[int, int]:
        """What the file keeps as long as it is not replaced by another one."""
        return self.device, self.inode


def file_stamp(path: str) -> FileStamp | None:
    """Return the present stamp of a file; None if there is none, or it cannot be looked at."""
    try:
        # This runs before every operation, and Path.stat is slower.
        return FileStamp.of(os.stat(path))  # noqa: PTH116
    except OSError:
        return None


def file_identity(path: str) -> tuple[int, int] | None:
    """Return what distinguishes the file at the path from another one; None if there is none."""
    stamp = file_stamp(path)
    return None if stamp is None else stamp.identity


def replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write the chunks to a new file, force it to disk and rename it over `path`.

    Readers and crashes see the old file or the new one. Raise OSError with the old file unchanged,
    or StoreStopped when the disk does not confirm the write.
    """
    target = path.resolve()  # a symbolic link stays a link
    spare = target.with_name(f"{target.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(spare, "xb", opener=open_private) as file:
            _copy_mode(target, file.fileno())
            file.writelines(chunks)
            file.flush()
            fsync(file.fileno(), target)
        with sync_directory(target.parent):
            spare.replace(target)
    except BaseException:
        with suppress(OSError):  # the first error matters more
            spare.unlink()
        raise


class Leftovers:
    """The temporary files of `replace_file` in processes that were killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._are_removed = False

    def remove(self) -> None:
        """Remove them, once. Call this with the file's lock, so that no other writer is active."""
        if self._are_removed:
            return
        target = self._path.resolve()
        for spare in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            with suppress(OSError):  # a leftover file only takes space
                spare.unlink()
        self._are_removed = True


def replace_quickly(path: Path, data: bytes) -> None:
    """Replace a file without waiting for the disk; `sync_files` waits for many files at once."""
    spare = path.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with open(spare, "xb", opener=open_private) as file:
            _copy_mode(path, file.fileno())
            file.write(data)
        spare.replace(path)
    except BaseException:
        with suppress(OSError):  # the first error matters more
            spare.unlink()
        raise


def sync_files(paths: Collection[Path]) -> None:
    """Wait until the disk has these files. Raise StoreStopped if it fails."""
    # For more files than this, one sync of the whole machine is faster than one per file.
    if len(paths) > 200 and hasattr(os, "sync"):
        os.sync()
        return
    for path in paths:
        with path.open("rb") as file:
            fsync(file.fileno(), path)
    for directory in {path.parent for path in paths}:
        fsync_directory(directory)


def fsync(descriptor: int, path: Path) -> None:
    """Wait until the disk has the data. Raise StoreStopped if it cannot confirm that."""
    try:
        os.fsync(descriptor)
    except OSError as exc:
        raise StoreStopped(
            f"the disk did not confirm a write to {path} ({exc.strerror}); "
            "nothing was acknowledged, check the disk and start again"
        ) from exc


def fsync_directory(directory: Path) -> None:
    """Force the entries of a directory to disk, where the system supports it."""
    with sync_directory(directory):
        pass


@contextmanager
def sync_directory(directory: Path) -> Iterator[None]:
    """Force the directory to disk after the block. Open it first: a failure changes nothing."""
    if not hasattr(os, "O_DIRECTORY"):
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
        fsync(descriptor, directory)
    finally:
        os.close(descriptor)


def dated_name(path: Path, ending: str) -> Path:
    """Return an unused path: the given one with the ending and the present time in UTC."""
    dated = Path(f"{path}{ending}{strftime('%Y%m%dT%H%M%SZ', gmtime())}")
    unused = dated
    for number in count(1):
        if not unused.exists():
            break
        unused = dated.with_name(f"{dated.name}-{number}")
    return unused


def make_parent(path: Path) -> None:
    """Create the directory of a store's file, durable and private to the user. Raise StoreError."""
    if path.is_dir():
        raise StoreError(f"{path} is a directory; name a file in it")
    try:
        make_directory(path.parent)
    except OSError as exc:
        raise StoreError(
            f"cannot create the directory of {path} ({exc.strerror}); choose another path"
        ) from exc


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read; an opener for `open`."""
    return os.open(path, flags, 0o600)


def make_directory(directory: Path) -> None:
    """Create a directory and its parents, durable and private to the user. Raise OSError."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    fsync_directory(directory.parent)


def _copy_mode(target: Path, descriptor: int) -> None:
    """Keep the mode and, where allowed, the owner of the file that is replaced."""
    if target.exists() and hasattr(os, "fchmod"):
        state = target.stat()
        with suppress(PermissionError):
            os.fchown(descriptor, state.st_uid, state.st_gid)
        os.fchmod(descriptor, state.st_mode & 0o777)


class ErrorMapping:
    """A reentrant `with` block that replaces exceptions of some types by ours.

    It is a class because it wraps every store operation, and a generator is slower.
    """

    __slots__ = ("_map", "_path", "_types")

    def __init__(
        self,
        path: str,
        types: tuple[type[Exception], ...],
        map_error: Callable[[str, Any], PolymniaError],
    ):
        self._path = path
        self._types = types
        self._map = map_error

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: object
    ) -> None:
        if isinstance(exc, self._types):
            raise self._map(self._path, exc) from exc


def map_os_errors(path: str) -> ErrorMapping:
    """Return a block that turns an OSError into a StoreError about the file at that path."""
    return ErrorMapping(path, (OSError,), _store_error)


def _store_error(path: str, exc: OSError) -> StoreError:
    if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(f"no space left for {path}; nothing was changed, free some space")
    return StoreError(
        f"{path}: {exc.strerror}; nothing was changed, check the file and its permissions"
    )


class Versioned(Protocol):
    """What such a file holds."""

    version: int


T = TypeVar("T", bound=Versioned)


def decode_file(
    path: Path, data: bytes, kind: type[T], *, newest: int, damage: str, advice: str
) -> T:
    """Return the contents of a file.

    Raise StoreDamaged with the damage and the advice, StoreTooNew for a version after the newest.
    """
    try:
        contents = json.decode(data, type=kind)
    except (DecodeError, ValidationError, UnicodeDecodeError) as exc:
        raise StoreDamaged(f"{path} {damage} ({exc}); {advice}") from exc
    if contents.version > newest:
        raise StoreTooNew(
            f"{path} has version {contents.version}, but this program supports versions up to "
            f"{newest}; upgrade polymnia"
        )
    return contents


def write_file(path: Path, contents: Versioned) -> None:
    """Replace the file. Raise StoreError."""
    with map_os_errors(str(path)):
        replace_file(path, [json.format(json.encode(contents), indent=2), b"\n"])
