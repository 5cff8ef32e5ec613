"""Log in by a password, a token, a link or an identity provider, let programs in, and log out.

More shows where a user is logged in.
"""

import hmac
import logging
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json
from starlette.responses import HTMLResponse, Response

from polymnia.auth.grants import Grants
from polymnia.engine.workspaces import new_rights
from polymnia.errors import BadInput, NotAdmitted
from polymnia.model import CAPABILITIES, NOBODY
from polymnia.web.page import FORM_TOKEN_FIELD, TRANSPORT, Page, get, post

if TYPE_CHECKING:  # its packages are optional
    from polymnia.auth.provider import Provider

logger = logging.getLogger(__name__)

# The prefix of the fields that a login passes on.
_KEPT = "kept."
_PROVIDER_PATH = "/login/provider"


@get("/login", is_public=True)
def show(page: Page) -> Response:
    """Show the form, or log in by the one-time link in the address."""
    code = page.query.get("link")
    is_logged_in = page.principal is not NOBODY
    # Programs that preview links send HEAD: it must not use the link up.
    if is_logged_in or not code or page.request.method == "HEAD":
        return page.redirect(page.url("/")) if is_logged_in else show_form(page)
    principal = page.site.parts.sessions.use_link(code)
    if principal is None:
        return show_form(page, "This link was used already or has expired.", status=403)
    page.log_in(principal)
    # Not a redirect: the browser sends the new cookie only if one of our pages leads there.
    html = page.site.templates.render("parts/bounce.html", page, to=page.url("/"))
    return page.set_cookie(HTMLResponse(html))


@post("/login", is_public=True)
def log_in(page: Page) -> Response:
    """Open a session for a name and password, or for a token."""
    peer = page.request.scope[TRANSPORT].peer
    name, people = page.form.get("name").strip(), page.site.parts.people
    try:
        if name and people is not None:
            principal = people.log_in(name, page.form.get("password"), peer)
        else:
            principal = page.site.context.guard.admit(page.form.get("token").strip(), peer, "")
    except NotAdmitted as exc:
        if name:
            logger.warning("login failed: %s", exc, extra={"client": peer})
        return show_form(page, exc.public, status=403, kept=kept_fields(page))
    page.log_in(principal)
    kept = kept_fields(page)
    if kept:
        action = page.own_address(page.form.get("again"))
        return page.set_cookie(page.render("login/again.html", action=action, kept=kept))
    return page.set_cookie(page.redirect(page.own_address(page.form.get("to"))))


@get("/join", is_public=True)
def show_invitation(page: Page) -> Response:
    """Let an invited person choose a password."""
    return _join(page)


@post("/join", is_public=True)
def join(page: Page) -> Response:
    """Set the password of an invited person, and log them in."""
    people = page.site.parts.people
    if people is None:
        raise BadInput("this server has no accounts")
    try:
        principal = people.accept(page.form.get("code"), page.form.get("password"))
    except (BadInput, NotAdmitted) as exc:
        return _join(page, exc.public)
    page.log_in(principal)
    return page.set_cookie(page.redirect(page.url("/")))


class _Attempt(Struct):
    """A login that was begun, in a cookie: another browser cannot end it."""

    state: str
    nonce: str
    verifier: str
    to: str


@get(_PROVIDER_PATH, is_public=True)
def begin_at_provider(page: Page) -> Response:
    """Send the browser to the provider."""
    provider = _provider(page)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    try:
        url = provider.login_url(_redirect_uri(page), state, nonce, verifier)
    except NotAdmitted as exc:
        return show_form(page, exc.public, 503)
    attempt = _Attempt(state, nonce, verifier, page.own_address(page.query.get("to")))
    response = page.redirect(url)
    response.set_cookie(
        f"{page.cookie_name}_login",
        json.encode(attempt).hex(),
        max_age=600,
        path=f"{page.site.root}{_PROVIDER_PATH}",
        httponly=True,
        # The provider leads back here, from another site.
        samesite="lax",
        secure=page.site.parts.public_origin.startswith("https:"),
    )
    return response


@get(f"{_PROVIDER_PATH}/back", is_public=True)
def finish_at_provider(page: Page) -> Response:
    """Log the person in whom the provider names."""
    provider, parts, query = _provider(page), page.site.parts, page.query
    cookie = page.request.cookies.get(f"{page.cookie_name}_login", "")
    try:
        attempt = json.decode(bytes.fromhex(cookie), type=_Attempt)
        is_ours = hmac.compare_digest(attempt.state.encode(), query.get("state").encode())
    except (ValueError, DecodeError):
        is_ours = False
    if not is_ours or query.get("iss", provider.issuer) != provider.issuer:
        return show_form(page, "This login took too long, or began elsewhere: try again.", 403)
    if "code" not in query or parts.people is None:
        return show_form(page, f"{provider.host} did not log you in.", 403)
    try:
        identity = provider.finish_login(
            query["code"], _redirect_uri(page), attempt.nonce, attempt.verifier
        )
        name, workspaces = parts.people.name_of(identity), identity.workspaces
        if workspaces is not None:
            workspaces = new_rights(parts.workspaces, name, workspaces, keeps=True)
        principal = parts.people.admit(identity, workspaces)
    except NotAdmitted as exc:
        return show_form(page, exc.public, 403)
    page.log_in(principal)
    # Not a redirect: the browser sends the new cookie only if one of our pages leads there.
    html = page.site.templates.render("parts/bounce.html", page, to=page.own_address(attempt.to))
    response = page.set_cookie(HTMLResponse(html))
    response.delete_cookie(f"{page.cookie_name}_login", f"{page.site.root}{_PROVIDER_PATH}")
    return response


def _redirect_uri(page: Page) -> str:
    return f"{page.site.base_url}/ui{_PROVIDER_PATH}/back"


def _provider(page: Page) -> "Provider":
    provider = page.site.parts.provider
    if provider is None or not provider.client_id:
        raise BadInput("this server has no identity provider: set oidc_client_id")
    return provider


@get("/allow")
def ask(page: Page) -> Response:
    """Ask whether a program may use the memory."""
    request = page.query["request"]
    authorization = _grants(page).find_authorization(request)
    # Administration is offered only to a program that asks for it, and never chosen beforehand.
    most = CAPABILITIES.index("admin" if authorization.wants == "admin" else "write")
    choices = [can for can in CAPABILITIES[: most + 1] if page.may(can)]
    wanted = authorization.wants if authorization.wants in choices else choices[-1]
    if wanted == "admin":
        wanted = "write"
    return page.render(
        "allow/page.html",
        request=request,
        asked=authorization,
        choices=choices,
        wanted=wanted,
    )


@post("/allow", needs="read")
def decide(page: Page) -> Response:
    """Let the program in, or refuse it, and send the browser back to it."""
    grants, form = _grants(page), page.form
    if form.get("decision") == "allow":
        only = frozenset(form.getlist("only")) if form.get("scope") == "only" else None
        if only is not None and not only:
            raise BadInput("choose at least one workspace, or allow all that you may use")
        can = form.choice("can", CAPABILITIES)
        url = grants.allow(form["request"], page.principal, can=can, workspaces=only)
    else:
        url = grants.deny(form["request"])
    # Not a redirect: browsers apply `form-action` of the page to where a form leads.
    return HTMLResponse(page.site.templates.render("allow/back.html", page, to=url))


def _grants(page: Page) -> Grants:
    if page.site.parts.grants is None:
        raise BadInput("this server lets no programs in: it needs `public_url` in its settings")
    return page.site.parts.grants


@post("/logout", needs="read")
def log_out(page: Page) -> Response:
    """End the session."""
    page.site.parts.sessions.close(page.session)
    response = page.redirect(page.url("/login"))
    response.delete_cookie(page.cookie_name, page.site.root)
    return response


@get("/more")
def show_more(page: Page) -> Response:
    """Show where the user is logged in, and the pages that a phone's tab bar has no room for."""
    parts = page.site.parts
    user = None if parts.tokens is None else parts.tokens.store.find(page.principal.id)
    logins = parts.people.logins(user) if user is not None and parts.people is not None else []
    return page.render("more/page.html", logins=logins)


@post("/more/end", needs="read")
def end_login(page: Page) -> Response:
    """End one of the user's logins, or the access of a program that they let in."""
    people = page.site.parts.people
    if people is None:
        raise BadInput("this server has no accounts")
    people.end_login(page.principal.id, page.form["id"])
    return page.done("Ended", page.url("/more"))


def ask_again(page: Page) -> Response:
    """Show the form in place of one whose session has ended, and keep what was written."""
    kept = [pair for pair in page.form.multi_items() if pair[0] != FORM_TOKEN_FIELD]
    problem = "Your session has ended. Log in, and send what you wrote again."
    return show_form(page, problem, status=401, kept=kept, again=f"{page.site.root}{page.path}")


def kept_fields(page: Page) -> list[tuple[str, str]]:
    """Return the fields of the form that a login interrupted."""
    pairs = page.form.multi_items()
    return [(name.removeprefix(_KEPT), text) for name, text in pairs if name.startswith(_KEPT)]


def _join(page: Page, problem: str = "") -> Response:
    people = page.site.parts.people
    code = page.query.get("code") or page.form.get("code")
    try:
        if people is None:
            raise NotAdmitted("this server has no accounts")
        user = people.find_invitation(code)
    except NotAdmitted as exc:
        return show_form(page, exc.public, status=403)
    values = {"name": user.name, "code": code, "problem": problem}
    return page.render("login/join.html", status=400 if problem else 200, **values)


def show_form(
    page: Page,
    problem: str = "",
    status: int = 200,
    kept: Sequence[tuple[str, str]] = (),
    again: str = "",
) -> Response:
    """Show the form to log in, with what is wrong and the fields of an interrupted form."""
    people, provider = page.site.parts.people, page.site.parts.provider
    return page.render(
        "login/page.html",
        problem=problem,
        provider=provider.host if provider is not None and provider.client_id else "",
        has_people=people is not None and people.exist,
        to=page.query.get("to") or page.form.get("to"),
        again=again or page.form.get("again"),
        kept=[(_KEPT + name, text) for name, text in kept],
        status=status,
    )
