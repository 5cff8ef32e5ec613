"""Log in by pasting a token or by a one-time link, and log out."""

from polymnia.errors import NotAdmitted
from polymnia.model import NOBODY, Principal
from polymnia.web.page import Page
from polymnia.web.response import Response, html, redirect
from polymnia.web.routes import Route


def show(page: Page) -> Response:
    """Show the form, or log in by the one-time link in the address."""
    code = page.query.get("link")
    if not code:
        return _form(page) if page.principal is NOBODY else redirect(page.url("/"))
    principal = page.site.parts.sessions.use_link(code)
    if principal is None:
        return _form(page, "This link was used already or has expired.", status=403)
    # Not a redirect: the browser sends the new cookie only if a link on one of our pages is followed.
    text = page.site.templates.render("parts/bounce.html", page, to=page.url("/"))
    return html(text, headers=_open(page, principal))


def log_in(page: Page) -> Response:
    """Open a session for a token."""
    try:
        principal = page.site.context.guard.admit(page.form.get("token").strip(), peer=page.peer)
    except NotAdmitted as exc:
        return _form(page, f"{exc.public[:1].upper()}{exc.public[1:]}.", status=403)
    return redirect(page.own_address(page.form.get("to")), headers=_open(page, principal))


def log_out(page: Page) -> Response:
    """End the session."""
    page.site.parts.sessions.close(page.cookie.value)
    return redirect(page.url("/login"), headers=page.cookie.set(""))


def _form(page: Page, problem: str = "", status: int = 200) -> Response:
    return page.render(
        "login/page.html",
        problem=problem,
        to=page.query.get("to") or page.form.get("to"),
        status=status,
    )


def _open(page: Page, principal: Principal) -> dict[str, str]:
    return page.log_in(principal)


ROUTES = (
    Route("GET", "/login", show, is_public=True),
    Route("POST", "/login", log_in, is_public=True),
    Route("POST", "/logout", log_out, needs="read"),
)
