"""Log in by a token or a one-time link, log out, and More, which has the button for it."""

from collections.abc import Sequence

from starlette.responses import HTMLResponse, Response

from polymnia.errors import NotAdmitted
from polymnia.model import NOBODY
from polymnia.web.page import FORM_TOKEN_FIELD, TRANSPORT, Page, get, post

# The prefix of the fields that a login passes on.
_KEPT = "kept."


@get("/login", is_public=True)
def show(page: Page) -> Response:
    """Show the form, or log in by the one-time link in the address."""
    code = page.query.get("link")
    is_logged_in = page.principal is not NOBODY
    # Programs that preview links send HEAD: it must not use the link up.
    if is_logged_in or not code or page.request.method == "HEAD":
        return page.redirect(page.url("/")) if is_logged_in else _form(page)
    principal = page.site.parts.sessions.use_link(code)
    if principal is None:
        return _form(page, "This link was used already or has expired.", status=403)
    page.log_in(principal)
    # Not a redirect: the browser sends the new cookie only if one of our pages leads there.
    html = page.site.templates.render("parts/bounce.html", page, to=page.url("/"))
    return page.set_cookie(HTMLResponse(html))


@post("/login", is_public=True)
def log_in(page: Page) -> Response:
    """Open a session for a token."""
    peer = page.request.scope[TRANSPORT].peer
    try:
        principal = page.site.context.guard.admit(page.form.get("token").strip(), peer, "")
    except NotAdmitted as exc:
        problem = f"{exc.public[:1].upper()}{exc.public[1:]}."
        return _form(page, problem, status=403, kept=kept_fields(page))
    page.log_in(principal)
    kept = kept_fields(page)
    if kept:
        action = page.own_address(page.form.get("again"))
        return page.set_cookie(page.render("login/again.html", action=action, kept=kept))
    return page.set_cookie(page.redirect(page.own_address(page.form.get("to"))))


@post("/logout", needs="read")
def log_out(page: Page) -> Response:
    """End the session."""
    page.site.parts.sessions.close(page.session)
    response = page.redirect(page.url("/login"))
    response.delete_cookie(page.cookie_name, page.site.root)
    return response


@get("/more")
def show_more(page: Page) -> Response:
    """Show the pages that do not fit into the tab bar of a phone."""
    return page.render("more/page.html")


def ask_again(page: Page) -> Response:
    """Show the form in place of one whose session has ended, and keep what was written."""
    kept = [pair for pair in page.form.multi_items() if pair[0] != FORM_TOKEN_FIELD]
    problem = "Your session has ended. Log in, and send what you wrote again."
    return _form(page, problem, status=401, kept=kept, again=f"{page.site.root}{page.path}")


def kept_fields(page: Page) -> list[tuple[str, str]]:
    """Return the fields of the form that a login interrupted."""
    pairs = page.form.multi_items()
    return [(name.removeprefix(_KEPT), text) for name, text in pairs if name.startswith(_KEPT)]


def _form(
    page: Page,
    problem: str = "",
    status: int = 200,
    kept: Sequence[tuple[str, str]] = (),
    again: str = "",
) -> Response:
    return page.render(
        "login/page.html",
        problem=problem,
        to=page.query.get("to") or page.form.get("to"),
        again=again or page.form.get("again"),
        kept=[(_KEPT + name, text) for name, text in kept],
        status=status,
    )
