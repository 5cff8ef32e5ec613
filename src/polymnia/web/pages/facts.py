"""One fact in a list: edit it in place, delete it, show all of a long text."""

from polymnia.engine import notes
from polymnia.engine.forget import Unwanted, forget
from polymnia.engine.revise import Edit, Revision, revise
from polymnia.errors import BadInput, TextChanged
from polymnia.web.changes import compare
from polymnia.web.facts import FactKey, FactRow, load_row, parse_key
from polymnia.web.page import Page
from polymnia.web.response import Response
from polymnia.web.routes import Route

# The template of a row in each view: the hits of a search, and the observations of an entity.
_VIEWS = {"hit": "facts/hit.html", "obs": "facts/observation.html"}
_MAX_COMPARED_CHARS = 4_000


def show(page: Page) -> Response:
    """Show a fact as a row, for example after Cancel in its form."""
    return _row(page, load_row(page.memory, parse_key(page.query)))


def show_text(page: Page) -> Response:
    """Show the whole text of a fact."""
    row = load_row(page.memory, parse_key(page.query))
    return page.render("facts/text_page.html", fragment="facts/text.html", row=row)


def edit(page: Page) -> Response:
    """Show the form for a fact."""
    row = load_row(page.memory, parse_key(page.query))
    return _form(page, row, row.text)


def save(page: Page) -> Response:
    """Save a text, unless somebody changed it meanwhile: then show both."""
    key, text = parse_key(page.form), page.form["text"]
    try:
        row = load_row(page.memory, key)
    except TextChanged:
        return _conflict(page, None, key, text)
    if text == row.text.replace("\r\n", "\n"):
        return (
            _row(page, row) if page.is_fragment else page.done("Nothing changed", _home(page, key))
        )
    if page.form["stamp"] != row.stamp:
        return _conflict(page, row, key, text)
    if not text.strip():
        return _form(
            page, row, text, problem="The text is blank. Delete it instead if it should go."
        )
    change = _write(page, key, text, row.text)
    toast = page.toast(f"Changed {_title(key)}", change)
    return page.done(
        toast, _home(page, key), fragment=_template(page), row=load_row(page.memory, key)
    )


def delete(page: Page) -> Response:
    """Delete a fact without asking: the toast has an Undo button."""
    key = parse_key(page.form)
    row = load_row(page.memory, key)
    receipt = forget(page.memory, unwanted([key]), by=page.by)
    toast = page.toast(f"Deleted {_title(key)}", receipt.change)
    to = page.url("/") if key.kind == "entity" and "/entity" in page.back else page.back
    return page.done(toast, to, fragment="facts/gone.html", row=row, view=_view(page))


def unwanted(keys: list[FactKey]) -> Unwanted:
    """Return what to forget."""
    return Unwanted(
        entities=tuple([each.name for each in keys if each.kind == "entity"]),
        observations=tuple(
            [(each.name, each.ordinal) for each in keys if each.kind == "observation"]
        ),
        notes=tuple([each.name for each in keys if each.kind == "note"]),
    )


def _write(page: Page, key: FactKey, text: str, expected: str) -> int:
    if key.kind == "note":
        return notes.rewrite(page.memory, key.name, text, expected=expected, by=page.by)
    if key.kind == "entity":
        return revise(page.memory, key.name, Revision(summary=text), by=page.by).change
    edit = Edit(key.ordinal, text, expected=expected)
    return revise(page.memory, key.name, Revision(replace=(edit,)), by=page.by).change


def _form(page: Page, row: FactRow, text: str, problem: str = "") -> Response:
    return page.render(
        "facts/edit_page.html",
        fragment="facts/edit.html",
        key=row.key,
        row=row,
        text=text,
        stamp=row.stamp,
        problem=problem,
        theirs=None,
        view=_view(page),
    )


def _conflict(page: Page, row: FactRow | None, key: FactKey, text: str) -> Response:
    """Show what the text is now beside what the user wrote. Saving again replaces it."""
    is_short = row is not None and max(len(row.text), len(text)) <= _MAX_COMPARED_CHARS
    return page.render(
        "facts/edit_page.html",
        fragment="facts/edit.html",
        key=key,
        row=row,
        text=text,
        stamp=row.stamp if row else "",
        problem="",
        theirs=compare(row.text, text)
        if row is not None and is_short
        else (row.text if row else "",) * 2,
        view=_view(page),
    )


def _row(page: Page, row: FactRow) -> Response:
    return page.render("facts/text_page.html", fragment=_template(page), row=row)


def _view(page: Page) -> str:
    view = page.form.get("view") or page.query.get("view", "hit")
    if view not in _VIEWS:
        raise BadInput(f"view: expected one of {', '.join(_VIEWS)}, got {view!r}")
    return view


def _template(page: Page) -> str:
    return _VIEWS[_view(page)]


def _home(page: Page, key: FactKey) -> str:
    """Return the page that has the fact."""
    if key.kind == "note":
        return page.url("/note", key=key.name)
    return page.url("/entity", name=key.name)


def _title(key: FactKey) -> str:
    kinds = {"note": "the note ", "entity": "", "observation": "an observation of "}
    return f"{kinds[key.kind]}{key.name}"


ROUTES = (
    Route("GET", "/fact", show),
    Route("GET", "/fact/text", show_text),
    Route("GET", "/fact/edit", edit, needs="write"),
    Route("POST", "/fact/edit", save),
    Route("POST", "/fact/delete", delete),
)
