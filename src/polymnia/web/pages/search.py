"""Search: the first page. An empty box shows the latest changes."""

from polymnia.engine.history import latest
from polymnia.web.page import ROWS, Page
from polymnia.web.response import Response
from polymnia.web.routes import Route


def show(page: Page) -> Response:
    """Show the latest changes."""
    found = latest(page.memory, limit=ROWS, before=page.query.number("before"))
    return page.render("search/page.html", fragment="search/changes.html", changes=found.changes)


ROUTES = (Route("GET", "/", show),)
