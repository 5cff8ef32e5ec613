"""The application at /ui: checks a request, runs its page on a worker thread, sends the answer."""

import logging
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import Message

from polymnia.errors import (
    BadInput,
    EntityNotFound,
    NotAdmitted,
    NotAllowed,
    NotSupported,
    NoWorkspace,
    PolymniaError,
    Refused,
    StoreError,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import NOBODY, Principal
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.operations import PAGE, UI_PATH
from polymnia.transports.http.request import HttpRequest
from polymnia.web import SiteParts
from polymnia.web.findings import FindingsCache, SharedState, SiteState
from polymnia.web.imports import Imports, receive_upload
from polymnia.web.page import (
    FORM_TOKEN_FIELD,
    HANDLERS,
    SECURITY_HEADERS,
    TRANSPORT,
    WORKSPACE,
    Fields,
    Handler,
    Page,
    Toasts,
    parse_fields,
)
from polymnia.web.pages import MODULES, PAGES
from polymnia.web.pages.login import ask_again
from polymnia.web.pages.start import show_start
from polymnia.web.rendering import Templates

logger = logging.getLogger(__name__)

FORM_TOKEN_HEADER = "x-form-token"
_READS = ("GET", "HEAD")
# A form with a text of the greatest length, URL-encoded.
MAX_FORM_BYTES = 4 << 20
MAX_TEXT_CHARS = 1 << 20
# The status of an error page, if it is not 400: that of the last class that fits the error.
_STATUSES: dict[type[PolymniaError], int] = {
    NotAllowed: 403,
    EntityNotFound: 404,
    WorkspaceNotFound: 404,
    StoreError: 503,
    NotSupported: 400,  # a StoreError that the user can mend
}
# Pages hold what the agents remember: no cache keeps them.
_DEFAULT_HEADERS = {**SECURITY_HEADERS, "cache-control": "no-store"}


class Site:
    """The web interface: what its pages share, and the routes that lead to them."""

    def __init__(self, parts: SiteParts, context: HttpContext) -> None:
        self.parts = parts
        self.context = context
        self.base_url = parts.mcp_url.removesuffix("/mcp")
        self.root = f"{context.public_path}{UI_PATH}"
        self.toasts = Toasts()
        self.findings = FindingsCache(context.pool)
        # Dismissed findings are in the database, beside the tokens, or nowhere.
        self.state: SiteState | SharedState
        if parts.state is not None:
            self.state = SharedState(parts.state)
        else:
            path = None if parts.tokens is None else parts.tokens.path
            self.state = SiteState(None if path is None else path.with_suffix(".web"))
        self.imports = Imports(lambda: self.context.is_stopping)
        self.templates = Templates(self.root, PAGES)
        for name in MODULES:
            import_module(f"polymnia.web.pages.{name}")
        routes: list[Route | Mount] = [
            Mount(f"{UI_PATH}/static/{{version}}", self.templates.assets)
        ]
        for handler in HANDLERS:
            paths = [UI_PATH, f"{UI_PATH}/"] if handler.path == "/" else [UI_PATH + handler.path]
            answer = partial(self._answer, handler)
            routes += [Route(path, answer, methods=[handler.method]) for path in paths]
        # The form token in a page cannot be guessed from compressed sizes (BREACH): other sites'
        # requests carry no session, because its cookie is SameSite=Strict.
        self._application = GZipMiddleware(
            Router(routes, redirect_slashes=False, default=_not_found),
            # Small answers gain nothing, and level 5 takes half the time of the default.
            minimum_size=1_000,
            compresslevel=5,
        )

    async def __call__(self, request: HttpRequest) -> None:
        """Answer a request of the transport."""
        request.scope[TRANSPORT] = request
        with self.context.running_request():
            try:
                self.context.check_open()
                self.context.guard.check_host(request)
                self._check_origin(request)
            except Refused as refusal:
                await request.refuse(refusal)
                return
            try:
                send = partial(_send, request)
                await self._application(request.scope, request.receive, send)
            except (PolymniaError, HTTPException) as exc:
                await self._refuse(request, exc)
            finally:
                request.release()

    async def _answer(self, handler: Handler, request: Request) -> Response:
        """Return the response to a request. Raise PolymniaError."""
        request.scope[PAGE] = f"{UI_PATH}{handler.path}"  # for the log
        page = Page(self, request)
        # A database may be asked for the session.
        owner = await self.context.run(partial(self.parts.sessions.find, page.session))
        self._admit(page, owner)
        if page.principal is not NOBODY and not handler.is_public:
            page.principal.require(handler.needs, "this")
        run = handler.run
        if page.principal is NOBODY and not handler.is_public:
            run = self._to_login
        if request.method == "POST":
            await self._read_form(page, takes_files=handler.takes_files)
        response = await self.context.run(partial(run, page))
        if handler.path.startswith(("/login", "/allow")):
            # A program waits for the window that it opened, also while its user logs in.
            response.headers["cross-origin-opener-policy"] = "unsafe-none"
        return response

    async def _read_form(self, page: Page, *, takes_files: bool) -> None:
        """Read the fields of a form and its files. Raise Refused if it is forged or too large."""
        transport: HttpRequest = page.request.scope[TRANSPORT]
        content_type = page.request.headers.get("content-type", "")
        media_type = content_type.partition(";")[0].strip().lower()
        is_stranger = page.principal is NOBODY
        check = partial(self._check_form_token, page)
        if takes_files and media_type == "multipart/form-data":
            if not is_stranger:
                page.upload = await receive_upload(
                    transport, self.context, content_type, check, self.parts.scratch
                )
                page.form = page.upload.fields
            return
        # Before a login there is the token, and what a user wrote whose session has ended.
        limit = (128 << 10) if is_stranger else MAX_FORM_BYTES
        body = await transport.read(limit=limit, budget=self.context.budget)
        expected = "application/x-www-form-urlencoded"
        if body and media_type != expected:
            raise BadInput(f"a form is expected as {expected}")
        page.form = await self.context.run(lambda: parse_fields(body))
        if not is_stranger:
            check(page.form)
        if any(len(text) > MAX_TEXT_CHARS for text in page.form.values()):
            raise BadInput(f"a text may have {MAX_TEXT_CHARS:,} characters: import it as a file")

    def _admit(self, page: Page, owner: Principal | None) -> None:
        """Let the page be that of the session's owner, or of any visitor if no login is needed."""
        transport: HttpRequest = page.request.scope[TRANSPORT]
        if owner is None:
            # A cookie that opens nothing may come from anywhere: no form token is made from it.
            page.session = ""
            try:
                owner = self.context.guard.admit(None, transport.peer, "")
            except NotAdmitted:
                return
        transport.connection.admit()
        transport.record.principal = owner
        page.principal = owner

    def _check_origin(self, request: HttpRequest) -> None:
        """Raise Refused if another site's page sends the request."""
        origin = request.header(b"origin")
        if origin is None and request.method in _READS:
            return
        own_host = request.header(b"host") or ""
        is_own = urlsplit(origin or "").netloc.lower() == own_host.lower()
        if not is_own and origin != self.parts.public_origin:
            raise Refused(403, "only pages of this server may use the web interface")

    def _check_form_token(self, page: Page, form: Fields) -> None:
        token = page.request.headers.get(FORM_TOKEN_HEADER) or form.get(FORM_TOKEN_FIELD)
        if not self.parts.sessions.is_form_token(page.session, token):
            raise Refused(403, "the page is out of date: reload it and try again")

    def _to_login(self, page: Page) -> Response:
        request = page.request
        if page.is_fragment:
            # The script reloads the page; a form it sends again as a whole page, to keep its text.
            reload = {"hx-refresh": "true"} if request.method in _READS else {}
            return Response(status_code=401, headers=reload)
        if request.method not in _READS:
            has_content = set(page.form) - {FORM_TOKEN_FIELD, WORKSPACE}
            return ask_again(page) if has_content else page.redirect(page.url("/login"))
        query = request.url.query
        here = f"{self.root}{page.path}" + (f"?{query}" if query else "")
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A browser sends the cookie of a session only if one of our pages leads here.
            return HTMLResponse(self.templates.render("parts/bounce.html", page, to=here))
        return page.redirect(page.url("/login", to=here))

    async def _refuse(self, transport: HttpRequest, exc: PolymniaError | HTTPException) -> None:
        """Answer with an error page. The rest of the body, if there is one, is discarded."""
        response = await self.context.run(lambda: self._error_page(transport, exc))
        headers = dict(response.headers)
        del headers["content-length"]
        refusal = Refused(response.status_code, "", headers={**_DEFAULT_HEADERS, **headers})
        await transport.refuse(refusal, bytes(response.body))

    def _error_page(self, transport: HttpRequest, exc: PolymniaError | HTTPException) -> Response:
        """Return the page that says what is wrong. The log says it too if the store fails."""
        try:
            page = Page(self, Request(transport.scope))
        except BadInput:  # the query itself is malformed
            page = Page(self, Request({**transport.scope, "query_string": b""}))
        # Without the database it is unknown who asks: show the error to any visitor.
        with suppress(StoreError):
            self._admit(page, self.parts.sessions.find(page.session))
        if isinstance(exc, NoWorkspace):
            return show_start(page)
        if isinstance(exc, HTTPException):
            status = exc.status_code
            message = "there is no such page" if status == 404 else exc.detail
        else:
            status = exc.status if isinstance(exc, Refused) else 400
            for kind, number in _STATUSES.items():
                if isinstance(exc, kind):
                    status = number
            message = exc.public
            if page.may("admin"):  # who may know of files and commands
                message = str(exc)
                if isinstance(exc, WorkspaceArchived):
                    message = f"the workspace {exc.name} is archived; restore it under Access"
        if status == 503:
            logger.error("a page failed: %s", exc)
        return page.render(
            "parts/error.html",
            fragment="parts/error_notice.html",
            status=status,
            message=message,
            is_missing=status == 404,
        )


async def _send(request: HttpRequest, message: Message) -> None:
    """Send a part of a response. Every response has the same security headers."""
    if message["type"] == "http.response.start":
        headers = MutableHeaders(raw=message["headers"])
        for name, value in _DEFAULT_HEADERS.items():
            headers.setdefault(name, value)
        for name in ("HX-Request", "Cookie"):
            headers.add_vary_header(name)
    await request.send(message)


async def _not_found(scope: Any, receive: Any, send: Any) -> None:
    raise HTTPException(404)
