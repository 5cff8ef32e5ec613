"""The Python API: a memory in this process, without a server. `import polymnia` has its names."""

from polymnia.api.memory import LocalMemory, LocalNotes
from polymnia.api.memory import open_memory as open  # noqa: A004  # as programs know it
from polymnia.api.records import (
    ChangeRecord,
    EntityRecord,
    FactRecord,
    ForgottenRecord,
    NoteRecord,
    RelationRecord,
    SearchHit,
)

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
    "open",
]
