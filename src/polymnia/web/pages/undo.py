"""Undo: what the button in a toast and the key `u` do."""

from polymnia.engine.history import latest
from polymnia.engine.undo import undo
from polymnia.errors import BadInput
from polymnia.web.page import Page
from polymnia.web.response import Response, redirect
from polymnia.web.routes import Route


def run(page: Page) -> Response:
    """Undo one change, or the user's last one. If others built upon it, ask what to do with their work."""
    number = page.form.number("change") or _last(page)
    receipt = undo(page.memory, [number], by=page.by)
    if receipt.conflicts:
        ask = page.url("/history/undo", change=number)
        return Response(headers={"hx-redirect": ask}) if page.is_fragment else redirect(ask)
    if not receipt.change:
        return page.done("There is nothing left to undo of it", page.back)
    return page.done(page.toast("Undone", receipt.change), page.back)


def _last(page: Page) -> int:
    """Return the last change that this user made in the web interface. Raise BadInput if there is none."""
    found = [each.id for each in latest(page.memory, limit=20, max_rows=5_000).changes if each.actor == page.by]
    if not found:
        raise BadInput("you have changed nothing lately; the history shows the changes of others")
    return found[0]


ROUTES = (Route("POST", "/undo", run),)
