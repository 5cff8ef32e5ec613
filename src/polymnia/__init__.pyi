from polymnia.api import (
    ChangeRecord,
    EntityRecord,
    ForgottenRecord,
    LocalMemory,
    LocalNotes,
    NoteRecord,
    ObservationRecord,
    RelationRecord,
    SearchHit,
    open_memory,
)

__version__: str
open = open_memory  # noqa: A001  # the name by which programs know it

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
    "__version__",
    "open",
]
