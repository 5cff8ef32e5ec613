"""Findings: what in a memory needs attention, computed in the background for each state of it.

Those that users dismissed are kept beside the memory: in a file, or in the store's database.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic
from weakref import WeakKeyDictionary

from msgspec import Raw, Struct, field, json
from msgspec.structs import replace

from polymnia.disk.files import decode_file, make_parent, map_os_errors, write_file
from polymnia.disk.lock import file_lock
from polymnia.engine.curation.contradictions import contradictions
from polymnia.engine.curation.findings import orphans, pending, relation_gaps, take_sample
from polymnia.engine.curation.similar import duplicate_names, similar_pairs
from polymnia.engine.history.changes import last_change
from polymnia.engine.memory import Memory
from polymnia.errors import PolymniaError
from polymnia.stores.clock import now_us
from polymnia.stores.contract import Store, WebStateStore

logger = logging.getLogger(__name__)

# Findings of a kind that are kept. The rest is found again after the first ones are dealt with.
MAX_FINDINGS = 1_000
# The entities that are scanned: those that changed last, and others each day.
MAX_LATEST, MAX_OTHERS = 4_000, 1_000
MAX_DISMISSED = 5_000
# The version of the file with dismissed findings.
_VERSION = 1


# The names that are scanned; None for all.
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


def find(kind: str, memory: Memory, among: Among) -> list[CurationFinding]:
    """Return the findings of a kind. Raise PolymniaError if the store cannot tell."""
    findings: list[CurationFinding] = []

    def add(about: str, *names: str, ordinals: tuple[int, ...] = ()) -> None:
        findings.append(CurationFinding(kind, names, about, ordinals))

    if kind == "contradictions":
        for clash in contradictions(memory, among=among, limit=MAX_FINDINGS):
            texts = f"{clash.older.text[:40]} / {clash.newer.text[:40]}"
            add(texts, clash.entity, ordinals=(clash.older.ordinal, clash.newer.ordinal))
    elif kind == "duplicates":
        for pair in duplicate_names(memory, among=among, limit=MAX_FINDINGS):
            add("the same letters" if pair.similarity == 1 else "spelled alike", pair.a, pair.b)
    elif kind == "gaps":
        for gap in relation_gaps(memory, among=among, limit=MAX_FINDINGS):
            times = f"{gap.count} times" if gap.count > 1 else "once"
            add(f"mentioned {times}", gap.entity, gap.referenced)
    elif kind == "summaries":
        for summary in pending(memory, among=among):
            # A summary that is merely missing needs no attention.
            if summary.summary_at and len(findings) < MAX_FINDINGS:
                add("older than its facts", summary.name)
    elif kind == "similar":
        # Comparing all vectors of a large memory takes too long for a page.
        for alike in similar_pairs(memory, limit=MAX_FINDINGS) if among is None else ():
            add(f"similarity {alike.similarity:.2f}", alike.a, alike.b)
    elif kind == "orphans":
        for entity in orphans(memory, among=among, limit=MAX_FINDINGS):
            add("no relation", entity.name)
    return findings


class Kind(Struct, frozen=True):
    """A kind of finding: its title, one of it, its icon, and the question it asks.

    Kinds that `waits` is False for are ideas: they do not count in the badge.
    """

    title: str
    one: str
    icon: str
    meaning: str
    waits: bool = True


KINDS = {
    "contradictions": Kind(
        "Contradictions",
        "Contradiction",
        "versus",
        "Two facts can hardly both be true. Choose the one that agents get from now on.",
    ),
    "duplicates": Kind(
        "Duplicates",
        "Duplicate",
        "merge",
        "Names so alike that they may be one thing. Merging keeps all facts.",
    ),
    "gaps": Kind(
        "Missing relations",
        "Missing relation",
        "link",
        "A fact of one mentions the other, but no relation joins them.",
    ),
    "summaries": Kind(
        "Old summaries",
        "Old summary",
        "edit",
        "New facts came after the summary was written.",
    ),
    "similar": Kind(
        "Similar entities",
        "Similar entities",
        "merge",
        "Their facts mean much the same, and no relation joins them.",
        waits=False,
    ),
    "orphans": Kind(
        "Without relations",
        "Without relations",
        "graph",
        "No relation starts or ends here, so agents that follow relations never get to it.",
        waits=False,
    ),
}


class Scan(Struct):
    """What was found in a memory as it was after a change."""

    change: int
    findings: dict[str, list[CurationFinding]] = field(default_factory=dict)
    at: int = 0
    seconds: float = 0.0
    finished: float = 0.0
    # The number of all entities if only some were scanned, else 0.
    sampled_from: int = 0
    # The ids of findings that were dealt with since.
    decided: frozenset[str] = frozenset()

    def of_kind(self, kind: str) -> list[CurationFinding]:
        """Return the findings of a kind that nobody has dealt with."""
        findings = self.findings.get(kind, [])
        return [finding for finding in findings if finding.id not in self.decided]

    def count(self, dismissed: Collection[tuple[str, ...]]) -> int:
        """Return how many findings wait for a decision."""
        total = 0
        for name, kind in KINDS.items():
            if kind.waits:
                findings = self.of_kind(name)
                total += sum(tuple(finding.key) not in dismissed for finding in findings)
        return total


class FindingsCache:
    """The latest scan of each memory. Thread-safe.

    A scan takes seconds in a large memory, so a worker thread does it and pages do not wait.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._lock = Lock()
        # By open store, not by name: another workspace may get the name of a deleted one.
        self._scans: WeakKeyDictionary[Store, Scan] = WeakKeyDictionary()
        self._tasks: WeakKeyDictionary[Store, Future[None]] = WeakKeyDictionary()
        self._decided: WeakKeyDictionary[Store, frozenset[str]] = WeakKeyDictionary()

    def latest(self, memory: Memory, *, is_badge: bool = False) -> tuple[Scan | None, int, bool]:
        """Return the latest scan, how many changes came after it, and whether another one runs.

        Start one if the memory has changed, but for the badge of other pages only seldom. Wait a
        moment for the first scan and for one that is quick.
        """
        store = memory.store
        with memory.reading() as read:
            change = last_change(memory, read)
        with self._lock:
            scan, task = self._scans.get(store), self._tasks.get(store)
            is_due = scan is None or not change or scan.change != change
            if scan is not None and is_badge:
                # Other pages than Curation wait 20 times as long as the last scan took.
                is_due = is_due and monotonic() - scan.finished > 20.0 * scan.seconds
            if is_due and (task is None or task.done()):
                task = self._tasks[store] = self._pool.submit(self._run, memory, change)
        # A page waits for findings that were quick to compute before.
        if task is not None and not is_badge and (scan is None or scan.seconds < 0.1):
            with suppress(TimeoutError):
                task.result(0.25)
        with self._lock:
            scan = self._scans.get(store)
            if scan is not None:
                scan = replace(scan, decided=self._decided.get(store, frozenset()))
        behind = change - scan.change if scan is not None else 0
        return scan, max(0, behind), task is not None and not task.done()

    def decide(self, memory: Memory, ids: Iterable[str]) -> None:
        """Leave findings out that were dealt with, until the next scan."""
        with self._lock:
            self._decided[memory.store] = self._decided.get(memory.store, frozenset()).union(ids)

    def _run(self, memory: Memory, change: int) -> None:
        began = monotonic()
        with self._lock:
            decided_before = self._decided.get(memory.store, frozenset())
        sample = take_sample(memory, latest=MAX_LATEST, others=MAX_OTHERS)
        scan = Scan(change, sampled_from=0 if sample.names is None else sample.total)
        for name in KINDS:
            try:
                scan.findings[name] = find(name, memory, sample.names)
            except PolymniaError as exc:
                # Without vectors or in a store of files, some kinds cannot be found.
                logger.info("no findings of the kind %s: %s", name, exc)
        scan.finished = monotonic()
        scan.seconds = scan.finished - began
        scan.at = now_us()
        with self._lock:
            self._scans[memory.store] = scan
            decided = self._decided.get(memory.store, frozenset())
            self._decided[memory.store] = decided - decided_before


class WorkspaceState(Struct):
    """The state of one workspace. A dismissed finding is identified by its kind and names."""

    dismissed: list[list[str]] = field(default_factory=list)
    # Saved questions of an earlier version, kept as they are.
    questions: list[Raw] = field(default_factory=list)


class _StateFile(Struct, kw_only=True):
    version: int
    workspaces: dict[str, WorkspaceState]


class SiteState:
    """The state of all workspaces, in a file or, without a path, in memory. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = Lock()
        self._in_memory: dict[str, WorkspaceState] = {}

    def read(self, workspace: str) -> WorkspaceState:
        """Return the state of a workspace. Raise StoreError, StoreDamaged."""
        with self._lock:
            return self._load().get(workspace, WorkspaceState())

    @contextmanager
    def edit(self, workspace: str) -> Iterator[WorkspaceState]:
        """Yield the state of a workspace to change it, and write it when the block succeeds."""
        with self._lock:
            if self.path is None:
                yield self._in_memory.setdefault(workspace, WorkspaceState())
                return
            make_parent(self.path)
            with file_lock(self.path):
                states = self._load()
                state = states.setdefault(workspace, WorkspaceState())
                yield state
                _drop_oldest(state)
                write_file(self.path, _StateFile(version=_VERSION, workspaces=states))

    def _load(self) -> dict[str, WorkspaceState]:
        if self.path is None:
            return self._in_memory
        with map_os_errors(str(self.path)):
            if not self.path.exists():
                return {}
            data = self.path.read_bytes()
        contents = decode_file(
            self.path,
            data,
            _StateFile,
            newest=_VERSION,
            damage="does not hold dismissed findings",
            advice="repair it, or delete it to start with none",
        )
        return contents.workspaces


class SharedState:
    """The state of all workspaces in a database, for all of its servers. Thread-safe."""

    def __init__(self, store: WebStateStore) -> None:
        self._store = store

    def read(self, workspace: str) -> WorkspaceState:
        """Return the state of a workspace. Raise StoreError."""
        return _decode(self._store.read(workspace))

    @contextmanager
    def edit(self, workspace: str) -> Iterator[WorkspaceState]:
        """Yield the state of a workspace to change it, and store it when the block succeeds."""
        with self._store.edit(workspace) as document:
            state = _decode(document.text)
            yield state
            _drop_oldest(state)
            document.text = json.encode(state).decode()


def _decode(text: str) -> WorkspaceState:
    return json.decode(text, type=WorkspaceState) if text else WorkspaceState()


def _drop_oldest(state: WorkspaceState) -> None:
    del state.dismissed[:-MAX_DISMISSED]
