"""Durable file operations: replace a file, force data to disk, create private directories."""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from itertools import count
from pathlib import Path
from time import gmtime, strftime

from polymnia.errors import StoreError, StoreStopped


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
