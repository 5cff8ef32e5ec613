"""What a scan of entities finds: relation gaps, orphans and pending summaries.

Every verb looks at the entities `among` the given names, or at all.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from time import time

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import Entity
from polymnia.search.mentions import MentionFinder
from polymnia.stores.contract import Reader

# Entities read at once.
PAGE_SIZE = 1_000

# Called with how much is done, the total if it is known, and a description of the work.
Progress = Callable[[float, float | None, str | None], None]
# Raises an error to stop the work.
Check = Callable[[], None]


def ignore_progress(done: float, total: float | None, message: str | None) -> None:
    """Drop a progress report."""


def never_stop() -> None:
    """Let the work continue."""


def part_of(progress: Progress, first: float, last: float) -> Progress:
    """Return a progress report for a part of the work, from `first` to `last` percent of it."""

    def report(done: float, total: float | None, message: str | None) -> None:
        progress(first + (last - first) * done / total if total else last, 100, message)

    return report


class Sample(Struct, frozen=True):
    """The entities that are looked at: those that changed last, and some others.

    `names` is None for all of a small memory. `total` is the number of all entities.
    """

    names: tuple[str, ...] | None
    total: int


def take_sample(memory: Memory, *, latest: int, others: int) -> Sample:
    """Return what to look at, so that the work does not grow with the memory."""
    with memory.reading() as read:
        total = read.counts().entities
        if total <= latest + others:
            return Sample(None, total)
        names = dict.fromkeys(entity.name for entity in read.outlines(latest=latest))
        # Others each day, so that in time everything is looked at.
        start = min(int(time() // 86_400) * others % total, total - others)
        names |= dict.fromkeys(entity.name for entity in read.entities(offset=start, limit=others))
    return Sample(tuple(names), total)


def scan(
    read: Reader,
    message: str,
    among: Collection[str] | None = None,
    *,
    progress: Progress,
    check: Check,
) -> Iterator[Entity]:
    """Yield the named entities, or all, with their facts, some at a time."""
    names = list(among) if among is not None else [entity.name for entity in read.outlines()]
    for start in range(0, len(names), PAGE_SIZE):
        check()
        yield from read.entities(names[start : start + PAGE_SIZE])
        progress(min(start + PAGE_SIZE, len(names)), len(names), message)


class Gap(Struct, frozen=True):
    """An entity whose facts mention another one `count` times without a relation to it."""

    entity: str
    referenced: str
    count: int


def relation_gaps(
    memory: Memory,
    *,
    among: Collection[str] | None = None,
    limit: int | None = None,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[Gap]:
    """Return the relation gaps, those with most mentions first, then by name.

    Names are found as `search.mentions` says. A mention is a hint, not a proof: the reader must
    judge it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    with memory.reading() as read:
        names = among if among is not None else [entity.name for entity in read.outlines()]
        finder = MentionFinder(names)
        for entity in scan(read, "looking for names", names, progress=progress, check=check):
            for text in entity.texts:
                counts.update(
                    [(entity.name, name) for name in finder.find(text) if name != entity.name]
                )
        for relation in read.relations(among) if counts else ():
            counts.pop((relation.source, relation.target), None)
            counts.pop((relation.target, relation.source), None)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Gap(entity, referenced, count) for (entity, referenced), count in ranked[:limit]]


def orphans(
    memory: Memory, *, among: Collection[str] | None = None, limit: int | None = None
) -> list[Entity]:
    """Return outlines of the entities without relations, the last updated first."""
    with memory.reading() as read:
        return orphans_in(read, among)[:limit]


def orphans_in(read: Reader, among: Collection[str] | None = None) -> list[Entity]:
    """Return the orphans of a snapshot."""
    joined = {name for relation in read.relations(among) for name in relation.ends}
    alone = [entity for entity in read.outlines(among) if entity.name not in joined]
    return sorted(alone, key=lambda entity: (-entity.updated_at, entity.name))


class PendingSummary(Struct, frozen=True):
    """An entity to summarize.

    `summary_at` is 0 if it has no summary, `last_fact_at` if no time is known.
    """

    name: str
    type: str
    facts: int
    last_fact_at: int
    summary_at: int
    updated_at: int


def pending(
    memory: Memory,
    *,
    among: Collection[str] | None = None,
    limit: int | None = None,
    with_empty: bool = False,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> list[PendingSummary]:
    """Return the entities to summarize, the latest fact first.

    An entity without facts has nothing to summarize, and comes only `with_empty`.
    """
    waiting = []
    with memory.reading() as read:
        for entity in scan(read, "looking at summaries", among, progress=progress, check=check):
            summary = pending_of(entity)
            if summary is not None and (summary.facts or with_empty):
                waiting.append(summary)
    return rank_pending(waiting)[:limit]


def pending_of(entity: Entity) -> PendingSummary | None:
    """Return the entity if it has no summary, or facts that are newer than it."""
    last = max((fact.created_at for fact in entity.facts), default=0)
    if entity.summary and last <= entity.summary_at:
        return None
    summary_at = entity.summary_at if entity.summary else 0
    return PendingSummary(
        entity.name, entity.type, len(entity.facts), last, summary_at, entity.updated_at
    )


def rank_pending(found: list[PendingSummary]) -> list[PendingSummary]:
    """Return them with the latest fact first, then by name."""
    return sorted(found, key=lambda item: (-item.last_fact_at, item.name))
