"""Small JSON files with a version, which people may read: tokens, web state."""

from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import DecodeError, ValidationError, json

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import replace_file
from polymnia.errors import StoreDamaged, StoreTooNew


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
