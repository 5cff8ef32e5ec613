"""The bytes of a store: how many there are, and which files or tables have a text."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from polymnia.stores.open import database_gauges, find_in_tables, has_files, store_kind


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


def find_texts(url: str, texts: Collection[str], workspaces: Collection[str]) -> list[str]:
    """Return the files of a store that have one of the texts, or the tables of its database.

    Files are searched whole, tables only for the workspaces. Raise StoreError.
    """
    kind, path = store_kind(url)
    if kind == "postgres":
        return find_in_tables(url, texts, workspaces)
    places = []
    if has_files(kind, path):
        for file in filter(Path.is_file, _files_of(path)):
            content = file.read_bytes()
            if any(text.encode() in content for text in texts):
                places.append(str(file))
    return places


def _files_of(path: str) -> list[Path]:
    if Path(path).is_dir():
        return list(Path(path).rglob("*"))
    return [Path(path), Path(path + "-wal")]  # the log of a SQLite file is part of the store
