"""Add: a new entity with facts, relations and tags, or a note."""

from starlette.responses import Response

from polymnia.engine import notes
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import tag_entities
from polymnia.engine.graph.entities import outlines
from polymnia.errors import BadInput
from polymnia.model import VAULT, Note, Relation
from polymnia.stores.contract import find_note
from polymnia.web.page import Page, get, post
from polymnia.web.pages.selection import split_tags

# Types that the field offers.
_MAX_TYPES = 40


@get("/new", needs="write")
def show(page: Page) -> Response:
    """Show the forms."""
    with page.memory.reading() as read:
        types = [count.type for count in read.type_counts("entities")[:_MAX_TYPES]]
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
    relations = _relations(page, name)
    receipt = remember(
        page.memory, [EntityFacts(name=name, type=kind, facts=facts)], relations, by=page.by
    )
    changes = [receipt.change]
    tags = split_tags(page.form.get("tags"))
    if tags:
        changes.append(tag_entities(page.memory, [name], add=tags, by=page.by).change)
    return page.done(page.toast(f"Added {name[:60]}", *changes), page.url("/entity", name=name))


def _relations(page: Page, name: str) -> list[Relation]:
    other, kind = page.form.get("target").strip(), page.form.get("relation").strip()
    if not other and not kind:
        return []
    if not other or not kind:
        raise BadInput("a relation needs a name and another entity")
    if other not in outlines(page.memory, [other]):
        raise BadInput(f"there is no entity {other}; choose one that exists")
    return [Relation(name, other, kind)]


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
