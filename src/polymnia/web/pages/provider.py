"""Log in at an identity provider by OpenID Connect."""

import hmac
import secrets
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json
from starlette.responses import HTMLResponse, Response

from polymnia.engine.workspaces import new_rights
from polymnia.errors import BadInput, NotAdmitted
from polymnia.web.page import Page, get
from polymnia.web.pages.login import show_form

if TYPE_CHECKING:  # its packages are optional
    from polymnia.auth.provider import Provider

_PATH = "/login/provider"
_LIFETIME_S = 600


class _Attempt(Struct):
    """A login that was begun, in a cookie: another browser cannot end it."""

    state: str
    nonce: str
    verifier: str
    to: str


@get(_PATH, is_public=True)
def begin(page: Page) -> Response:
    """Send the browser to the provider."""
    provider = _provider(page)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    try:
        url = provider.login_url(_redirect_uri(page), state, nonce, verifier)
    except NotAdmitted as exc:
        return show_form(page, f"{exc.public[:1].upper()}{exc.public[1:]}.", 503)
    attempt = _Attempt(state, nonce, verifier, page.own_address(page.query.get("to")))
    response = page.redirect(url)
    response.set_cookie(
        f"{page.cookie_name}_login",
        json.encode(attempt).hex(),
        max_age=_LIFETIME_S,
        path=f"{page.site.root}{_PATH}",
        httponly=True,
        # The provider leads back here, from another site.
        samesite="lax",
        secure=page.site.parts.public_origin.startswith("https:"),
    )
    return response


@get(f"{_PATH}/back", is_public=True)
def finish(page: Page) -> Response:
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
        return show_form(page, f"{exc.public[:1].upper()}{exc.public[1:]}.", 403)
    page.log_in(principal)
    # Not a redirect: the browser sends the new cookie only if one of our pages leads there.
    html = page.site.templates.render("parts/bounce.html", page, to=page.own_address(attempt.to))
    response = page.set_cookie(HTMLResponse(html))
    response.delete_cookie(f"{page.cookie_name}_login", f"{page.site.root}{_PATH}")
    return response


def _redirect_uri(page: Page) -> str:
    return f"{page.site.base_url}/ui{_PATH}/back"


def _provider(page: Page) -> "Provider":
    provider = page.site.parts.provider
    if provider is None or not provider.client_id:
        raise BadInput("this server has no identity provider: set oidc_client_id")
    return provider
