"""The values that every layer uses: the graph, notes, passages, changes, workspaces and access."""

from polymnia.model.access import CAPABILITIES, NOBODY, OWNER, Capability, Principal
from polymnia.model.changes import Change, PurgeCounts, Rows, TrashItem
from polymnia.model.graph import (
    Counts,
    Entity,
    EntityDraft,
    Graph,
    Observation,
    ObservationDraft,
    ObservationSet,
    Relation,
    RelationKey,
    TypeCount,
)
from polymnia.model.notes import VAULT, Note, NoteHit, NoteScope
from polymnia.model.passages import (
    NOTE,
    NOTE_TYPE,
    EmbeddingModel,
    Hit,
    Neighbours,
    Passage,
    PassageKey,
    Signals,
    Within,
    WordCounts,
)
from polymnia.model.workspaces import Status, Workspace

__all__ = [
    "CAPABILITIES",
    "NOBODY",
    "NOTE",
    "NOTE_TYPE",
    "OWNER",
    "VAULT",
    "Capability",
    "Change",
    "Counts",
    "EmbeddingModel",
    "Entity",
    "EntityDraft",
    "Graph",
    "Hit",
    "Neighbours",
    "Note",
    "NoteHit",
    "NoteScope",
    "Observation",
    "ObservationDraft",
    "ObservationSet",
    "Passage",
    "PassageKey",
    "Principal",
    "PurgeCounts",
    "Relation",
    "RelationKey",
    "Rows",
    "Signals",
    "Status",
    "TrashItem",
    "TypeCount",
    "Within",
    "WordCounts",
    "Workspace",
]
