"""Theme and density: how pages look in this browser."""

from starlette.responses import Response

from polymnia.errors import BadInput
from polymnia.web.page import DENSITIES, LOOK_COOKIE, THEMES, Page, get, post

_YEAR_S = 31_536_000


@get("/look")
def show(page: Page) -> Response:
    """Show the choices."""
    return page.render("look/page.html")


@post("/look", needs="read")
def choose(page: Page) -> Response:
    """Let the browser keep the choice."""
    theme, density = page.form.get("theme"), page.form.get("density")
    if theme not in THEMES or density not in DENSITIES:
        raise BadInput("choose one of the themes and densities of the form")
    response = page.done("Saved for this browser", page.url("/look"))
    response.set_cookie(
        LOOK_COOKIE,
        f"{theme}.{density}",
        max_age=_YEAR_S,
        path=page.site.root,
        httponly=True,
        samesite="strict",
    )
    return response
