"""More: the pages that do not fit into the tab bar of a phone."""

from polymnia.web.page import Page
from polymnia.web.response import Response
from polymnia.web.routes import Route


def show(page: Page) -> Response:
    """Show the rest of the navigation."""
    return page.render("more/page.html")


ROUTES = (Route("GET", "/more", show),)
