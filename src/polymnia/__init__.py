"""Polymnia: one memory server for AI agents that speaks every memory dialect, and its Python API.

`polymnia.open(url)` opens a memory in this process.
"""
# ruff: noqa: F403, F405

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "ChangeRecord",
    "EntityRecord",
    "FactRecord",
    "ForgottenRecord",
    "LocalMemory",
    "LocalNotes",
    "NoteRecord",
    "RelationRecord",
    "SearchHit",
    "__version__",
    "open",
]

if TYPE_CHECKING:
    from polymnia.api import *
else:
    # A server that starts must not wait for the API, so its names are imported on first use.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("polymnia.api"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
