"""How far each session's transcript was read, in one small file."""

from pathlib import Path

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from polymnia.disk.files import make_parent, replace_file
from polymnia.disk.lock import file_lock

# The latest sessions are remembered. Others are read again, which adds nothing.
MAX_SESSIONS = 500
LOCK_TIMEOUT_S = 1.0


class Position(Struct, frozen=True):
    """How many bytes of a transcript were read, or turns of events that have all of them.

    No text of a conversation is kept here, where no erasure would find it.
    """

    offset: int = 0


class Positions:
    """The positions in a file. A damaged file counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, key: str) -> Position:
        """Return the position in a transcript; the beginning if it is unknown."""
        return self._load().get(key) or Position()

    def save(self, key: str, position: Position) -> None:
        """Keep a position. Raise StoreBusy, StoreError or OSError."""
        make_parent(self._path)
        with file_lock(self._path, timeout=LOCK_TIMEOUT_S):
            known = self._load()
            known.pop(key, None)
            kept = {**dict(list(known.items())[1 - MAX_SESSIONS :]), key: position}
            replace_file(self._path, [encode(kept)])

    def _load(self) -> dict[str, Position]:
        try:
            return decode(self._path.read_bytes(), type=dict[str, Position])
        except (FileNotFoundError, DecodeError, UnicodeDecodeError):
            return {}
