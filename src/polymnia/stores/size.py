"""The size of a store on disk, and what else monitoring wants to know of it."""

from contextlib import suppress
from pathlib import Path

from polymnia.stores.open import database_gauges, has_files, store_kind


def store_gauges(url: str) -> dict[str, float]:
    """Return what monitoring wants to know of a store, by name. Raise StoreError."""
    kind, path = store_kind(url)
    if kind == "postgres":
        return database_gauges(url)
    size = file_bytes(path) if has_files(kind, path) else None
    return {} if size is None else {"store_bytes": float(size)}


def file_bytes(path: str) -> int | None:
    """Return the size of a file with its log, or of a directory's files; None if there are none."""
    sizes = []
    for file in _files_of(path):
        with suppress(OSError):  # deleted meanwhile, or not readable
            if file.is_file():
                sizes.append(file.stat().st_size)
    return sum(sizes) if sizes else None


def store_files(url: str) -> list[Path]:
    """Return the files of a store, with their logs; none for a store on a server."""
    kind, path = store_kind(url)
    if not has_files(kind, path):
        return []
    return [file for file in _files_of(path) if file.is_file()]


def _files_of(path: str) -> list[Path]:
    if Path(path).is_dir():
        return list(Path(path).rglob("*"))
    return [Path(path), Path(path + "-wal")]  # the log of a SQLite file is part of the store
