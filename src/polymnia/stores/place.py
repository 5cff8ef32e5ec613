"""Where a store's file may be: the one place that makes directories for them."""

from pathlib import Path

from polymnia.errors import StoreError


def make_place(path: Path) -> None:
    """Make the directory of a store's file. Raises StoreError."""
    if path.is_dir():
        raise StoreError(f"{path} is a directory; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError(f"the directory of {path} cannot be made ({exc.strerror}); choose another path") from exc
