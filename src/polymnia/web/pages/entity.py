"""Entity: everything about one name, now and at earlier times, and how to correct it."""

from typing import Any

from msgspec import UNSET, Struct
from starlette.responses import Response

from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph.entities import open_named, outlines
from polymnia.engine.history import changes as history
from polymnia.engine.history.versions import compare, versions
from polymnia.engine.recall.names import similar_names
from polymnia.errors import BadInput
from polymnia.model import Change, Entity, Graph, Relation
from polymnia.search.times import parse_moment
from polymnia.web.changes import ChangeView, change_rows
from polymnia.web.changes import compare as compare_words
from polymnia.web.page import ROWS, Page, Toast, get, post
from polymnia.web.pages.curation import merge_sides
from polymnia.web.pages.facts import FactKey, fact_rows, load_row
from polymnia.web.pages.selection import split_tags
from polymnia.web.text import moment

_MAX_RELATION_TYPES = 30


class RelationGroup(Struct, frozen=True):
    """Relations of one type and direction: the names at their other ends, and how many more."""

    type: str
    is_outgoing: bool
    names: tuple[str, ...]
    more: int


class Stop(Struct, frozen=True):
    """A moment that the slider snaps to, and how much happened in the workspace before it."""

    at: int
    title: str
    url: str
    count: int
    change: Change | None = None


class Strip(Struct, frozen=True):
    """The stops of a slider, the last one being now, and the place of the one that is shown."""

    stops: list[Stop]
    place: int

    @property
    def is_past(self) -> bool:
        return self.place < len(self.stops) - 1

    @property
    def here(self) -> Stop:
        return self.stops[self.place]

    @property
    def ticks(self) -> list[int]:
        """The places of stops whose titles stand below the strip."""
        last = len(self.stops) - 1
        # A strip with more stops has a title in the middle too.
        return sorted({0, last // 2, last} if last > 7 else {0, last})

    @property
    def most(self) -> int:
        """The highest count, for the bars."""
        return max([1, *(stop.count for stop in self.stops)])


@get("/entity")
def show(page: Page) -> Response:
    """Show an entity, or what became of the name."""
    name = page.query["name"]
    text = page.query.get("at").strip()
    if text:
        # Digits that tell microseconds since 1970 from a year.
        is_exact = text.isascii() and text.isdigit() and 12 <= len(text) < 19
        return _show_then(page, name, int(text) if is_exact else parse_moment(text, "at"))
    graph = open_named(page.memory, [name])
    if not graph.entities:
        found = history.find_former(page.memory, name)
        similar = similar_names(page.memory, name)
        return page.render(
            "entity/missing.html", status=404, name=name, found=found, similar=similar
        )
    entity = graph.entities[0]
    below = page.query.number("below")
    rows = fact_rows(page.memory, entity)[::-1]
    if below:
        rows = [row for row in rows if row.key.ordinal < below]
    newer = 0
    if entity.summary:
        newer = sum(item.created_at > entity.summary_at for item in entity.facts)
    return page.render(
        "entity/page.html",
        entity=entity,
        rows=rows[:ROWS],
        older=rows[ROWS - 1].key.ordinal if len(rows) > ROWS else None,
        newer=newer,
        **_relation_values(page, name, graph.relations),
        changes=_changes(page, name),
        strip=_entity_strip(page, name, None),
    )


def _entity_strip(page: Page, name: str, at: int | None) -> Strip | None:
    """Return the strip of an entity; None if it never changed or the store has no history."""
    if not page.memory.store.capabilities.history:
        return None
    heads = versions(page.memory, name)
    if len(heads) < 2 and at is None:
        return None
    stops: list[Stop] = []
    last = heads[0].id if heads else 0
    for head in heads[:-1]:
        url = page.url("/entity", name=name, at=head.at)
        then = moment(head.at)
        title = f"{then.day} {then:%b %H:%M}"
        stops.append(Stop(head.at, title, url, head.id - last, head))
        last = head.id
    now = heads[-1] if heads else None
    stops.append(Stop(0, "Now", page.url("/entity", name=name), now.id - last if now else 0, now))
    place = len(stops) - 1
    if at is not None:
        earlier = [number for number, stop in enumerate(stops[:-1]) if stop.at <= at]
        place = earlier[-1] if earlier else 0
    return Strip(stops, place)


def _show_then(page: Page, name: str, at: int) -> Response:
    """Show an entity as it was, with the differences to now."""
    comparison = compare(page.memory, name, at)
    strip = _entity_strip(page, name, at)
    if comparison is None:
        heads = versions(page.memory, name)
        first = heads[0].at if heads else 0
        return page.render(
            "entity/not_yet.html", status=404, name=name, first=first, strip=strip, at=at
        )
    counts = (
        (comparison.count("changed"), "changed"),
        (comparison.count("gone"), "gone since"),
        (comparison.count("came"), "came later"),
    )
    # The two texts of changed facts, with the words that differ.
    parts = {}
    for fact in comparison.facts:
        if fact.how == "changed" and fact.then and fact.now:
            parts[fact.ordinal] = compare_words(fact.then.text, fact.now.text)
    return page.render(
        "entity/then.html",
        name=name,
        at=at,
        comparison=comparison,
        strip=strip,
        facts=comparison.facts[::-1],
        relations=comparison.relations,
        is_plain=page.query.get("show") == "plain",
        sums=[(count, text) for count, text in counts if count],
        words=parts,
    )


@get("/entity/similar")
def show_similar(page: Page) -> Response:
    """Show names with a similar spelling: a part of the page that is loaded later."""
    name = page.query["name"]
    similar = [other for other in similar_names(page.memory, name, 4) if other != name]
    graph = open_named(page.memory, similar) if similar else Graph([], [])
    entities = {entity.name: entity for entity in graph.entities}
    twins = [entities[other] for other in similar if other in entities]
    return page.render(
        "entity/similar_page.html", fragment="entity/similar.html", name=name, twins=twins
    )


@post("/entity/observe")
def observe(page: Page) -> Response:
    """Add a fact."""
    name, text = page.form["name"], page.form["text"]
    if not text.strip():
        raise BadInput("the fact is blank: write something to remember")
    _require_known(page, name)
    receipt = remember(page.memory, [EntityFacts(name=name, facts=(FactDraft(text),))], by=page.by)
    fact = receipt.entities[0].facts[0]
    if fact.outcome == "unchanged":
        return page.done("It is known already", _url(page, name))
    row = load_row(page.memory, FactKey("fact", name, fact.ordinal))
    toast = page.toast("Added a fact", receipt.change)
    return page.done(toast, _url(page, name), fragment="facts/fact.html", row=row)


@post("/entity/edit")
def edit(page: Page) -> Response:
    """Change name, type, tags and summary."""
    name, form = page.form["name"], page.form
    entity = _require_known(page, name)
    tags = split_tags(form.get("tags"))
    summary = form.get("summary").strip()
    revision = Revision(
        name=form["new_name"].strip(),
        type=form["type"].strip(),
        summary=UNSET if summary == (entity.summary or "").strip() else summary or None,
        add_tags=tuple(tags),
        remove_tags=tuple(tag for tag in entity.tags if tag not in tags),
    )
    receipt = revise(page.memory, name, revision, by=page.by)
    if not receipt.change and receipt.before == receipt.after:
        return page.done("Nothing changed", _url(page, name))
    return page.done(
        page.toast(f"Changed {receipt.after.name}", receipt.change), _url(page, receipt.after.name)
    )


@post("/entity/relate")
def relate(page: Page) -> Response:
    """Add a relation to another entity, which is created if it is given a type."""
    name, other = page.form["name"].strip(), page.form["target"].strip()
    kind = page.form["relation"].strip()
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
    return _relations_done(
        page, page.toast(f"Related {ends[0]} to {ends[1]}", receipt.change), name
    )


@post("/entity/unrelate")
def unrelate(page: Page) -> Response:
    """Delete a relation."""
    relation = Relation(page.form["source"], page.form["target"], page.form["relation"])
    receipt = forget(page.memory, Unwanted(relations=(relation,)), by=page.by)
    toast = page.toast("Deleted a relation", receipt.change)
    return _relations_done(page, toast, page.form["name"])


def _relations_done(page: Page, toast: Toast, name: str) -> Response:
    """Show the relations as they are now, in place."""
    graph = open_named(page.memory, [name])
    (entity,) = graph.entities
    values = _relation_values(page, name, graph.relations)
    return page.done(
        toast, _url(page, name), fragment="entity/relations.html", entity=entity, **values
    )


def _relation_values(page: Page, name: str, relations: list[Relation]) -> dict[str, Any]:
    """Return what the template of relations shows."""
    ends: dict[tuple[bool, str], list[str]] = {}
    for relation in relations:
        if relation.source == name:
            ends.setdefault((False, relation.type), []).append(relation.target)
        if relation.target == name:
            ends.setdefault((True, relation.type), []).append(relation.source)
    # By direction and type, ROWS names in all.
    groups: list[RelationGroup] = []
    room = ROWS
    for (is_incoming, kind), names in sorted(ends.items())[:_MAX_RELATION_TYPES]:
        shown = tuple(names[: max(1, min(room, 12))])
        room -= len(shown)
        groups.append(RelationGroup(kind, not is_incoming, shown, len(names) - len(shown)))
    others = outlines(page.memory, {other for group in groups for other in group.names})
    return {
        "groups": groups,
        "relation_count": len(relations),
        "relation_types": sorted({item.type for item in relations})[:_MAX_RELATION_TYPES],
        "types": {other: outline.type for other, outline in others.items()},
    }


@get("/entity/merge", needs="write")
def preview_merge(page: Page) -> Response:
    """Show what a merge would do, both ways round."""
    name, other = page.query["name"], page.query.get("target").strip()
    if not other:
        return page.render(
            "entity/merge_page.html", fragment="entity/merge.html", name=name, other="", sides=[]
        )
    if other == name:
        raise BadInput("choose another entity: this one cannot be merged with itself")
    for known in (name, other):
        _require_known(page, known)
    graph = open_named(page.memory, [name, other])
    sides = merge_sides(page, graph)
    return page.render(
        "entity/merge_page.html", fragment="entity/merge.html", name=name, other=other, sides=sides
    )


@post("/entity/merge")
def run_merge(page: Page) -> Response:
    """Merge two entities under one of their names."""
    names = page.form["name"], page.form["target"]
    keep = page.form["keep"]
    if keep not in names:
        raise BadInput("choose which of the two names to keep")
    gone = names[1] if keep == names[0] else names[0]
    receipt = merge(page.memory, [gone], keep, by=page.by)
    return page.done(page.toast(f"Merged {gone} into {keep}", receipt.change), _url(page, keep))


@get("/note")
def show_note(page: Page) -> Response:
    """Show a note of the vault."""
    key = FactKey("note", page.query["key"])
    row = load_row(page.memory, key)
    return page.render("entity/note.html", row=row, changes=_changes(page, key.name))


def _changes(page: Page, name: str) -> list[ChangeView]:
    """Return the latest changes of an entity or note; nothing in a store without history."""
    if not page.memory.store.capabilities.history:
        return []
    latest = history.latest(page.memory, names=[name], limit=5, max_rows=history.MAX_WHOLE_ROWS)
    return change_rows(page.memory, latest, about={name}, limit=2)


def _require_known(page: Page, name: str) -> Entity:
    entities = outlines(page.memory, [name])
    if name not in entities:
        raise BadInput(
            f"there is no entity {name}; give it a type to create it, or choose one that exists"
        )
    return entities[name]


def _url(page: Page, name: str) -> str:
    return page.url("/entity", name=name)
