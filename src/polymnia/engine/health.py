"""The state of a store: what is wrong with it and what to do, and how much a memory holds."""

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.errors import StoreDamaged, StoreError
from polymnia.model import ChangeQuery, Counts
from polymnia.stores import check_catalogue, hide_passwords, store_kind
from polymnia.stores.clock import is_ahead, now_us
from polymnia.stores.contract import Store
from polymnia.stores.open import file_bytes

_ADVICE_DIRECTORY = (
    "What to do: restore a missing or empty file from a backup. For a damaged one, stop every "
    "server and run `polymnia doctor --salvage --store FILE`. For a lost registry, run "
    "`polymnia doctor --rebuild`."
)


class Finding(Struct, frozen=True, kw_only=True):
    """The state of one workspace; the nameless one is the store itself."""

    workspace: str = ""
    counts: Counts | None = None
    notes: int = 0
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # worth knowing, but not damage


class Findings(Struct, frozen=True, kw_only=True):
    """The state of a store, and what to do."""

    store: str
    sound: bool
    error: str = ""
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    advice: str = ""


def check_all(url: str) -> Findings:
    """Check every workspace of a catalogue, and whether files and registry agree."""
    findings = []
    for report in check_catalogue(url):
        finding = Finding(
            workspace=report.name,
            counts=report.counts,
            notes=report.notes,
            problems=tuple(report.problems),
            remarks=_clock_remarks(report.latest_time),
        )
        findings.append(finding)
    sound = not any(finding.problems for finding in findings)
    return Findings(
        store=hide_passwords(url),
        sound=sound,
        findings=tuple(findings),
        advice="" if sound else _ADVICE_DIRECTORY,
    )


def check_one(store: Store, url: str) -> Findings:
    """Check an open store, whose URL the findings name. Raise StoreError if it cannot be read."""
    problems = store.check()
    with store.reading() as read:
        counts = read.counts()
        notes = counts.notes if store.capabilities.notes else 0
        latest_time = read.history.latest_time() if store.capabilities.history else 0
    finding = Finding(
        counts=counts,
        notes=notes,
        problems=tuple(problems),
        remarks=_clock_remarks(latest_time),
    )
    return Findings(
        store=hide_passwords(url),
        sound=not problems,
        findings=(finding,),
        advice=_advice(url, is_readable=True) if problems else "",
    )


def cannot_read(url: str, exc: StoreError) -> Findings:
    """Return what to say about a store that cannot be read."""
    advice = ""
    if isinstance(exc, StoreDamaged):
        advice = _advice(url, is_readable=False)
    return Findings(store=hide_passwords(url), sound=False, error=str(exc), advice=advice)


def _clock_remarks(latest_time: int) -> tuple[str, ...]:
    if not is_ahead(latest_time):
        return ()
    ahead = timedelta(seconds=(latest_time - now_us()) // 1_000_000)
    moment = datetime.fromtimestamp(latest_time // 1_000_000, UTC)
    return (
        f"a change has the time {moment:%Y-%m-%d %H:%M}, {ahead} ahead of the clock: "
        "the clock is wrong, or was when the change was made; check `date`. "
        "Order, undo and purge go by the number of a change and are right.",
    )


def _advice(store: str, *, is_readable: bool) -> str:
    """Return what to do about a store with problems, which can be read in spite of them or not."""
    kind, path = store_kind(store)
    if is_readable and kind == "binlog":
        return (
            "What to do: nothing. An interrupted write was never acknowledged; the next "
            f"write moves its remains to {path}.torn."
        )
    if is_readable and kind == "jsonl":
        return (
            "What to do: correct these lines in an editor, or ignore them. "
            f"Everything else is loaded, and the next write moves them to {path}.rejected."
        )
    if kind in ("binlog", "sqlite"):
        return (
            "What to do: stop every server that uses it, then run "
            f"`polymnia doctor --salvage --store {store}`. "
            "It writes what can be read to a new file and does not change this one."
        )
    return "What to do: copy the file, then restore a backup, or export the data from another copy."


class Statistics(Struct, frozen=True):
    """How many rows a memory has, how many distinct texts, and their size in bytes."""

    counts: Counts
    texts: int
    text_bytes: int


def statistics(memory: Memory) -> Statistics:
    """Return how much the memory holds."""
    with memory.reading() as read:
        counts = read.counts()
        texts: set[str] = set()
        for entity in read.entities():
            texts.update((entity.name, entity.type, *entity.texts))
        for relation in read.relations():
            texts.update(relation.key)
    return Statistics(counts, len(texts), sum(len(text.encode()) for text in texts))


class Coverage(Struct, frozen=True):
    """How many passages have a vector of a model, of how many.

    `is_current` marks the model of the embedder in use.
    """

    model: str
    embedded: int
    total: int
    is_current: bool

    @property
    def waiting(self) -> int:
        """How many passages have no vector yet."""
        return self.total - self.embedded


class Overview(Struct, frozen=True, kw_only=True):
    """How much a memory holds.

    `bytes` are those of its file, in PostgreSQL of its facts, None in memory. `change` is 0 without
    a history.
    """

    counts: Counts
    notes: int
    bytes: int | None
    changed_at: int
    changed_by: str
    change: int
    coverage: tuple[Coverage, ...]


def overview(memory: Memory) -> Overview:
    """Return how much the memory holds, and its last change."""
    with memory.reading() as read:
        change, at, actor = 0, 0, ""
        if memory.store.capabilities.history:
            for head in read.history.change_heads(ChangeQuery(limit=1)):
                change, at, actor = head.id, head.at, head.actor
        else:
            at = max([entity.updated_at for entity in read.outlines(latest=1)], default=0)
        size = file_bytes(memory.store.url)
        if memory.store.capabilities.keeps_deleted:  # a database server has no file of its own
            size = read.stored_bytes()
        coverage: list[Coverage] = []
        url = memory.meaning.url if memory.meaning is not None else ""
        for model in read.vectors.models() if memory.store.capabilities.vectors else ():
            embedded, total = read.vectors.coverage(model.number)
            coverage.append(Coverage(model.identity, embedded, total, model.url == url))
        return Overview(
            counts=read.counts(),
            notes=read.counts().notes if memory.store.capabilities.notes else 0,
            bytes=size,
            changed_at=at,
            changed_by=actor,
            change=change,
            coverage=tuple(coverage),
        )
