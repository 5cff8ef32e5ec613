"""The state of one session: the facts that it was shown, and whether memory is switched off.

Each session has a small file that is only appended to, so two hooks at once do no harm. It is not
forced to disk: if it is lost, a fact may be shown twice.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from time import time

from polymnia.disk.files import open_private

# Who writes what a hook stores.
ACTOR = "polymnia hook"
_ON, _OFF = "on", "off"
_SHOWN = "shown"
# Files of sessions that ended long ago are removed.
KEPT_DAYS = 30
MAX_FILE_BYTES = 1 << 20
_PLAIN_NAME = re.compile(r"[\w-]{1,80}\Z", re.ASCII)


class SessionFile:
    """The file of a session. Without a session id nothing is kept."""

    def __init__(self, directory: Path, session: str) -> None:
        self._path = directory / _file_name(session) if session else None
        self.is_off = False
        self.shown: set[str] = set()
        self.tokens = 0
        for line in self._lines():
            self._take(line)

    def switch(self, *, is_off: bool) -> None:
        """Switch the memory off or on for the rest of the session. Raise OSError."""
        self.is_off = is_off
        self._append(_OFF if is_off else _ON)

    def add_shown(self, key: str, tokens: int) -> None:
        """Note that a fact was shown, and what it cost. Raise OSError."""
        self.shown.add(key)
        self.tokens += tokens
        self._append(f"{_SHOWN} {tokens} {key}")

    def _lines(self) -> list[str]:
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                return file.read(MAX_FILE_BYTES).decode(errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word in (_ON, _OFF):
            self.is_off = word == _OFF
        elif word == _SHOWN:
            tokens, _, key = rest.partition(" ")
            self.shown.add(key)
            self.tokens += int(tokens) if tokens.isdecimal() else 0

    def _append(self, line: str) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._path, "ab", opener=open_private) as file:
            file.write(f"{line}\n".encode())


def remove_old_files(directory: Path) -> None:
    """Remove the files of sessions that have long ended."""
    oldest = time() - KEPT_DAYS * 86_400
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.stat().st_mtime < oldest:
                Path(entry).unlink()


def _file_name(session: str) -> str:
    if _PLAIN_NAME.match(session):
        return session
    from hashlib import sha256  # loads OpenSSL; the programs we know have plain ids

    return sha256(session.encode(errors="replace")).hexdigest()
