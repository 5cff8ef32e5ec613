"""Facts as rows of a list: facts, cards and notes. One is edited or deleted in place."""

from hashlib import sha256
from typing import Literal

from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from polymnia.engine import notes
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph.entities import open_named
from polymnia.engine.history.changes import authors
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound, TextChanged
from polymnia.model import NOTE, Entity, Hit, PassageKind
from polymnia.search.hits import Fit
from polymnia.web.changes import MAX_COMPARED_CHARS, compare
from polymnia.web.page import Fields, Page, get, post

_SEPARATOR = "\t"
_KINDS: tuple[PassageKind, ...] = ("entity", "fact", "note")
# The template of a row in each view: the hits of a search, and the facts of an entity.
_VIEWS = {"hit": "facts/hit.html", "obs": "facts/fact.html"}


class FactKey(Struct, frozen=True):
    """What identifies a card by its name, a fact by name and ordinal, a note by its key."""

    kind: PassageKind
    name: str
    ordinal: int = 0

    @property
    def value(self) -> str:
        """The key as the value of a checkbox."""
        return _SEPARATOR.join((self.kind, str(self.ordinal), self.name))

    @property
    def fields(self) -> dict[str, object]:
        """The key as fields of an address."""
        return {"kind": self.kind, "name": self.name, "n": self.ordinal or None}


class FactView(Struct, frozen=True, kw_only=True):
    """A fact as a list shows it. `fit` says how well a hit answers; empty outside a search."""

    key: FactKey
    type: str
    text: str
    shown: str
    at: int
    actor: str = ""
    tags: tuple[str, ...] = ()
    fit: Fit | Literal[""] = ""
    alike: int = 0
    said_at: int = 0
    workspace: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """What identifies the text, so that a form notices a change by another client."""
        return sha256(self.text.encode("utf-8", "replace")).hexdigest()


def hit_row(hit: Hit, actor: str, fit: Fit) -> FactView:
    """Return the row of a hit."""
    passage = hit.passage
    # Without a source the neighbours are other facts, not turns of a conversation.
    before = hit.before if passage.source else ()
    after = hit.after if passage.source else ()
    return FactView(
        key=FactKey(passage.kind, passage.entity, max(passage.ordinal, 0)),
        type=passage.type,
        text=passage.text,
        shown=hit.excerpt,
        at=passage.valid_at or passage.created_at,
        actor=actor,
        tags=passage.tags,
        fit=fit,
        alike=hit.alike,
        said_at=passage.valid_at,
        before=tuple(item.text for item in before),
        after=tuple(item.text for item in after),
    )


def fact_rows(memory: Memory, entity: Entity) -> list[FactView]:
    """Return the facts of an entity, with their authors."""
    keys = [(entity.name, fact.ordinal) for fact in entity.facts]
    written = authors(memory, keys)
    rows = []
    for fact in entity.facts:
        author = written.get((entity.name, fact.ordinal))
        row = FactView(
            key=FactKey("fact", entity.name, fact.ordinal),
            type=entity.type,
            text=fact.text,
            shown=fact.text,
            at=fact.created_at,
            actor=author.actor if author else "",
            tags=entity.tags,
        )
        rows.append(row)
    return rows


def load_row(memory: Memory, key: FactKey) -> FactView:
    """Return the row of a fact as it is now. Raise EntityNotFound, or TextChanged if it is gone."""
    if key.kind == "note":
        note = notes.in_vault(memory, key.name)
        if note is None:
            raise TextChanged(f"the note {key.name}", None)
        return FactView(
            key=key,
            type="note",
            text=note.content,
            shown=note.content,
            at=note.updated_at or note.created_at,
            actor=_author(memory, note.key, NOTE),
            tags=note.tags,
        )
    entities = open_named(memory, [key.name]).entities
    if not entities:
        raise EntityNotFound(key.name)
    if key.kind == "entity":
        entity = entities[0]
        text = entity.summary or ""
        return FactView(
            key=key,
            type=entity.type,
            text=text,
            shown=text,
            at=entity.updated_at,
            actor=_author(memory, entity.name, 0),
            tags=entity.tags,
        )
    for row in fact_rows(memory, entities[0]):
        if row.key == key:
            return row
    raise TextChanged(f"fact {key.ordinal} of {key.name}", None)


def _author(memory: Memory, name: str, ordinal: int) -> str:
    author = authors(memory, [(name, ordinal)]).get((name, ordinal))
    return author.actor if author else ""


def parse_key(fields: Fields) -> FactKey:
    """Return the fact that the fields of an address or form name. Raise BadInput."""
    return FactKey(fields.choice("kind", _KINDS), fields["name"], fields.number("n") or 0)


def parse_picks(values: list[str]) -> list[FactKey]:
    """Return the facts whose checkboxes were ticked. Raise BadInput."""
    keys = []
    for value in values:
        kind, _, rest = value.partition(_SEPARATOR)
        ordinal, _, name = rest.partition(_SEPARATOR)
        if kind not in _KINDS or not ordinal.isdigit():
            raise BadInput("the selection is not valid: reload the page and select again")
        keys.append(FactKey(_KINDS[_KINDS.index(kind)], name, int(ordinal)))
    return keys


@get("/fact")
def show(page: Page) -> Response:
    """Show a fact as a row, for example after Cancel in its form."""
    return _show_row(page, load_row(page.memory, parse_key(page.query)))


@get("/fact/text")
def show_text(page: Page) -> Response:
    """Show the whole text of a fact."""
    row = load_row(page.memory, parse_key(page.query))
    return page.render("facts/text_page.html", fragment="facts/text.html", row=row)


@get("/fact/edit", needs="write")
def edit(page: Page) -> Response:
    """Show the form for a fact."""
    row = load_row(page.memory, parse_key(page.query))
    return _show_form(page, row.key, row, row.text)


@post("/fact/edit")
def save(page: Page) -> Response:
    """Save a text, unless it was changed meanwhile: then show both."""
    key, text = parse_key(page.form), page.form["text"]
    try:
        row = load_row(page.memory, key)
    except TextChanged:
        return _show_form(page, key, None, text, theirs=("", ""))
    if text == row.text.replace("\r\n", "\n"):
        if page.is_fragment:
            return _show_row(page, row)
        return page.done("Nothing changed", _home(page, key))
    if page.form["stamp"] != row.stamp:
        is_short = max(len(row.text), len(text)) <= MAX_COMPARED_CHARS
        theirs = compare(row.text, text) if is_short else (row.text, row.text)
        return _show_form(page, key, row, text, theirs=theirs)
    if not text.strip():
        problem = "The text is blank. Delete it instead if it should go."
        return _show_form(page, key, row, text, problem=problem)
    change = _write(page, key, text, row.text)
    toast = page.toast(f"Changed {_title(key)}", change)
    template, row = _VIEWS[_view(page)], load_row(page.memory, key)
    return page.done(toast, _home(page, key), fragment=template, row=row)


@post("/fact/delete")
def delete(page: Page) -> Response:
    """Delete a fact without asking: the toast has an Undo button."""
    key = parse_key(page.form)
    row = load_row(page.memory, key)
    receipt = forget(page.memory, unwanted([key]), by=page.by)
    toast = page.toast(f"Deleted {_title(key)}", receipt.change)
    # The page of an entity is gone with it.
    to = page.url("/") if key.kind == "entity" and "/entity" in page.back else page.back
    return page.done(toast, to, fragment="facts/gone.html", row=row, view=_view(page))


def unwanted(keys: list[FactKey]) -> Unwanted:
    """Return what to forget."""
    facts = [(key.name, key.ordinal) for key in keys if key.kind == "fact"]
    return Unwanted(
        entities=tuple(key.name for key in keys if key.kind == "entity"),
        facts=tuple(facts),
        notes=tuple(key.name for key in keys if key.kind == "note"),
    )


def _write(page: Page, key: FactKey, text: str, expected: str) -> int:
    if key.kind == "note":
        return notes.rewrite(page.memory, key.name, text, expected=expected, by=page.by)
    if key.kind == "entity":
        revision = Revision(summary=text)
    else:
        revision = Revision(replace=(Edit(key.ordinal, text, expected=expected),))
    return revise(page.memory, key.name, revision, by=page.by).change


def _show_form(
    page: Page,
    key: FactKey,
    row: FactView | None,
    text: str,
    *,
    problem: str = "",
    theirs: tuple[str | Markup, str | Markup] | None = None,
) -> Response:
    """Show the form for a text. `theirs` is what it is now, and ours, after a conflict."""
    return page.render(
        "facts/edit_page.html",
        fragment="facts/edit.html",
        key=key,
        row=row,
        text=text,
        stamp=row.stamp if row else "",
        problem=problem,
        theirs=theirs,
        view=_view(page),
    )


def _show_row(page: Page, row: FactView) -> Response:
    return page.render("facts/text_page.html", fragment=_VIEWS[_view(page)], row=row)


def _view(page: Page) -> str:
    view: str = page.form.get("view") or page.query.get("view", "hit")
    if view not in _VIEWS:
        raise BadInput(f"view: expected one of {', '.join(_VIEWS)}, got {view!r}")
    return view


def _home(page: Page, key: FactKey) -> str:
    """Return the page that has the fact."""
    if key.kind == "note":
        return page.url("/note", key=key.name)
    return page.url("/entity", name=key.name)


def _title(key: FactKey) -> str:
    kinds = {"note": "the note ", "entity": "", "fact": "a fact of "}
    return f"{kinds[key.kind]}{key.name}"
