"""Curation: an inbox of findings. One is in focus, the others wait beside it."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import MergeReceipt, merge
from polymnia.engine.facts.remember import remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph.entities import open_named, outlines
from polymnia.errors import BadInput
from polymnia.model import Entity, Graph, Relation
from polymnia.web.findings import KINDS, CurationFinding, Scan, key_id
from polymnia.web.page import ROWS, Page, get, post
from polymnia.web.pages.facts import fact_rows


class Queue(Struct, frozen=True):
    """The findings of a kind, and those that the page lists."""

    kind: str
    findings: list[CurationFinding]
    shown: list[CurationFinding]


class Move(Struct, frozen=True):
    """Something that a merge moves, or that the remaining entity knows already."""

    is_known: bool
    text: str
    relation: Relation | None = None


class MergeSide(Struct, frozen=True):
    """One of two entities: how much it has, and what moves if the other one is kept."""

    entity: Entity
    relations: int
    moves: list[Move]
    preview: MergeReceipt | None = None

    @property
    def weight(self) -> int:
        """How much it has: the richer entity is kept."""
        return len(self.entity.facts) + self.relations + len(self.entity.tags)


@get("/curation")
def show(page: Page) -> Response:
    """Show the queue, and one finding in focus."""
    scan, behind, is_running = page.site.findings.latest(page.memory)
    wants_dismissed = "dismissed" in page.query
    waiting = _waiting(page, scan, wants_dismissed=wants_dismissed)
    focus = _focus(page, waiting)
    ordered = [finding for findings in waiting.values() for finding in findings]
    place = ordered.index(focus) if focus else 0
    queues = []
    for kind, findings in waiting.items():
        start, count = 0, 5
        if focus is not None and focus.kind == kind:
            count = 25
            start = max(0, findings.index(focus) - count // 2)
        queues.append(Queue(kind, findings, findings[start : start + count]))
    return page.render(
        "curation/page.html",
        kinds=KINDS,
        queues=queues,
        focus=focus,
        # Beside the kind: the number of all findings would not fit the badge, which has no ideas.
        place=waiting[focus.kind].index(focus) if focus else 0,
        total=len(waiting[focus.kind]) if focus else 0,
        before=ordered[place - 1] if focus and place else None,
        following=ordered[place + 1] if focus and place + 1 < len(ordered) else None,
        scan=scan,
        is_running=is_running,
        behind=behind,
        wants_dismissed=wants_dismissed,
        **(_details(page, focus) if focus else {}),
    )


def _waiting(
    page: Page, scan: Scan | None, *, wants_dismissed: bool
) -> dict[str, list[CurationFinding]]:
    """Return the findings to decide by kind; with `wants_dismissed` those that were dismissed."""
    dismissed = {tuple(key) for key in page.site.state.read(page.workspace).dismissed}
    waiting = {}
    for kind in KINDS:
        findings = scan.of_kind(kind) if scan else []
        chosen = [item for item in findings if (tuple(item.key) in dismissed) == wants_dismissed]
        if chosen:
            waiting[kind] = chosen
    return waiting


def _focus(page: Page, waiting: dict[str, list[CurationFinding]]) -> CurationFinding | None:
    """Return the finding in the address, or the first one that is still about living entities."""
    kind, item = page.query.get("kind"), page.query.get("item")
    if kind and kind not in KINDS:
        raise BadInput(f"kind: expected one of {', '.join(KINDS)}, got {kind[:40]!r}")
    candidates = [finding for findings in waiting.values() for finding in findings]
    preferred = [finding for finding in candidates if finding.id == item]
    preferred += waiting.get(kind, [])[:ROWS]
    for finding in [*preferred, *candidates[:ROWS]]:
        # A finding of a moment ago may be about an entity that was merged since, or a fact that is
        # gone.
        known = outlines(page.memory, finding.names)
        if not all(name in known for name in finding.names):
            continue
        if finding.ordinals:
            (entity,) = open_named(page.memory, finding.names).entities
            if not {fact.ordinal for fact in entity.facts}.issuperset(finding.ordinals):
                continue
        return finding
    return None


def _details(page: Page, finding: CurationFinding) -> dict[str, Any]:
    """Return what the page shows of a finding."""
    memory = page.memory
    types = {name: card.type for name, card in outlines(memory, finding.names).items()}
    details: dict[str, Any] = {"types": types}
    graph = open_named(memory, finding.names)
    entities = {entity.name: entity for entity in graph.entities}
    if finding.kind == "contradictions":
        rows = {row.key.ordinal: row for row in fact_rows(memory, entities[finding.names[0]])}
        details["sides"] = [rows[ordinal] for ordinal in finding.ordinals]
    elif finding.kind in ("duplicates", "similar"):
        details["sides"] = merge_sides(page, graph)
    else:
        details["facts"] = {
            entity.name: fact_rows(memory, entity)[::-1][:5] for entity in entities.values()
        }
    details["entities"] = entities
    return details


def merge_sides(page: Page, graph: Graph) -> list[MergeSide]:
    """Return the two entities of a merge, the richer one first."""
    entities = graph.entities
    sides = []
    for entity in entities:
        other = entities[0] if entity is entities[1] else entities[1]
        touching = [item for item in graph.relations if entity.name in (item.source, item.target)]
        preview = None
        if page.may("write"):
            preview = merge(page.memory, [other.name], entity.name, by=page.by, dry_run=True)
        # What would move from one entity to the other.
        known = set(entity.texts)
        moves = [Move(text in known, text) for text in other.texts]
        for relation in graph.relations:
            ends = (relation.source, relation.target)
            if other.name in ends and entity.name not in ends:
                moves.append(Move(False, "", relation))
        # Things that the preview of a merge lists.
        sides.append(MergeSide(entity, len(touching), moves[:40], preview))
    sides.sort(key=lambda side: -side.weight)
    return sides


@post("/curation/merge")
def merge_two(page: Page) -> Response:
    """Merge two entities under the name that is kept."""
    names = page.form.getlist("name")
    keep = page.form["keep"]
    if keep not in names or len(set(names)) != 2:
        raise BadInput("choose which of the two names to keep")
    gone = next(name for name in names if name != keep)
    receipt = merge(page.memory, [gone], keep, by=page.by)
    return _done(page, f"Merged {gone[:60]} into {keep[:60]}", receipt.change)


@post("/curation/resolve")
def resolve(page: Page) -> Response:
    """Keep one of two facts that contradict each other."""
    name, other = page.form["name"], page.form["other"]
    ordinals = page.form.numbers("n")
    keep = page.form.number("keep")
    if keep not in ordinals or len(ordinals) != 2:
        raise BadInput("choose which of the two facts is true")
    gone = ordinals[0] if keep == ordinals[1] else ordinals[1]
    if other == "never":
        unwanted = Unwanted(facts=((name, gone),))
        change = forget(page.memory, unwanted, by=page.by).change
    elif other == "until":
        edit = Edit(gone, keep)
        change = revise(page.memory, name, Revision(supersede=(edit,)), by=page.by).change
    else:
        raise BadInput("say what becomes of the other fact: until or never")
    return _done(page, f"Kept one fact of {name[:60]}", change)


@post("/curation/relate")
def relate(page: Page) -> Response:
    """Add a relation between two entities."""
    source, target = page.form["source"], page.form["target"].strip()
    kind = page.form.get("type").strip()
    if not kind:
        raise BadInput("the relation needs a type, such as uses or owns")
    if target not in outlines(page.memory, [target]):
        raise BadInput(f"there is no entity {target}; choose one that exists")
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


@post("/curation/dismiss")
def dismiss(page: Page) -> Response:
    """Put a finding aside."""
    key = page.form.getlist("key")
    if not key or key[0] not in KINDS:
        raise BadInput("name the finding to dismiss by its kind and names")
    with page.site.state.edit(page.workspace) as state:
        if key not in state.dismissed:
            state.dismissed.append(key)
    return _done(page, "Dismissed; the list of dismissed findings keeps it")


@post("/curation/restore")
def restore(page: Page) -> Response:
    """Bring a dismissed finding back."""
    key = page.form.getlist("key")
    with page.site.state.edit(page.workspace) as state:
        state.dismissed[:] = [item for item in state.dismissed if item != key]
    return page.done("Brought back", page.url("/curation", item=key_id(key)))


def _done(page: Page, text: str, change: int = 0) -> Response:
    """Go on to the next finding."""
    if change:
        page.site.findings.decide(page.memory, [page.form.get("item")])
    to = page.url("/curation", kind=page.form.get("kind"), item=page.form.get("next"))
    return page.done(page.toast(text, change), to)
