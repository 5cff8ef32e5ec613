"""The Python API: a memory in this process, without a server. `import polymnia` offers the same names."""

from polymnia.api.memory import LocalMemory, open_memory
from polymnia.api.notes import LocalNotes
from polymnia.api.records import (
    ChangeRecord,
    EntityRecord,
    ForgottenRecord,
    NoteRecord,
    ObservationRecord,
    RelationRecord,
    SearchHit,
)

__all__ = [
    "ChangeRecord",
    "EntityRecord",
    "ForgottenRecord",
    "LocalMemory",
    "LocalNotes",
    "NoteRecord",
    "ObservationRecord",
    "RelationRecord",
    "SearchHit",
    "open_memory",
]
