"""The consolidation report: what needs attention, and what happened since the last one."""

from msgspec import Struct

from polymnia.engine.curation.clusters import (
    Cluster,
    Edges,
    clusters_in,
    name_edges,
    nearest_pairs,
)
from polymnia.engine.curation.findings import (
    Check,
    PendingSummary,
    Progress,
    ignore_progress,
    never_stop,
    orphans_in,
    part_of,
    pending_of,
    rank_pending,
    scan,
)
from polymnia.engine.curation.similar import SimilarPair, best_pairs, load_points, name_pairs
from polymnia.engine.history.changes import count_events
from polymnia.engine.memory import Memory
from polymnia.errors import MissingPackage
from polymnia.model import Entity, EventCounts, Mark
from polymnia.stores.clock import now_us
from polymnia.stores.contract import TEXT, Reader

# The mark of the last report.
LAST_REPORT = "consolidation report"


class EventSummary(Struct, frozen=True):
    """What happened since the last report, or since the first entity; 0 means unknown."""

    since: int
    creates: int
    updates: int
    deletes: int


class ConsolidationReport(Struct, frozen=True):
    """What needs attention. `notes` says what could not be found out, one sentence each."""

    stale_summaries: list[PendingSummary]
    relation_candidates: list[SimilarPair]
    orphans: list[Entity]
    clusters: list[Cluster]
    events: EventSummary
    notes: tuple[str, ...] = ()


def consolidation_report(
    memory: Memory,
    *,
    candidates: int = 20,
    min_score: float = 0.75,
    perspective: str = TEXT,
    mark: bool = True,
    progress: Progress = ignore_progress,
    check: Check = never_stop,
) -> ConsolidationReport:
    """Return what needs attention and, with `mark`, let the next report count events from here."""
    now = now_us()
    with memory.reading() as read:
        work = _Report(memory, read, progress, check)
        stale, first = work.stale()
        events, last_change = work.events(first)
        orphaned = orphans_in(read)
        pairs, found = work.compare(candidates, min_score, perspective)
    if mark and memory.store.capabilities.history:
        with memory.store.writing() as writer:
            writer.history.set_mark(LAST_REPORT, Mark(last_change, now))
    return ConsolidationReport(
        stale,
        pairs,
        orphaned,
        found,
        events,
        tuple(work.notes),
    )


class _Report:
    """A report in progress: what it reads, and what it lacks."""

    def __init__(
        self,
        memory: Memory,
        read: Reader,
        progress: Progress,
        check: Check,
    ) -> None:
        self.notes: list[str] = []
        self._memory = memory
        self._read = read
        self._progress = progress
        self._check = check

    def stale(self) -> tuple[list[PendingSummary], int]:
        """Return the entities to summarize, and when the first entity was created."""
        found: list[PendingSummary] = []
        first = 0
        progress = part_of(self._progress, 0, 30)
        for entity in scan(
            self._read, "looking at summaries", progress=progress, check=self._check
        ):
            first = min(first or entity.created_at, entity.created_at)
            if (pending := pending_of(entity)) is not None and pending.facts:
                found.append(pending)
        return rank_pending(found), first

    def events(self, first: int) -> tuple[EventSummary, int]:
        """Return what happened since the last report, and the last change."""
        if not self._memory.store.capabilities.history:
            counts = self._read.counts()
            return EventSummary(first, counts.entities + counts.relations, 0, 0), 0
        last = self._read.history.mark(LAST_REPORT)
        counted: EventCounts = count_events(self._read.history, last.change if last else 0)
        since = last.at if last else first
        return EventSummary(
            since, counted.creates, counted.updates, counted.deletes
        ), counted.last_change

    def compare(
        self, limit: int, min_score: float, perspective: str
    ) -> tuple[list[SimilarPair], list[Cluster]]:
        """Return similar pairs and clusters, as far as store and installed packages allow."""
        pairs: list[SimilarPair] = []
        edges: Edges = {}
        try:
            if self._memory.store.capabilities.vectors:
                pairs, edges = self._compare_entities(limit, min_score, perspective)
        except MissingPackage as exc:
            self.notes.append(str(exc))
        progress = part_of(self._progress, 60, 100)
        return pairs, clusters_in(self._read, edges, progress=progress, check=self._check)

    def _compare_entities(
        self, limit: int, min_score: float, perspective: str
    ) -> tuple[list[SimilarPair], Edges]:
        """Return similar pairs, and the pairs that join clusters, from one comparison."""
        points = load_points(self._memory, self._read, perspective)
        from polymnia.engine.curation.comparison import (
            compare,
        )  # imports numpy, which is installed, as checked above

        best = best_pairs(self._read, points, limit=limit, min_score=min_score)
        nearest = nearest_pairs(points)
        for block in compare(
            points.rows, progress=part_of(self._progress, 30, 60), check=self._check
        ):
            best.add(block)
            nearest.add(block)
        return name_pairs(self._read, points, best), name_edges(points, nearest)
