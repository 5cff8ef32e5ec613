"""Tokens in a file, which holds only their hashes."""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from msgspec import Struct

from polymnia.disk.files import decode_file, make_parent, map_os_errors, write_file
from polymnia.disk.lock import file_lock
from polymnia.model import Token

logger = logging.getLogger(__name__)

# The file's version. A later one may hold restrictions that this version does not know. A file
# without people, grants and limits has version 1, so that earlier programs can read it.
_VERSION = 2
# The last use of a token is recorded at most once in this many seconds.
_USE_RESOLUTION_S = 60


class _Contents(Struct, kw_only=True):
    version: int
    tokens: list[Token]


class TokenFile:
    """The tokens in a file. It is read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._stamp: object = None
        self._by_id: dict[str, Token] = {}
        self._existed = False
        self._used_at: dict[str, float] = {}

    @property
    def exist(self) -> bool:
        """True if there ever was a token, even if the file is lost while this process runs."""
        self._existed = self._existed or os.path.lexists(self.path)
        return self._existed

    def read(self) -> Mapping[str, Token]:
        with self._lock:
            self._refresh()
            return self._by_id

    def find(self, identifier: str, digest: str = "") -> Token | None:
        return self.read().get(identifier)

    @contextmanager
    def edit(self, *identifiers: str) -> Iterator[list[Token]]:
        make_parent(self.path)
        with file_lock(self.path):
            before = list(self.read().values())
            tokens = list(before)
            yield tokens
            if tokens == before:
                return
            version = 1
            for token in tokens:
                if token.kind != "token" or token.requests is not None or token.writes is not None:
                    version = _VERSION
            write_file(self.path, _Contents(version=version, tokens=tokens))

    def record_use(self, identifier: str) -> None:
        now = time.time()
        if now - self._used_at.get(identifier, 0.0) < _USE_RESOLUTION_S:
            return
        self._used_at[identifier] = now
        try:
            self._use_directory.mkdir(mode=0o700, exist_ok=True)
            (self._use_directory / identifier).touch(mode=0o600)
        except OSError as exc:  # a read-only directory; logins work without it
            logger.info("cannot record the use of a token: %s", exc)

    def last_used(self, identifier: str) -> int | None:
        try:
            return int((self._use_directory / identifier).stat().st_mtime)
        except OSError:
            return None

    def follow(self) -> None:
        """Do nothing: every read looks whether the file has changed."""

    def close(self) -> None:
        """Do nothing: the file is never left open."""

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        with map_os_errors(str(self.path)):
            stamp = _stamp(self.path)
            if stamp == self._stamp:
                return
            data = None if stamp is None else self.path.read_bytes()
        tokens: list[Token] = []
        if data is not None:
            contents = decode_file(
                self.path,
                data,
                _Contents,
                newest=_VERSION,
                damage="is not a token file",
                advice="all logins are rejected until it is repaired",
            )
            tokens = contents.tokens
        self._by_id = {token.id: token for token in tokens}
        self._stamp = stamp

    @property
    def _use_directory(self) -> Path:
        """The directory with a file per used token. Its modification time is the last use."""
        return self.path.with_name(f"{self.path.name}.used")


def _stamp(path: Path) -> object:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return (state.st_ino, state.st_mtime_ns, state.st_size)
