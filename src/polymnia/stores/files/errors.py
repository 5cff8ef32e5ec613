"""The one place where the operating system's errors about a store's file become ours."""

import errno

from polymnia.errors import StoreError, StoreFull
from polymnia.stores.translated import Translated

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def translated(path: str) -> Translated:
    """A block in which an OSError becomes a sentence about the file at that path."""
    return Translated(path, (OSError,), _ours)


def _ours(path: str, exc: OSError) -> StoreError:
    if exc.errno in _FULL:
        return StoreFull(f"no room left for {path}; nothing was changed, free some space")
    return StoreError(f"{path}: {exc.strerror}; nothing was changed, check the file and its permissions")
