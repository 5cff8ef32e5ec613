"""The one place where the operating system's errors about a store's file become ours."""

import errno

from polymnia.errors import StoreError, StoreFull

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Translated:
    """A block in which an OSError becomes a sentence about this file. It may be entered many times."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, OSError):
            raise _ours(self._path, exc) from exc


def _ours(path: str, exc: OSError) -> StoreError:
    if exc.errno in _FULL:
        return StoreFull(f"no room left for {path}; nothing was changed, free some space")
    return StoreError(f"{path}: {exc.strerror}; nothing was changed, check the file and its permissions")
