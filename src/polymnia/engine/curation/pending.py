"""Pending summaries: entities with observations that are newer than their summary, or without a summary."""

from msgspec import Struct

from polymnia.engine.curation.scan import Check, Progress, ignore_progress, never_stop, scan
from polymnia.engine.memory import Memory
from polymnia.model import Entity


class PendingSummary(Struct, frozen=True):
    """An entity to summarize. `summary_at` is 0 if it has no summary, `last_observation_at` if no time is known."""

    name: str
    type: str
    observations: int
    last_observation_at: int
    summary_at: int
    updated_at: int


def pending(
    memory: Memory,
    *,
    limit: int | None = None,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[PendingSummary]:
    """Return the entities to summarize, the latest observation first. One without observations has nothing to say."""
    with memory.reading() as read:
        found = [
            pending_of(each)
            for each in scan(read, "looking at summaries", progress=progress, check=check)
        ]
    return rank_pending([each for each in found if each is not None])[:limit]


def pending_of(entity: Entity) -> PendingSummary | None:
    """Return the entity if it needs a summary."""
    if not entity.observations:
        return None
    last = max([each.created_at for each in entity.observations])
    if entity.summary and last <= entity.summary_at:
        return None
    summary_at = entity.summary_at if entity.summary else 0
    return PendingSummary(
        entity.name, entity.type, len(entity.observations), last, summary_at, entity.updated_at
    )


def rank_pending(found: list[PendingSummary]) -> list[PendingSummary]:
    """Return them with the latest observation first, then by name."""
    return sorted(found, key=lambda each: (-each.last_observation_at, each.name))
