"""Disks that fail on demand: they are full, or their fsync fails."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Protocol

import apsw
import pytest

from tests.durability.servers import ServerProcess


class Disk(Protocol):
    """A disk whose fsync can be made to fail."""

    def fail(self, after: int = 0) -> None:
        """Let `after` more calls of fsync succeed and all later ones fail."""

    def heal(self) -> None:
        """Let every fsync succeed again."""


class PythonDisk:
    """A replacement of `os.fsync`, which the file stores call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fsync = os.fsync
        self._calls_left: int | None = None
        monkeypatch.setattr(os, "fsync", self._sync)

    def fail(self, after: int = 0) -> None:
        self._calls_left = after

    def heal(self) -> None:
        self._calls_left = None

    def _sync(self, descriptor: int) -> None:
        if self._calls_left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self._calls_left is not None:
            self._calls_left -= 1
        self._fsync(descriptor)


class SqliteDisk(apsw.VFS):
    """A default SQLite VFS whose xSync can be made to fail, and xWrite of one page of a log."""

    def __init__(self) -> None:
        self.calls_left: int | None = None
        self.writes_left: int | None = None
        self.beneath = apsw.vfs_names()[0]
        super().__init__("failing", self.beneath, makedefault=True)

    def fail(self, after: int = 0) -> None:
        self.calls_left = after

    def heal(self) -> None:
        self.calls_left = None

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # apsw's name
        return _SqliteFile(self, name, flags)


class _SqliteFile(apsw.VFSFile):
    def __init__(
        self, disk: SqliteDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__(disk.beneath, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # apsw's name
        if self._is_log and self._disk.writes_left is not None:
            self._disk.writes_left -= 1
            if self._disk.writes_left < 0:
                self._disk.writes_left = None
                raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  # apsw's name
        if self._disk.calls_left == 0:
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        if self._disk.calls_left is not None:
            self._disk.calls_left -= 1
        super().xSync(flags)


class Narrow(Protocol):
    """A place for a store whose space can be taken away."""

    path: Path

    def squeeze(self, server: ServerProcess) -> None:
        """Leave the server no space for a large write."""

    def relieve(self, server: ServerProcess) -> None:
        """Give the server its space back."""


class LimitedFiles:
    """A limit on the size of the files that the server may write (RLIMIT_FSIZE)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def squeeze(self, server: ServerProcess) -> None:
        largest = max(file.stat().st_size for file in self.path.parent.iterdir())
        self._limit(server, largest + 1000)

    def relieve(self, server: ServerProcess) -> None:
        import resource

        self._limit(server, resource.RLIM_INFINITY)

    def _limit(self, server: ServerProcess, size: int) -> None:
        import resource  # Windows has no such module; the fixture skips the test there

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class SmallDevice:
    """A file system of one megabyte, filled by another file."""

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
    """Mount a file system of one megabyte; return the reason if this system cannot."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as exc:
        return f"no mount command: {exc}"
    return None if done.returncode == 0 else f"mount failed: {done.stderr.strip()}"


def unmount(directory: Path) -> None:
    """Unmount the file system, which deletes its files."""
    subprocess.run(["umount", str(directory)], check=True)
