"""Polymnia: one memory server for AI agents that speaks every memory dialect, and its Python API.

`polymnia.open(url)` opens a memory in this process. The names of the API are imported when they are first used, because
a server that starts must not wait for them; `__init__.pyi` declares them.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_API = {
    "open": "open_memory",
    "LocalMemory": "LocalMemory",
    "LocalNotes": "LocalNotes",
    "EntityRecord": "EntityRecord",
    "ObservationRecord": "ObservationRecord",
    "RelationRecord": "RelationRecord",
    "NoteRecord": "NoteRecord",
    "ChangeRecord": "ChangeRecord",
    "ForgottenRecord": "ForgottenRecord",
    "SearchHit": "SearchHit",
}
__all__ = ["__version__", *_API]


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("polymnia.api"), _API[name])


def __dir__() -> list[str]:
    return sorted(__all__)
