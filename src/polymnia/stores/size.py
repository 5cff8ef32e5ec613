"""The size of a store on disk."""

from pathlib import Path

from polymnia.stores.open import has_files, store_kind

# The log of a SQLite file is part of the store.
_LOG_SUFFIX = "-wal"


def store_bytes(url: str) -> int | None:
    """Return the size of a store's files with their logs; None if it has none, or they cannot be found."""
    kind, path = store_kind(url)
    return file_bytes(path) if has_files(kind, path) else None


def file_bytes(path: str) -> int | None:
    """Return the size of a file with its log, or of all files below a directory; None if there is none."""
    files = (
        tuple(Path(path).rglob("*"))
        if Path(path).is_dir()
        else (Path(path), Path(path + _LOG_SUFFIX))
    )
    sizes = [size for file in files if (size := _size(file)) is not None]
    return sum(sizes) if sizes else None


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size if file.is_file() else None
    except OSError:
        return None
