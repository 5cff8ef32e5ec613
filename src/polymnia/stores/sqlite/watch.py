"""Notice that an open store's file or its log was moved, deleted, replaced or overwritten."""

import os

import apsw

from polymnia.stores.sqlite.log import log_fits, log_path, read_file_head

# Device, inode, time of the last write and size.
_State = tuple[int, int, int, int]


class FileWatch:
    """The files of a store as it opened them.

    The connection is the one that writes; nothing else may use it during a call. SQLite keeps the
    log as long as a connection is open, so the log must stay the file it was. Checkpoints of any
    process change the database file, so after a change its lineage decides.
    """

    def __init__(self, path: str, connection: apsw.Connection, *, read_only: bool) -> None:
        """Begin to watch, after the connection's first read: that opens the log."""
        self._path = path
        self._connection = connection
        self._log_path = str(log_path(path))
        self._file = _state(path)
        self._log = None if read_only else _state(self._log_path)
        self._is_read_only = read_only
        self._problem: str | None = None
        if not read_only:
            self._version = connection.pragma("data_version")
            self._head = read_file_head(connection)

    @property
    def in_place(self) -> bool:
        """True while the file that was opened is the one at its path."""
        return _identity(self._file) == _identity(_state(self._path))

    @property
    def log_is_empty(self) -> bool:
        """True if nothing was written since the log was created."""
        state = _state(self._log_path)
        return state is not None and not state[3]

    @property
    def log_is_lost(self) -> bool:
        """True if the log was deleted, and nothing else happened."""
        return self._log is not None and _state(self._log_path) is None and self.in_place

    @property
    def is_unchanged(self) -> bool:
        """True if the files are as they were when they were last verified."""
        if self._problem is not None:
            return False
        file = _state(self._path)
        if self._is_read_only:
            return _identity(file) == _identity(self._file)
        return file == self._file and _identity(_state(self._log_path)) == _identity(self._log)

    def find_problem(self) -> str | None:
        """Return what happened to the names of the files, None if nothing did.

        A problem never goes away.
        """
        if self._problem is None:
            self._problem = self._find_moved_file()
        return self._problem

    def verify(self) -> str | None:
        """Return what happened to the files.

        If the file changed, find out whether that was a checkpoint.
        """
        if not self.is_unchanged and self.find_problem() is None:
            self._problem = self._find_overwrite()
        return self._problem

    def accept_checkpoint(self) -> None:
        """Take the file as it is after a checkpoint of this connection."""
        self._file = _state(self._path)
        self._head = read_file_head(self._connection)

    def _find_moved_file(self) -> str | None:
        if not self.in_place:
            return f"{self._path} was moved, deleted or replaced meanwhile; start the server again"
        if self._log is not None and _identity(_state(self._log_path)) != _identity(self._log):
            return (
                f"{self._log_path} was deleted or replaced while the server used it; "
                "start the server again"
            )
        return None

    def _find_overwrite(self) -> str | None:
        file, version = _state(self._path), self._connection.pragma("data_version")
        head, fits = read_file_head(self._connection), log_fits(self._path, self._connection)
        if fits is None and version != self._connection.pragma("data_version"):
            return None  # another process is using the log; check again next time
        # With an empty log the file changes only if the log was used since the last check.
        # SQLite counts that.
        if fits is False or (fits is None and head != self._head and version == self._version):
            return f"{self._path} was overwritten while the server used it; start the server again"
        self._file, self._head, self._version = file, head, version
        return None


def _identity(state: _State | None) -> tuple[int, ...] | None:
    return None if state is None else state[:2]


def _state(path: str) -> _State | None:
    try:
        state = os.stat(path)  # noqa: PTH116  # before every operation, and Path.stat is slower
    except OSError:
        return None
    return (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)
