"""Turn what a driver or the operating system raises about a store into one of our errors."""

import errno
from collections.abc import Callable
from typing import Any

from polymnia.errors import PolymniaError, StoreError, StoreFull

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class ErrorMapping:
    """A reentrant `with` block that replaces exceptions of some types by ours.

    It is a class because it wraps every store operation, and a generator is slower.
    """

    __slots__ = ("_map", "_path", "_types")

    def __init__(
        self,
        path: str,
        types: tuple[type[Exception], ...],
        map_error: Callable[[str, Any], PolymniaError],
    ):
        self._path = path
        self._types = types
        self._map = map_error

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: object
    ) -> None:
        if isinstance(exc, self._types):
            raise self._map(self._path, exc) from exc


def map_os_errors(path: str) -> ErrorMapping:
    """Return a block that turns an OSError into a StoreError about the file at that path."""
    return ErrorMapping(path, (OSError,), _store_error)


def _store_error(path: str, exc: OSError) -> StoreError:
    if exc.errno in _FULL:
        return StoreFull(f"no space left for {path}; nothing was changed, free some space")
    return StoreError(
        f"{path}: {exc.strerror}; nothing was changed, check the file and its permissions"
    )
