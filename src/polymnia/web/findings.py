"""Findings: what in a memory needs attention, computed in the background for each state of it."""

import logging
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor, Future
from hashlib import sha256
from threading import Lock
from time import monotonic, time_ns
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from polymnia.engine.curation.contradictions import contradictions
from polymnia.engine.curation.findings import orphans, pending, relation_gaps, take_sample
from polymnia.engine.curation.similar import duplicate_names, similar_pairs
from polymnia.engine.history.changes import last_change
from polymnia.engine.memory import Memory
from polymnia.errors import PolymniaError
from polymnia.stores.contract import Store

logger = logging.getLogger(__name__)

# Findings of a kind that are kept. The rest is found again after the first ones are dealt with.
MAX_FINDINGS = 1_000
# The entities that are looked at: those that changed last, and others each day.
MAX_LATEST, MAX_OTHERS = 4_000, 1_000
# How long a page waits for findings that were quick to compute before.
_WAIT_S, _QUICK_S = 0.25, 0.1


# The names that are looked at; None for all.
Among = tuple[str, ...] | None


class CurationFinding(Struct, frozen=True):
    """Something that needs attention: the names it is about, and its details.

    `ordinals` are the two facts of a contradiction.
    """

    kind: str
    names: tuple[str, ...]
    about: str = ""
    ordinals: tuple[int, ...] = ()

    @property
    def key(self) -> list[str]:
        """What identifies the finding after it was dismissed."""
        return [self.kind, *self.names, *map(str, self.ordinals)]

    @property
    def id(self) -> str:
        """A short form of the key, for addresses."""
        return key_id(self.key)


def key_id(key: Iterable[str]) -> str:
    """Return the id of the finding with that key."""
    joined = "\0".join(key).encode("utf-8", "surrogatepass")
    return sha256(joined).hexdigest()[:16]


def _contradictions(memory: Memory, among: Among) -> list[CurationFinding]:
    findings = []
    for pair in contradictions(memory, among=among, limit=MAX_FINDINGS):
        ordinals = (pair.older.ordinal, pair.newer.ordinal)
        about = f"{pair.older.text[:40]} / {pair.newer.text[:40]}"
        findings.append(CurationFinding("contradictions", (pair.entity,), about, ordinals))
    return findings


def _duplicates(memory: Memory, among: Among) -> list[CurationFinding]:
    findings = []
    for pair in duplicate_names(memory, among=among, limit=MAX_FINDINGS):
        about = "the same letters" if pair.similarity == 1 else "spelled alike"
        findings.append(CurationFinding("duplicates", (pair.a, pair.b), about))
    return findings


def _gaps(memory: Memory, among: Among) -> list[CurationFinding]:
    findings = []
    for gap in relation_gaps(memory, among=among, limit=MAX_FINDINGS):
        about = f"mentioned {gap.count} times" if gap.count > 1 else "mentioned once"
        findings.append(CurationFinding("gaps", (gap.entity, gap.referenced), about))
    return findings


def _similar(memory: Memory, among: Among) -> list[CurationFinding]:
    if among is not None:  # comparing all vectors of a large memory takes too long for a page
        return []
    findings = []
    for pair in similar_pairs(memory, limit=MAX_FINDINGS):
        about = f"similarity {pair.similarity:.2f}"
        findings.append(CurationFinding("similar", (pair.a, pair.b), about))
    return findings


def _summaries(memory: Memory, among: Among) -> list[CurationFinding]:
    findings = []
    for entity in pending(memory, among=among):
        if entity.summary_at:  # a summary that is merely missing needs no attention
            findings.append(CurationFinding("summaries", (entity.name,), "older than its facts"))
    return findings[:MAX_FINDINGS]


def _orphans(memory: Memory, among: Among) -> list[CurationFinding]:
    findings = []
    for entity in orphans(memory, among=among, limit=MAX_FINDINGS):
        findings.append(CurationFinding("orphans", (entity.name,), "no relation"))
    return findings


class Kind(Struct, frozen=True):
    """A kind of finding: its title, one of it, its icon, the question it asks, and how to find it.

    Kinds that `waits` is False for are ideas: they do not count in the badge.
    """

    title: str
    one: str
    icon: str
    meaning: str
    find: Callable[[Memory, Among], list[CurationFinding]]
    waits: bool = True


KINDS = {
    "contradictions": Kind(
        "Contradictions",
        "Contradiction",
        "versus",
        "Two facts can hardly both be true. Choose the one that agents get from now on.",
        _contradictions,
    ),
    "duplicates": Kind(
        "Duplicates",
        "Duplicate",
        "merge",
        "Names so alike that they may be one thing. Merging keeps all facts.",
        _duplicates,
    ),
    "gaps": Kind(
        "Missing relations",
        "Missing relation",
        "link",
        "A fact of one mentions the other, but no relation joins them.",
        _gaps,
    ),
    "summaries": Kind(
        "Old summaries",
        "Old summary",
        "edit",
        "New facts came after the summary was written.",
        _summaries,
    ),
    "similar": Kind(
        "Similar entities",
        "Similar entities",
        "merge",
        "Their facts mean much the same, and no relation joins them.",
        _similar,
        waits=False,
    ),
    "orphans": Kind(
        "Without relations",
        "Without relations",
        "graph",
        "No relation starts or ends here, so agents that follow relations never get to it.",
        _orphans,
        waits=False,
    ),
}


class Look(Struct, eq=False):
    """One scan of a memory as it was after a change.

    `findings` has the kinds that are computed already, and `former` those of the look before.
    `decided` are ids of findings that were dealt with since.
    """

    change: int
    former: dict[str, list[CurationFinding]]
    findings: dict[str, list[CurationFinding]] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    at: int = 0
    seconds: float = 0.0
    finished: float = 0.0
    # The number of all entities if only some were looked at, else 0.
    sampled_from: int = 0
    task: "Future[None] | None" = None

    @property
    def is_done(self) -> bool:
        return self.task is not None and self.task.done()

    def of_kind(self, kind: str) -> list[CurationFinding] | None:
        """Return the findings of a kind; None if there was no scan yet."""
        findings = self.findings.get(kind, self.former.get(kind))
        if findings is None or not self.decided:
            return findings
        return [finding for finding in findings if finding.id not in self.decided]

    def count(self, dismissed: Collection[tuple[str, ...]]) -> int:
        """Return how many findings wait for a decision."""
        total = 0
        for name, kind in KINDS.items():
            if kind.waits:
                findings = self.of_kind(name) or ()
                total += sum(tuple(finding.key) not in dismissed for finding in findings)
        return total


class FindingsCache:
    """The latest scan of each memory, one at a time. Thread-safe.

    A look takes seconds in a large memory, so a worker thread does it and pages do not wait.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._lock = Lock()
        # By open store, not by name: another workspace may get the name of a deleted one.
        self._looks: WeakKeyDictionary[Store, Look] = WeakKeyDictionary()

    def look(self, memory: Memory) -> tuple[Look, int]:
        """Return the latest look, and how many changes came after it. Start a new one if any did.

        Wait a moment for a first look, and for one that is quick.
        """
        with memory.reading() as read:
            change = last_change(memory, read)
        with self._lock:
            look = self._looks.get(memory.store)
            if look is None or (look.is_done and (not change or look.change != change)):
                look = self._start(memory, change, look)
        if look.task is not None and (not look.former or look.seconds < _QUICK_S):
            try:
                look.task.result(_WAIT_S)
            except TimeoutError:
                pass
        return look, max(0, change - look.change)

    def glance(self, memory: Memory) -> Look | None:
        """Return the latest look for the badge of any page, and seldom start a new one."""
        with self._lock:
            look = self._looks.get(memory.store)
        if look is not None and not look.is_done:
            return look
        with memory.reading() as read:
            change = last_change(memory, read)
        is_due = True
        if look is not None:
            # Other pages than Curation wait 20 times as long as the last scan took.
            rests = monotonic() - look.finished < 20.0 * look.seconds
            is_due = look.change != change and not rests
        if not is_due:
            return look
        with self._lock:
            if self._looks.get(memory.store) is look:
                return self._start(memory, change, look)
            return self._looks.get(memory.store)

    def decide(self, memory: Memory, ids: Iterable[str]) -> None:
        """Leave findings out that were dealt with, until the next look."""
        with self._lock:
            look = self._looks.get(memory.store)
            if look is not None:
                look.decided.update(ids)

    def _start(self, memory: Memory, change: int, last: Look | None) -> Look:
        former = {}
        for kind in KINDS:
            findings = last.of_kind(kind) if last is not None else None
            if findings is not None:
                former[kind] = findings
        seconds = last.seconds if last is not None else 0.0
        look = Look(change, former, seconds=seconds)
        look.task = self._pool.submit(_run, memory, look)
        self._looks[memory.store] = look
        return look


def _run(memory: Memory, look: Look) -> None:
    began = monotonic()
    sample = take_sample(memory, latest=MAX_LATEST, others=MAX_OTHERS)
    if sample.names is not None:
        look.sampled_from = sample.total
    for name, kind in KINDS.items():
        try:
            look.findings[name] = kind.find(memory, sample.names)
        except PolymniaError as exc:
            # Without vectors or in a store of files, some kinds cannot be found.
            logger.info("no findings of the kind %s: %s", name, exc)
            look.findings[name] = []
    look.seconds = monotonic() - began
    look.finished = monotonic()
    look.at = time_ns() // 1000
