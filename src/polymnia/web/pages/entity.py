"""Entity: everything that is known of one name, where to correct it, and what became of a name that is gone."""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct

from polymnia.engine import history
from polymnia.engine.browse import outlines
from polymnia.engine.entities import open_named
from polymnia.engine.forget import Unwanted, forget
from polymnia.engine.remember import EntityFacts, FactDraft, remember
from polymnia.engine.revise import Revision, merge, revise
from polymnia.engine.suggest import similar_names
from polymnia.engine.whereabouts import find_former
from polymnia.errors import BadInput
from polymnia.model import Entity, Relation
from polymnia.web.changes import ChangeRow
from polymnia.web.facts import FactKey, load_row, observation_rows
from polymnia.web.page import ROWS, Page
from polymnia.web.pages.search import MAX_ROWS_READ, change_rows
from polymnia.web.response import Response
from polymnia.web.routes import Route

# The latest changes on the page; the history has the rest.
_MAX_CHANGES = 5
_MAX_RELATION_TYPES = 30


class RelationGroup(Struct, frozen=True):
    """Relations of one type and direction: the names at their other ends, and how many more there are."""

    type: str
    is_outgoing: bool
    names: tuple[str, ...]
    more: int


def show(page: Page) -> Response:
    """Show an entity, or what became of the name."""
    name = page.query["name"]
    graph = open_named(page.memory, [name])
    if not graph.entities:
        return _show_missing(page, name)
    entity = graph.entities[0]
    below = page.query.number("below")
    rows = [
        row
        for row in reversed(observation_rows(page.memory, entity))
        if not below or row.key.ordinal < below
    ]
    groups = _group_relations(name, graph.relations)
    types = outlines(page.memory, {each for group in groups for each in group.names})
    return page.render(
        "entity/page.html",
        entity=entity,
        rows=rows[:ROWS],
        older=rows[ROWS - 1].key.ordinal if len(rows) > ROWS else None,
        newer=sum(each.created_at > entity.summary_at for each in entity.observations)
        if entity.summary
        else 0,
        groups=groups,
        relation_count=len(graph.relations),
        relation_types=_known_types(graph.relations),
        types={each: found.type for each, found in types.items()},
        changes=_changes(page, name),
    )


def show_similar(page: Page) -> Response:
    """Show names with a similar spelling: a part of the page that is loaded later."""
    name = page.query["name"]
    found = [each for each in similar_names(page.memory, name, 4) if each != name]
    entities = (
        {each.name: each for each in open_named(page.memory, found).entities} if found else {}
    )
    twins = [entities[each] for each in found if each in entities]
    return page.render(
        "entity/similar_page.html", fragment="entity/similar.html", name=name, twins=twins
    )


def observe(page: Page) -> Response:
    """Add an observation."""
    name, text = page.form["name"], page.form["text"]
    if not text.strip():
        raise BadInput("the observation is blank: write something to remember")
    _require_known(page, name)
    receipt = remember(page.memory, [EntityFacts(name=name, facts=(FactDraft(text),))], by=page.by)
    fact = receipt.entities[0].facts[0]
    if fact.outcome == "unchanged":
        return page.done("It is known already", _url(page, name))
    row = load_row(page.memory, FactKey("observation", name, fact.ordinal))
    toast = page.toast("Added an observation", receipt.change)
    return page.done(toast, _url(page, name), fragment="facts/observation.html", row=row)


def edit(page: Page) -> Response:
    """Change name, type, tags and summary."""
    name, form = page.form["name"], page.form
    entity = _require_known(page, name)
    tags = tuple(
        dict.fromkeys(each.strip() for each in form.get("tags").split(",") if each.strip())
    )
    summary = form.get("summary").strip()
    revision = Revision(
        name=form["new_name"].strip(),
        type=form["type"].strip(),
        summary=UNSET if summary == (entity.summary or "").strip() else summary or None,
        add_tags=tags,
        remove_tags=tuple(each for each in entity.tags if each not in tags),
    )
    receipt = revise(page.memory, name, revision, by=page.by)
    if not receipt.change and receipt.before == receipt.after:
        return page.done("Nothing changed", _url(page, name))
    return page.done(
        page.toast(f"Changed {receipt.after.name}", receipt.change), _url(page, receipt.after.name)
    )


def relate(page: Page) -> Response:
    """Add a relation to another entity, which is created if it is given a type."""
    name, other, kind = (page.form[each].strip() for each in ("name", "target", "relation"))
    if not other or not kind:
        raise BadInput("a relation needs a name and another entity")
    _require_known(page, name)
    new_type = page.form.get("type").strip()
    if not new_type:
        _require_known(page, other)
    ends = (other, name) if page.form.get("direction") == "in" else (name, other)
    created = [EntityFacts(name=other, type=new_type)] if new_type else []
    receipt = remember(page.memory, created, [Relation(*ends, kind)], by=page.by)
    if receipt.relations[0].outcome == "unchanged":
        return page.done("They are related so already", _url(page, name))
    return page.done(
        page.toast(f"Related {ends[0]} to {ends[1]}", receipt.change), _url(page, name)
    )


def unrelate(page: Page) -> Response:
    """Delete a relation."""
    relation = Relation(page.form["source"], page.form["target"], page.form["relation"])
    receipt = forget(page.memory, Unwanted(relations=(relation,)), by=page.by)
    return page.done(
        page.toast("Deleted a relation", receipt.change), _url(page, page.form["name"])
    )


def preview_merge(page: Page) -> Response:
    """Show what a merge would do, both ways round."""
    name, other = page.query["name"], page.query.get("target").strip()
    if not other:
        return page.render(
            "entity/merge_page.html", fragment="entity/merge.html", name=name, other="", ways=[]
        )
    if other == name:
        raise BadInput("choose another entity: this one cannot be merged with itself")
    for each in (name, other):
        _require_known(page, each)
    ways = [
        (keep, gone, merge(page.memory, [gone], keep, by=page.by, dry_run=True))
        for keep, gone in ((name, other), (other, name))
    ]
    return page.render(
        "entity/merge_page.html", fragment="entity/merge.html", name=name, other=other, ways=ways
    )


def run_merge(page: Page) -> Response:
    """Merge two entities under one of their names."""
    names = page.form["name"], page.form["target"]
    keep = page.form["keep"]
    if keep not in names:
        raise BadInput("choose which of the two names to keep")
    gone = names[1] if keep == names[0] else names[0]
    receipt = merge(page.memory, [gone], keep, by=page.by)
    return page.done(page.toast(f"Merged {gone} into {keep}", receipt.change), _url(page, keep))


def show_note(page: Page) -> Response:
    """Show a note of the vault."""
    key = FactKey("note", page.query["key"])
    row = load_row(page.memory, key)
    return page.render("entity/note.html", row=row, changes=_changes(page, key.name))


def _show_missing(page: Page, name: str) -> Response:
    found = find_former(page.memory, name)
    similar = similar_names(page.memory, name)
    return page.render("entity/missing.html", status=404, name=name, found=found, similar=similar)


def _group_relations(name: str, found: Iterable[Relation]) -> list[RelationGroup]:
    """Return the relations of an entity by type and direction, ROWS names in all."""
    ends: dict[tuple[str, bool], list[str]] = {}
    for each in found:
        if each.source == name:
            ends.setdefault((each.type, True), []).append(each.target)
        if each.target == name:
            ends.setdefault((each.type, False), []).append(each.source)
    left, groups = ROWS, []
    for (kind, is_outgoing), names in sorted(
        ends.items(), key=lambda each: (not each[0][1], each[0][0])
    ):
        shown = names[: max(1, min(left, 12))]
        left -= len(shown)
        groups.append(RelationGroup(kind, is_outgoing, tuple(shown), len(names) - len(shown)))
    return groups[:_MAX_RELATION_TYPES]


def _known_types(found: Iterable[Relation]) -> list[str]:
    return sorted({each.type for each in found})[:_MAX_RELATION_TYPES]


def _changes(page: Page, name: str) -> list[ChangeRow]:
    """Return the latest changes of an entity or note; nothing in a store without history."""
    if not page.memory.store.capabilities.history:
        return []
    found = history.latest(page.memory, names=[name], limit=_MAX_CHANGES, max_rows=MAX_ROWS_READ)
    options: dict[str, Any] = {"about": {name}, "limit": 2}
    return change_rows(page.memory, found.changes, **options)


def _require_known(page: Page, name: str) -> Entity:
    found = outlines(page.memory, [name])
    if name not in found:
        raise BadInput(
            f"there is no entity {name}; give it a type to create it, or choose one that exists"
        )
    return found[name]


def _url(page: Page, name: str) -> str:
    return page.url("/entity", name=name)


ROUTES = (
    Route("GET", "/entity", show),
    Route("GET", "/entity/similar", show_similar),
    Route("POST", "/entity/observe", observe),
    Route("POST", "/entity/edit", edit),
    Route("POST", "/entity/relate", relate),
    Route("POST", "/entity/unrelate", unrelate),
    Route("GET", "/entity/merge", preview_merge, needs="write"),
    Route("POST", "/entity/merge", run_merge),
    Route("GET", "/note", show_note),
)
