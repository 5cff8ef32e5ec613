"""Disks that fail on demand: no room, and writes that are never confirmed."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Protocol

import apsw
import pytest

from tests.durability.servers import ServerProcess


class Disk(Protocol):
    """Where a store's files are, and whether it confirms what is written there."""

    def fail(self, after: int = 0) -> None:
        """Confirm that many writes more, and then none."""

    def heal(self) -> None:
        """Confirm every write."""


class PythonDisk:
    """`os.fsync` as a file store calls it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fsync = os.fsync
        self._left: int | None = None
        monkeypatch.setattr(os, "fsync", self._sync)

    def fail(self, after: int = 0) -> None:
        self._left = after

    def heal(self) -> None:
        self._left = None

    def _sync(self, descriptor: int) -> None:
        if self._left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self._left is not None:
            self._left -= 1
        self._fsync(descriptor)


class SqliteDisk(apsw.VFS):
    """The file system that SQLite sees, for as long as this one is the default."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.beneath = apsw.vfs_names()[0]
        super().__init__("failing", self.beneath, makedefault=True)

    def fail(self, after: int = 0) -> None:
        self.left = after

    def heal(self) -> None:
        self.left = None

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # apsw's name
        return _SqliteFile(self, name, flags)


class _SqliteFile(apsw.VFSFile):
    def __init__(self, disk: SqliteDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(disk.beneath, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802  # apsw's name
        if self._disk.left == 0:
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        if self._disk.left is not None:
            self._disk.left -= 1
        super().xSync(flags)


class Narrow(Protocol):
    """A place for a store where room can run out."""

    path: Path

    def squeeze(self, server: ServerProcess) -> None:
        """Leave the server no room for anything large."""

    def relieve(self, server: ServerProcess) -> None:
        """Give it room again."""


class LimitedFiles:
    """A process whose files may not grow any more."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def squeeze(self, server: ServerProcess) -> None:
        largest = max(each.stat().st_size for each in self.path.parent.iterdir())
        self._limit(server, largest + 1000)

    def relieve(self, server: ServerProcess) -> None:
        import resource

        self._limit(server, resource.RLIM_INFINITY)

    def _limit(self, server: ServerProcess, size: int) -> None:
        import resource  # not everywhere: the test is skipped where it is missing

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class SmallDevice:
    """A file system of one megabyte that something else fills up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path.parent / "filler"

    def squeeze(self, server: ServerProcess) -> None:
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError as exc:
                assert exc.errno == errno.ENOSPC

    def relieve(self, server: ServerProcess) -> None:
        self._filler.unlink()


def mount_small_device(directory: Path) -> str | None:
    """Mount one there; gives the reason when that cannot be done here."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as exc:
        return f"no mount command: {exc}"
    return None if done.returncode == 0 else f"a small device cannot be mounted here: {done.stderr.strip()}"


def unmount(directory: Path) -> None:
    """Take it away again, with all that is on it."""
    subprocess.run(["umount", str(directory)], check=True)
