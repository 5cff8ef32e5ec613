"""Undo: what the button in a toast and the key `u` do."""

from polymnia.engine.history import latest
from polymnia.engine.undo import undo
from polymnia.web.page import Page
from polymnia.web.response import Response, redirect
from polymnia.web.routes import Route


def run(page: Page) -> Response:
    """Undo one change, or the user's last one. If others have changed the same things since, ask what to do."""
    number = page.form.number("change") or _last(page)
    if number is None:
        return page.done(
            "You have changed nothing lately; the history has the changes of others", page.back
        )
    receipt = undo(page.memory, [number], by=page.by)
    if receipt.conflicts:
        ask = page.url("/history/undo", change=number)
        return Response(headers={"hx-redirect": ask}) if page.is_fragment else redirect(ask)
    if not receipt.change:
        return page.done("Nothing of it is left to undo", page.back)
    return page.done(page.toast("Undone", receipt.change), page.back)


def _last(page: Page) -> int | None:
    """Return the last change that this user made in the web interface; None if it was long ago."""
    found = [
        each.id
        for each in latest(page.memory, limit=20, max_rows=5_000).changes
        if each.actor == page.by
    ]
    return found[0] if found else None


ROUTES = (Route("POST", "/undo", run),)
