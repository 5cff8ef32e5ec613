"""Replacing a file whole: readers see the old one or the new one, and a crash leaves one of the two."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polymnia.errors import StoreStopped


def replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write the chunks beside the file, force them to disk, and put the result in its place.

    Raises OSError, with the old file as it was, or StoreStopped when the disk does not confirm.
    """
    target = path.resolve()  # through a symbolic link, so that the link stays
    spare = target.with_name(f"{target.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(spare, "xb", opener=private) as file:
            _keep_mode(target, file.fileno())
            file.writelines(chunks)
            file.flush()
            force(file.fileno(), target)
        with _synced(target.parent):
            spare.replace(target)
    except BaseException:
        with suppress(OSError):  # what went wrong before matters more
            spare.unlink()
        raise


def sync_directory(directory: Path) -> None:
    """Force a directory's entries to disk, where the system knows how."""
    with _synced(directory):
        pass


def force(descriptor: int, path: Path) -> None:
    """Wait until the disk has it. Raises StoreStopped: after a failure nobody can know what was kept."""
    try:
        os.fsync(descriptor)
    except OSError as exc:
        raise StoreStopped(
            f"the disk did not confirm a write to {path} ({exc.strerror}); nothing was acknowledged, "
            "check the disk and start again"
        ) from exc


@contextmanager
def _synced(directory: Path) -> Iterator[None]:
    """Force the directory's entries to disk after the block; it is opened before, while nothing is changed yet."""
    if not hasattr(os, "O_DIRECTORY"):
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
        force(descriptor, directory)
    finally:
        os.close(descriptor)


def private(path: str, flags: int) -> int:
    """An opener for files that only their owner may read."""
    return os.open(path, flags, 0o600)


def _keep_mode(target: Path, descriptor: int) -> None:
    """The mode and, where that is allowed, the owner of the file that is replaced."""
    if target.exists() and hasattr(os, "fchmod"):
        state = target.stat()
        with suppress(PermissionError):
            os.fchown(descriptor, state.st_uid, state.st_gid)
        os.fchmod(descriptor, state.st_mode & 0o777)
