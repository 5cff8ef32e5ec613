"""Relation gaps: entities whose observations mention another entity without a relation between the two."""

from collections import Counter

from msgspec import Struct

from polymnia.engine.curation.scan import Check, Progress, ignore_progress, never_stop, scan
from polymnia.engine.memory import Memory
from polymnia.search.mentions import MentionFinder


class Gap(Struct, frozen=True):
    """An entity whose observations mention another one `count` times, though no relation joins the two."""

    entity: str
    referenced: str
    count: int


def relation_gaps(
    memory: Memory,
    *,
    limit: int | None = None,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[Gap]:
    """Return the relation gaps, those with most mentions first, then by name.

    Names are found as `search.mentions` says. A mention is a hint, not a proof: the reader must judge it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    with memory.reading() as read:
        finder = MentionFinder([entity.name for entity in read.outlines()])
        for entity in scan(read, "looking for names", progress=progress, check=check):
            for text in entity.texts:
                counts.update(
                    [(entity.name, name) for name in finder.find(text) if name != entity.name]
                )
        for relation in read.relations() if counts else ():
            counts.pop((relation.source, relation.target), None)
            counts.pop((relation.target, relation.source), None)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Gap(entity, referenced, count) for (entity, referenced), count in ranked[:limit]]
