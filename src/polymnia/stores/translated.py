"""A block in which what a driver or the operating system raises becomes a sentence about the store."""

from collections.abc import Callable
from typing import Any

from polymnia.errors import StoreError


class Translated:
    """It may be entered many times; a class because it is entered at every operation, and a generator takes longer."""

    __slots__ = ("_kinds", "_ours", "_path")

    def __init__(self, path: str, kinds: tuple[type[Exception], ...], ours: Callable[[str, Any], StoreError]) -> None:
        self._path = path
        self._kinds = kinds
        self._ours = ours

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, self._kinds):
            raise self._ours(self._path, exc) from exc
