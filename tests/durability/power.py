"""Power cuts: rebuild the files as a disk may have them, from a record of what was written.

Until fsync a disk may keep a write, lose it, or keep some of its sectors, in any order. The names
in a directory change in order, and a sync of the directory makes the changes so far durable.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple

# What a disk may have kept of the data and names that were not synced.
MODELS = ("all", "nothing", "some")
_SECTOR_BYTES = 512


class Event(NamedTuple):
    """One line of the record: a kind, numbers, and the bytes or paths of the call."""

    kind: str
    file: int
    offset: int
    data: bytes
    other: bytes


def read_events(record: bytes) -> Iterator[Event]:
    """Yield what the shim has recorded, in order."""
    start = 0
    while start < len(record):
        end = record.index(b"\n", start)
        kind, file, offset, size, other_size = record[start:end].decode().split()
        middle = end + 1 + int(size)
        start = middle + int(other_size)
        data, other = record[end + 1 : middle], record[middle:start]
        yield Event(kind, int(file), int(offset), data, other)


class _File:
    """The durable content of a file, and the writes and truncations that may be lost."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []

    def write(self, offset: int, data: bytes | None) -> None:
        """Add a write, or a truncation if there is no data."""
        self._pending.append((offset, data))

    def sync(self) -> None:
        self._content = self._after(self._pending)
        self._pending = []

    def image(self, model: str, chance: Random) -> bytes:
        kept = []
        if model == "all":
            kept = self._pending
        elif model == "some":
            kept = [part for write in self._pending for part in _survivors(write, chance)]
        return bytes(self._after(kept))

    def _after(self, writes: list[tuple[int, bytes | None]]) -> bytearray:
        content = bytearray(self._content)
        for offset, data in writes:
            end = offset + len(data or b"")
            if len(content) < end:
                content.extend(bytes(end - len(content)))
            if data is None:
                del content[offset:]
            else:
                content[offset:end] = data
        return content


def _survivors(
    write: tuple[int, bytes | None], chance: Random
) -> Iterator[tuple[int, bytes | None]]:
    """Yield the parts of a write that the disk kept."""
    offset, data = write
    if data is None:
        if chance.random() < 0.5:
            yield write
        return
    for start in range(0, len(data), _SECTOR_BYTES):
        if chance.random() < 0.5:
            yield offset + start, data[start : start + _SECTOR_BYTES]


class Disk:
    """A directory with files, as the events so far may have left it."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory.resolve())
        self._files: dict[int, _File] = {}  # by inode number, of the latest file with it
        self._names: dict[str, _File | None] = {}  # durable names; None is a directory
        self._pending: list[tuple[str, str, _File | None]] = []  # parent, path, new file or none

    def apply(self, event: Event) -> None:
        """Let an event happen."""
        path, other = event.data.decode(errors="replace"), event.other.decode()
        if event.kind == "C":
            file = self._files[event.file] = _File()
            self._pending.append(("put", path, file))
        elif event.kind == "M":
            self._pending.append(("put", path, None))
        elif event.kind == "U":
            self._pending.append(("drop", path, None))
        elif event.kind in "RL":
            # One step, so that no image has both names of a renamed file, or neither.
            kind = "drop " if event.kind == "R" else "keep "
            self._pending.append((kind + path, other, self._names_now()[path]))
        elif event.kind == "W":
            self._files[event.file].write(event.offset, event.data)
        elif event.kind == "T":
            self._files[event.file].write(event.offset, None)
        elif event.kind == "S":
            self._files[event.file].sync()
        elif event.kind == "D":
            self._sync_directory(path)

    def write_image(self, target: Path, model: str, chance: Random) -> str:
        """Write what is left after a power cut to a new directory. Return a hash of it."""
        digest = sha256()
        kept = 0
        if model == "all":
            kept = len(self._pending)
        elif model == "some":
            kept = chance.randint(0, len(self._pending))
        names = _rename(self._names, self._pending[:kept])
        for path, file in sorted(names.items(), key=lambda item: item[0]):
            place = target / path.removeprefix(self._directory).lstrip("/")
            digest.update(str(place.relative_to(target)).encode() + b"\0")
            place.parent.mkdir(parents=True, exist_ok=True)
            if file is None:
                place.mkdir(exist_ok=True)
            else:
                content = file.image(model, chance)
                digest.update(len(content).to_bytes(8) + content)
                place.write_bytes(content)
        return digest.hexdigest()

    def _names_now(self) -> dict[str, _File | None]:
        return _rename(self._names, self._pending)

    def _sync_directory(self, directory: str) -> None:
        """Make the names in the directory durable, and all changes before them, as journals do."""
        last = 0
        for number, (kind, path, _) in enumerate(self._pending, 1):
            places = {str(Path(path).parent), str(Path(kind.partition(" ")[2]).parent)}
            if directory in places:
                last = number
        self._names = _rename(self._names, self._pending[:last])
        self._pending = self._pending[last:]


def _rename(
    names: dict[str, _File | None], changes: list[tuple[str, str, _File | None]]
) -> dict[str, _File | None]:
    names = dict(names)
    for kind, path, file in changes:
        what, _, former = kind.partition(" ")
        if former:
            if what == "drop":
                names.pop(former, None)
            names[path] = file
        elif what == "put":
            names[path] = file
        else:
            names.pop(path, None)
    return names
