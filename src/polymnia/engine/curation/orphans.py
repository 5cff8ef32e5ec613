"""Orphans: entities without a relation."""

from polymnia.engine.memory import Memory
from polymnia.model import Entity
from polymnia.stores.contract import Reader


def orphans(memory: Memory, *, limit: int | None = None) -> list[Entity]:
    """Return the entities that no relation starts or ends at, without observations, the last updated first."""
    with memory.reading() as read:
        return orphans_in(read)[:limit]


def orphans_in(read: Reader) -> list[Entity]:
    """Return the orphans of a snapshot."""
    joined = {name for relation in read.relations() for name in (relation.source, relation.target)}
    alone = [entity for entity in read.outlines() if entity.name not in joined]
    return sorted(alone, key=lambda entity: (-entity.updated_at, entity.name))
