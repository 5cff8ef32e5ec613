"""Undo: what the button in a toast does."""

from polymnia.engine.undo import undo
from polymnia.errors import BadInput
from polymnia.web.page import Page
from polymnia.web.response import Response
from polymnia.web.routes import Route


def run(page: Page) -> Response:
    """Undo one change. What others built upon it is not overwritten: then nothing is undone."""
    number = page.form.number("change")
    if number is None:
        raise BadInput("the field change is missing")
    receipt = undo(page.memory, [number], by=page.by)
    if receipt.conflicts:
        first = receipt.conflicts[0]
        raise BadInput(f"it cannot be undone as a whole: {first.what} of {first.name}: {first.reason}")
    return page.done(page.toast("Undone", receipt.change), page.back)


ROUTES = (Route("POST", "/undo", run),)
