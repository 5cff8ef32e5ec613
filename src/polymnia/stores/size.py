"""The size of a store on disk."""

from contextlib import suppress
from pathlib import Path

from polymnia.stores.open import has_files, store_kind


def store_bytes(url: str) -> int | None:
    """Return the size of a store's files with their logs; None if there are no files."""
    kind, path = store_kind(url)
    return file_bytes(path) if has_files(kind, path) else None


def file_bytes(path: str) -> int | None:
    """Return the size of a file with its log, or of a directory's files; None if there are none."""
    # The log of a SQLite file is part of the store.
    files = [Path(path), Path(path + "-wal")]
    if Path(path).is_dir():
        files = list(Path(path).rglob("*"))
    sizes = []
    for file in files:
        with suppress(OSError):  # deleted meanwhile, or not readable
            if file.is_file():
                sizes.append(file.stat().st_size)
    return sum(sizes) if sizes else None
