"""Curation: what in a memory needs attention, each finding with what can be done in one click."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from starlette.responses import Response

from polymnia.engine.curation.clusters import clusters
from polymnia.engine.curation.findings import orphans, pending, relation_gaps
from polymnia.engine.curation.similar import duplicate_names, similar_pairs
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.remember import remember
from polymnia.engine.facts.revise import Revision, revise, tag_entities
from polymnia.engine.graph.drawing import last_change
from polymnia.engine.graph.entities import open_named, outlines
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Relation
from polymnia.search.terms import count_noun
from polymnia.stores.contract import Store
from polymnia.web.page import ROWS, Page, get, post

# Findings that are listed. The rest is found again after the first ones are dealt with.
MAX_FINDINGS = 1_000
# What is shown of each entity: its latest observations.
_MAX_FACTS = 3
_MAX_CLUSTER_NAMES = 12
# How long a page waits for findings. They take seconds in a large memory.
_WAIT_S = 0.25


class Finding(Struct, frozen=True):
    """Something that needs attention: the names it is about, and what is known of it."""

    kind: str
    names: tuple[str, ...]
    about: str = ""

    @property
    def key(self) -> list[str]:
        """What identifies the finding after it was dismissed."""
        return [self.kind, *self.shown_names]

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names that a row shows; a cluster may have thousands."""
        return self.names[:_MAX_CLUSTER_NAMES]


def _duplicates(memory: Memory) -> list[Finding]:
    findings = []
    for pair in duplicate_names(memory, limit=MAX_FINDINGS):
        about = "the same letters" if pair.similarity == 1 else "spelled alike"
        findings.append(Finding("duplicates", (pair.a, pair.b), about))
    return findings


def _gaps(memory: Memory) -> list[Finding]:
    findings = []
    for gap in relation_gaps(memory, limit=MAX_FINDINGS):
        about = f"mentioned {gap.count} times" if gap.count > 1 else "mentioned"
        findings.append(Finding("gaps", (gap.entity, gap.referenced), about))
    return findings


def _similar(memory: Memory) -> list[Finding]:
    pairs = similar_pairs(memory, limit=MAX_FINDINGS)
    return [
        Finding("similar", (pair.a, pair.b), f"similarity {pair.similarity:.2f}") for pair in pairs
    ]


def _summaries(memory: Memory) -> list[Finding]:
    findings = []
    for entity in pending(memory, limit=MAX_FINDINGS):
        about = "its summary is older than its facts" if entity.summary_at else "no summary"
        findings.append(Finding("summaries", (entity.name,), about))
    return findings


def _orphans(memory: Memory) -> list[Finding]:
    lonely = orphans(memory, limit=MAX_FINDINGS)
    return [Finding("orphans", (entity.name,), "no relations") for entity in lonely]


def _clusters(memory: Memory) -> list[Finding]:
    groups = clusters(memory, limit=MAX_FINDINGS)
    return [Finding("clusters", group.names, group.label or "") for group in groups]


class Kind(Struct, frozen=True):
    """A kind of finding: its title, what it means, and the function that finds them."""

    title: str
    meaning: str
    find: Callable[[Memory], list[Finding]]


KINDS = {
    "duplicates": Kind(
        "Duplicates",
        "Names so alike that they may be one thing. Merging keeps all facts.",
        _duplicates,
    ),
    "gaps": Kind(
        "Relation gaps", "A fact of one mentions the other, but no relation joins them.", _gaps
    ),
    "similar": Kind(
        "Similar", "Their facts mean much the same, and no relation joins them.", _similar
    ),
    "summaries": Kind(
        "Summaries",
        "Entities with facts that are newer than their summary, or without one.",
        _summaries,
    ),
    "orphans": Kind("Orphans", "Entities that no relation starts or ends at.", _orphans),
    "clusters": Kind(
        "Clusters",
        "Groups that relations and meaning hold together. A tag makes one findable.",
        _clusters,
    ),
}


class _Run(Struct):
    """One look through a memory as it was after a change, and the findings before that."""

    change: int
    findings: Future[list[Finding]]
    former: list[Finding] | None


class FindingsCache:
    """Findings by memory and kind, computed once for each state of a memory. Thread-safe.

    They take seconds in a large memory, so a worker thread computes them and pages do not wait.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._lock = Lock()
        self._runs: WeakKeyDictionary[Store, dict[str, _Run]] = WeakKeyDictionary()

    def find(self, memory: Memory, kind: str) -> tuple[list[Finding] | None, bool]:
        """Return the latest findings, None if there are none yet, and whether they are current."""
        run = self._start(memory, kind)
        try:
            return run.findings.result(_WAIT_S), True
        except TimeoutError:
            return run.former, False

    def wait(self, memory: Memory, kind: str) -> list[Finding]:
        """Return the findings of a memory, however long they take."""
        findings, _ = self.find(memory, kind)
        # Waiting for another worker thread could use up all of them.
        return KINDS[kind].find(memory) if findings is None else findings

    def _start(self, memory: Memory, kind: str) -> _Run:
        with memory.reading() as read:
            change = last_change(memory, read)
        with self._lock:
            runs = self._runs.setdefault(memory.store, {})
            run = runs.get(kind)
            if run is not None and not run.findings.done():
                return run  # one at a time: a busy memory would fill the pool
            is_known = run is not None and run.findings.exception() is None
            if run is not None and is_known and change and run.change == change:
                return run
            former = run.findings.result() if run is not None and is_known else None
            task = self._pool.submit(KINDS[kind].find, memory)
            runs[kind] = _Run(change, task, former)
            return runs[kind]


@get("/curation")
def show(page: Page) -> Response:
    """Show the findings of one kind."""
    kind = page.query.get("kind") or "duplicates"
    if kind not in KINDS:
        raise BadInput(f"kind: expected one of {', '.join(KINDS)}, got {kind[:40]!r}")
    findings, is_current = page.site.findings.find(page.memory, kind)
    dismissed = page.site.state.read(page.workspace).dismissed
    wants_dismissed = "dismissed" in page.query
    matching = [item for item in findings or () if (item.key in dismissed) == wants_dismissed]
    start = page.query.number("after") or 0
    rows, shown = _load_rows(page.memory, matching[start : start + ROWS])
    return page.render(
        "curation/page.html",
        kinds=KINDS,
        kind=kind,
        rows=rows,
        total=len(matching),
        is_ready=findings is not None,
        is_current=is_current,
        is_cut=len(findings or ()) >= MAX_FINDINGS,
        following=start + ROWS if start + ROWS < len(matching) else None,
        dismissed=sum(item.key in dismissed for item in findings or ()),
        wants_dismissed=wants_dismissed,
        **shown,
    )


def _load_rows(memory: Memory, findings: Sequence[Finding]) -> tuple[list[Finding], dict[str, Any]]:
    """Return the findings about existing entities, with the types and latest facts of these."""
    names = {name for finding in findings for name in finding.shown_names}
    types = {name: entity.type for name, entity in outlines(memory, names).items()}
    # A finding of a moment ago may be about an entity that was merged since.
    rows = [finding for finding in findings if all(name in types for name in finding.shown_names)]
    compared = {name for row in rows if row.kind != "clusters" for name in row.names}
    facts = {}
    if compared:
        for entity in open_named(memory, compared).entities:
            facts[entity.name] = entity.texts[::-1][:_MAX_FACTS]
    return rows, {"types": types, "facts": facts}


@post("/curation/merge")
def merge_two(page: Page) -> Response:
    """Merge an entity into another."""
    source, target = page.form["source"], page.form["target"]
    receipt = merge(page.memory, [source], target, by=page.by)
    return _done(page, f"Merged {source[:60]} into {target[:60]}", receipt.change)


@post("/curation/relate")
def relate(page: Page) -> Response:
    """Add a relation between two entities."""
    source, target, kind = page.form["source"], page.form["target"], page.form.get("type").strip()
    if not kind:
        raise BadInput("the relation needs a type, such as uses or owns")
    receipt = remember(page.memory, [], [Relation(source, target, kind)], by=page.by)
    return _done(page, f"Related {source[:60]} to {target[:60]}", receipt.change)


@post("/curation/summarize")
def summarize(page: Page) -> Response:
    """Set the summary of an entity."""
    name, summary = page.form["name"], page.form.get("summary").strip()
    if not summary:
        raise BadInput("the summary is blank: write one or two sentences")
    receipt = revise(page.memory, name, Revision(summary=summary), by=page.by)
    return _done(page, f"Summary of {name[:60]} saved", receipt.change)


@post("/curation/delete")
def delete(page: Page) -> Response:
    """Delete an entity."""
    name = page.form["name"]
    receipt = forget(page.memory, Unwanted(entities=(name,)), by=page.by)
    return _done(page, f"Deleted {name[:60]}", receipt.change)


@post("/curation/tag")
def tag(page: Page) -> Response:
    """Give all entities of a cluster a tag."""
    label, first = page.form["tag"].strip(), page.form["name"]
    if not label:
        raise BadInput("the tag is blank: choose a word for the cluster")
    groups = page.site.findings.wait(page.memory, "clusters")
    names = next((group.names for group in groups if first in group.names), ())
    receipt = tag_entities(page.memory, list(names), add=[label], by=page.by)
    return _done(page, f"Tagged {count_noun(len(receipt.names), 'entity')}", receipt.change)


@post("/curation/dismiss")
def dismiss(page: Page) -> Response:
    """Put a finding aside."""
    key = page.form.getlist("key")
    with page.site.state.edit(page.workspace) as state:
        if key not in state.dismissed:
            state.dismissed.append(key)
    return _done(page, "Dismissed", key=key)


@post("/curation/restore")
def restore(page: Page) -> Response:
    """Bring a dismissed finding back."""
    key = page.form.getlist("key")
    with page.site.state.edit(page.workspace) as state:
        state.dismissed[:] = [item for item in state.dismissed if item != key]
    return _done(page, "Brought back")


def _done(page: Page, text: str, change: int = 0, key: Sequence[str] = ()) -> Response:
    """Show in place of a finding what was done. `key` lets the user bring a finding back."""
    to = page.url("/curation", kind=page.form.get("kind"))
    toast = page.toast(text, change)
    return page.done(toast, to, fragment="curation/done.html", text=text, key=key)
