"""All entities as a table that sorts, all facts by when they were said, and new ones."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from polymnia.engine import notes
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import tag_entities
from polymnia.engine.graph.entities import outlines
from polymnia.errors import BadInput
from polymnia.model import VAULT, Entity, Note, Passage, Relation
from polymnia.stores.contract import find_note
from polymnia.web.page import ROWS, Page, get, post
from polymnia.web.pages.facts import FactKey
from polymnia.web.pages.selection import split_tags

# A larger memory is only sorted by the last update and by when facts were said: the store answers
# that without reading all.
MAX_SORTED = 5_000
# Facts that can be paged through; a search finds the rest.
_MAX_SAID = 2_000
_COLUMNS: dict[str, Callable[[Entity], Any]] = {
    "name": lambda entity: entity.name.casefold(),
    "type": lambda entity: (entity.type.casefold(), entity.name.casefold()),
    "created": lambda entity: entity.created_at,
    "updated": lambda entity: entity.updated_at,
}


@get("/entities")
def show(page: Page) -> Response:
    """Show a page of the table."""
    sort = page.query.get("sort") or "updated"
    if sort == "said":
        # Show facts with their entities, the one that was said last first.
        start = min(page.query.number("from") or 0, _MAX_SAID)
        end = start + ROWS
        with page.memory.reading() as read:
            # 1 << 62 is above every time that a fact may have.
            facts: list[Passage] = read.facts_between(0, 1 << 62, end + 1)
        return page.render(
            "entities/said.html",
            rows=[(fact, fact.valid_at or fact.created_at) for fact in facts[start:end]],
            start=start,
            next=end if len(facts) > end and end < _MAX_SAID else None,
        )
    if sort not in _COLUMNS:
        raise BadInput(f"sort: expected one of {', '.join(_COLUMNS)}, said, got {sort[:40]!r}")
    is_down = "down" in page.query
    start = page.query.number("from") or 0
    end = start + ROWS
    with page.memory.reading() as read:
        total = read.counts().entities
        can_sort = total <= MAX_SORTED
        if can_sort:
            entities = read.outlines(kind=page.query.get("type") or None)
            # The last update comes first unless the other direction is asked for.
            is_reversed = is_down != (sort == "updated")
            entities.sort(key=_COLUMNS[sort], reverse=is_reversed)
        else:
            entities = read.outlines(latest=end + 1)
        rows = entities[start:end]
        names = [entity.name for entity in rows]
        counts = read.fact_counts(names) if names else {}
    return page.render(
        "entities/page.html",
        rows=rows,
        picks={entity.name: FactKey("entity", entity.name).value for entity in rows},
        counts=counts,
        total=len(entities) if can_sort else total,
        sort=sort,
        is_down=is_down,
        can_sort=can_sort,
        start=start,
        next=end if len(entities) > end else None,
    )


@get("/new", needs="write")
def show_new(page: Page) -> Response:
    """Show the forms."""
    with page.memory.reading() as read:
        types = [count.type for count in read.type_counts("entities")[:40]]
    has_notes = page.memory.store.capabilities.notes
    return page.render("new/page.html", types=types, has_notes=has_notes)


@post("/new/entity")
def add_entity(page: Page) -> Response:
    """Create an entity with its facts, one a line, a relation and tags."""
    name, kind = page.form["name"].strip(), page.form["type"].strip()
    if not name or not kind:
        raise BadInput("an entity needs a name and a type")
    if name in outlines(page.memory, [name]):
        raise BadInput(f"there is an entity {name} already; open it to add facts")
    lines = [line.strip() for line in page.form.get("facts").split("\n")]
    facts = tuple(FactDraft(line) for line in lines if line)
    relations = []
    other, relation = page.form.get("target").strip(), page.form.get("relation").strip()
    if other or relation:
        if not other or not relation:
            raise BadInput("a relation needs a name and another entity")
        if other not in outlines(page.memory, [other]):
            raise BadInput(f"there is no entity {other}; choose one that exists")
        relations.append(Relation(name, other, relation))
    receipt = remember(
        page.memory, [EntityFacts(name=name, type=kind, facts=facts)], relations, by=page.by
    )
    changes = [receipt.change]
    tags = split_tags(page.form.get("tags"))
    if tags:
        changes.append(tag_entities(page.memory, [name], add=tags, by=page.by).change)
    return page.done(page.toast(f"Added {name[:60]}", *changes), page.url("/entity", name=name))


@post("/new/note")
def add_note(page: Page) -> Response:
    """Create a note of the vault."""
    key, content = page.form["key"].strip(), page.form["content"].strip()
    if not key or not content:
        raise BadInput("a note needs a key and a text")
    with page.memory.reading() as read:
        if find_note(read.notes, VAULT, key):
            raise BadInput(f"there is a note {key} already; open it to change it")
    tags = tuple(split_tags(page.form.get("tags")))
    notes.commit(page.memory, Note(key, content, tags), by=page.by)
    return page.done(f"Saved the note {key[:60]}", page.url("/note", key=key))
