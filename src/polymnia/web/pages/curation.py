"""Curation: what in a memory needs attention, each finding with what can be done about it in one click."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from polymnia.engine import selection
from polymnia.engine.browse import outlines
from polymnia.engine.curation.clusters import clusters
from polymnia.engine.curation.duplicates import duplicate_names
from polymnia.engine.curation.gaps import relation_gaps
from polymnia.engine.curation.orphans import orphans
from polymnia.engine.curation.pending import pending
from polymnia.engine.curation.similar import similar_pairs
from polymnia.engine.entities import open_named
from polymnia.engine.forget import Unwanted, forget
from polymnia.engine.memory import Memory
from polymnia.engine.remember import remember
from polymnia.engine.revise import Revision, merge, revise
from polymnia.errors import BadInput
from polymnia.model import Entity, Relation
from polymnia.search.text import count_noun
from polymnia.web.page import ROWS, Page
from polymnia.web.response import Response
from polymnia.web.routes import Route

# Findings that are listed. The rest is found again after the first ones are dealt with.
MAX_FINDINGS = 1_000
# What is shown of each entity: its latest observations.
_MAX_FACTS = 3
_MAX_CLUSTER_NAMES = 12


class Finding(Struct, frozen=True):
    """Something that needs attention: the names it is about, and what is known of it in a few words."""

    kind: str
    names: tuple[str, ...]
    about: str = ""
    size: int = 0

    @property
    def key(self) -> list[str]:
        """What identifies the finding after it was dismissed."""
        return [self.kind, *self.names]


def _duplicates(memory: Memory) -> list[Finding]:
    return [
        Finding(
            "duplicates",
            (each.a, each.b),
            "the same letters" if each.similarity == 1 else "spelled alike",
        )
        for each in duplicate_names(memory, limit=MAX_FINDINGS)
    ]


def _gaps(memory: Memory) -> list[Finding]:
    return [
        Finding(
            "gaps",
            (each.entity, each.referenced),
            f"mentioned {each.count} times" if each.count > 1 else "mentioned",
        )
        for each in relation_gaps(memory, limit=MAX_FINDINGS)
    ]


def _similar(memory: Memory) -> list[Finding]:
    found = similar_pairs(memory, limit=MAX_FINDINGS)
    return [
        Finding("similar", (each.a, each.b), f"similarity {each.similarity:.2f}") for each in found
    ]


def _summaries(memory: Memory) -> list[Finding]:
    return [
        Finding(
            "summaries",
            (each.name,),
            "its summary is older than its facts" if each.summary_at else "no summary",
        )
        for each in pending(memory, limit=MAX_FINDINGS)
    ]


def _orphans(memory: Memory) -> list[Finding]:
    return [
        Finding("orphans", (each.name,), "no relations")
        for each in orphans(memory, limit=MAX_FINDINGS)
    ]


def _clusters(memory: Memory) -> list[Finding]:
    return [
        Finding("clusters", each.names[:_MAX_CLUSTER_NAMES], each.label or "", len(each.names))
        for each in clusters(memory, limit=MAX_FINDINGS)
    ]


# The title of each kind, what it means, and what finds it.
KINDS: dict[str, tuple[str, str, Callable[[Memory], list[Finding]]]] = {
    "duplicates": (
        "Duplicates",
        "Names so alike that they may be one thing. Merging keeps all facts.",
        _duplicates,
    ),
    "gaps": (
        "Relation gaps",
        "A fact of one mentions the other, but no relation joins them.",
        _gaps,
    ),
    "similar": ("Similar", "Their facts mean much the same, and no relation joins them.", _similar),
    "summaries": (
        "Summaries",
        "Entities with facts that are newer than their summary, or without one.",
        _summaries,
    ),
    "orphans": ("Orphans", "Entities that no relation starts or ends at.", _orphans),
    "clusters": (
        "Clusters",
        "Groups that relations and meaning hold together. A tag makes one findable.",
        _clusters,
    ),
}


def show(page: Page) -> Response:
    """Show the findings of one kind."""
    kind = page.query.get("kind") or "duplicates"
    if kind not in KINDS:
        raise BadInput(f"kind: expected one of {', '.join(KINDS)}, got {kind[:40]!r}")
    title, meaning, find = KINDS[kind]
    dismissed = page.site.state.read(page.workspace).dismissed
    wants_dismissed = "dismissed" in page.query
    found = find(page.memory)
    shown = [each for each in found if (each.key in dismissed) == wants_dismissed]
    start = page.query.number("after") or 0
    rows = shown[start : start + ROWS]
    return page.render(
        "curation/page.html",
        kinds=[(key, each[0]) for key, each in KINDS.items()],
        kind=kind,
        title=title,
        meaning=meaning,
        rows=rows,
        total=len(shown),
        is_cut=len(found) >= MAX_FINDINGS,
        following=start + ROWS if start + ROWS < len(shown) else None,
        dismissed=sum(each.key in dismissed for each in found),
        wants_dismissed=wants_dismissed,
        **_entities(page.memory, rows),
    )


def merge_two(page: Page) -> Response:
    """Merge an entity into another."""
    source, target = page.form["source"], page.form["target"]
    receipt = merge(page.memory, [source], target, by=page.by)
    return _done(page, f"Merged {source[:60]} into {target[:60]}", receipt.change)


def relate(page: Page) -> Response:
    """Add a relation between two entities."""
    source, target, kind = page.form["source"], page.form["target"], page.form.get("type").strip()
    if not kind:
        raise BadInput("the relation needs a type, such as uses or owns")
    receipt = remember(page.memory, [], [Relation(source, target, kind)], by=page.by)
    return _done(page, f"Related {source[:60]} to {target[:60]}", receipt.change)


def summarize(page: Page) -> Response:
    """Set the summary of an entity."""
    name, summary = page.form["name"], page.form.get("summary").strip()
    if not summary:
        raise BadInput("the summary is blank: write one or two sentences")
    receipt = revise(page.memory, name, Revision(summary=summary), by=page.by)
    return _done(page, f"Summary of {name[:60]} saved", receipt.change)


def delete(page: Page) -> Response:
    """Delete an entity."""
    name = page.form["name"]
    receipt = forget(page.memory, Unwanted(entities=(name,)), by=page.by)
    return _done(page, f"Deleted {name[:60]}", receipt.change)


def tag(page: Page) -> Response:
    """Give all entities of a cluster a tag."""
    label, first = page.form["tag"].strip(), page.form["name"]
    if not label:
        raise BadInput("the tag is blank: choose a word for the cluster")
    names = next((each.names for each in clusters(page.memory) if first in each.names), ())
    receipt = selection.tag(page.memory, list(names), add=[label], by=page.by)
    return _done(page, f"Tagged {count_noun(len(receipt.names), 'entity')}", receipt.change)


def dismiss(page: Page) -> Response:
    """Put a finding aside."""
    key = page.form.all("key")
    with page.site.state.edit(page.workspace) as state:
        if key not in state.dismissed:
            state.dismissed.append(key)
    return _finish(page, "Dismissed", key)


def restore(page: Page) -> Response:
    """Bring a dismissed finding back."""
    key = page.form.all("key")
    with page.site.state.edit(page.workspace) as state:
        state.dismissed[:] = [each for each in state.dismissed if each != key]
    return _finish(page, "Brought back", ())


def _done(page: Page, text: str, change: int) -> Response:
    """Answer an action with a toast, and show in place of the finding what was done."""
    to = page.url("/curation", kind=page.form.get("kind"))
    return page.done(page.toast(text, change), to, fragment="curation/done.html", text=text, key=())


def _finish(page: Page, text: str, key: list[str] | tuple[str, ...]) -> Response:
    to = page.url("/curation", kind=page.form.get("kind"))
    return page.done(text, to, fragment="curation/done.html", text=text, key=key)


def _entities(memory: Memory, rows: list[Finding]) -> dict[str, Any]:
    """Return the entities of the findings: types of all, and the latest facts where they help to decide."""
    names = {name for each in rows for name in each.names}
    types = {name: each.type for name, each in outlines(memory, names).items()} if names else {}
    whole = {name for each in rows if each.kind != "clusters" for name in each.names}
    found: list[Entity] = open_named(memory, whole).entities if whole else []
    return {"types": types, "facts": {each.name: each.texts[::-1][:_MAX_FACTS] for each in found}}


ROUTES = (
    Route("GET", "/curation", show),
    Route("POST", "/curation/merge", merge_two),
    Route("POST", "/curation/relate", relate),
    Route("POST", "/curation/summarize", summarize),
    Route("POST", "/curation/delete", delete),
    Route("POST", "/curation/tag", tag),
    Route("POST", "/curation/dismiss", dismiss),
    Route("POST", "/curation/restore", restore),
)
