"""Let a program in: what it is, what it asks for, and what a person allows it."""

from starlette.responses import HTMLResponse, Response

from polymnia.auth.grants import Grants
from polymnia.errors import BadInput
from polymnia.model import CAPABILITIES
from polymnia.web.page import Page, get, post


@get("/allow")
def ask(page: Page) -> Response:
    """Ask whether a program may use the memory."""
    request = page.query["request"]
    authorization = _grants(page).find_authorization(request)
    choices = [can for can in CAPABILITIES if page.may(can)]
    # Administration is offered only to a program that asks for it.
    if authorization.wants != "admin":
        choices = [can for can in choices if can != "admin"]
    wanted = authorization.wants if authorization.wants in choices else choices[-1]
    return page.render(
        "allow/page.html",
        request=request,
        asked=authorization,
        choices=choices,
        wanted="write" if wanted == "admin" else wanted,
    )


@post("/allow", needs="read")
def decide(page: Page) -> Response:
    """Let the program in, or refuse it, and send the browser back to it."""
    grants, form = _grants(page), page.form
    if form.get("decision") == "allow":
        if form.get("can") not in CAPABILITIES:
            raise BadInput(f"choose what the program may do: {', '.join(CAPABILITIES)}")
        only = frozenset(form.getlist("only")) if form.get("scope") == "only" else None
        if only is not None and not only:
            raise BadInput("choose at least one workspace, or allow all that you may use")
        can = CAPABILITIES[CAPABILITIES.index(form["can"])]
        url = grants.allow(form["request"], page.principal, can=can, workspaces=only)
    else:
        url = grants.deny(form["request"])
    # Not a redirect: browsers apply `form-action` of the page to where a form leads.
    return HTMLResponse(page.site.templates.render("allow/back.html", page, to=url))


def _grants(page: Page) -> Grants:
    if page.site.parts.grants is None:
        raise BadInput("this server lets no programs in: it needs `public_url` in its settings")
    return page.site.parts.grants
