"""The ASGI application at /ui: checks a request, finds its page, runs it on a worker thread and sends its answer."""

import logging
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from polymnia.auth.tokens import Tokens
from polymnia.engine.graph_overview import GraphOverviews
from polymnia.engine.secrets import SecretRule
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import (
    EntityNotFound,
    NotAdmitted,
    NotAllowed,
    NotSupported,
    NoWorkspace,
    PolymniaError,
    Refused,
    StoreError,
    WorkspaceNotFound,
)
from polymnia.model import NOBODY, Principal
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.operations import PAGE, UI_PATH
from polymnia.transports.http.request import Request
from polymnia.web.feed import ChangeNews
from polymnia.web.forms import Fields, parse_form, parse_query
from polymnia.web.login import SessionCookie, WebSessions, read_cookie
from polymnia.web.multipart import parse_boundary
from polymnia.web.page import Page
from polymnia.web.pages import PAGES
from polymnia.web.response import Response, html, redirect
from polymnia.web.routes import PageSpec, Route, StreamRoute
from polymnia.web.state import SiteState
from polymnia.web.toasts import Toasts
from polymnia.web.uploads import Upload, receive_upload

if TYPE_CHECKING:
    from polymnia.web.imports import Imports
    from polymnia.web.rendering import Templates

logger = logging.getLogger(__name__)

FORM_TOKEN_HEADER, FORM_TOKEN_FIELD = b"x-form-token", "form_token"
_READS = ("GET", "HEAD")
# The longest form before a login, and the longest one that is parsed on the event loop.
_MAX_LOGIN_BYTES = 16_384
_MAX_INLINE_BYTES = 65_536
_STATIC = "/static/"
# A file is read and sent in pieces of this size.
_PIECE_BYTES = 1 << 18
_NOT_FOUND = Response(
    status=404,
    body=b"there is no such page\n",
    headers={"content-type": "text/plain; charset=utf-8"},
)
# The status of an error page: that of the first class that fits the error.
_STATUSES: tuple[tuple[type[PolymniaError], int], ...] = (
    (NotAllowed, 403),
    (EntityNotFound, 404),
    (WorkspaceNotFound, 404),
    (NotSupported, 400),
    (StoreError, 503),
    (PolymniaError, 400),
)


class SiteParts(Struct, frozen=True, kw_only=True):
    """What the web interface shows and uses.

    `workspace` is where users start. `public_origin` is the origin of the public URL; empty if there is none.
    `mcp_url` is where clients reach the server, `backups` the folder for backups if it is not the usual one,
    `secrets` what an import does with keys and tokens.
    """

    workspaces: Workspaces
    workspace: str | None
    sessions: WebSessions
    tokens: Tokens | None = None
    public_origin: str = ""
    store: str = ""
    backups: str = ""
    secrets: SecretRule = "warn"
    mcp_url: str = ""


class Site:
    """The web interface. Pages and templates are loaded with the first request."""

    def __init__(self, parts: SiteParts, context: HttpContext) -> None:
        self.parts = parts
        self.context = context
        self.root = f"{context.public_path}{UI_PATH}"
        self.toasts = Toasts()
        self.news = ChangeNews(parts.workspaces)
        self.overviews = GraphOverviews()
        self.state = SiteState(parts.tokens.path.with_suffix(".web") if parts.tokens else None)

    @cached_property
    def templates(self) -> "Templates":
        """The templates; Jinja2 is imported when they are first used."""
        from polymnia.web.rendering import Templates

        return Templates(self.root, PAGES)

    @cached_property
    def imports(self) -> "Imports":
        """The uploads that are being imported."""
        from polymnia.web.imports import Imports

        return Imports(lambda: self.context.is_stopping)

    @cached_property
    def routes(self) -> dict[tuple[str, str], tuple[Route | StreamRoute, PageSpec]]:
        """The routes of all pages, by method and path."""
        found = {}
        for spec in PAGES:
            for route in import_module(f"polymnia.web.pages.{spec.key}").ROUTES:
                found[route.method, route.path] = (route, spec)
        return found

    async def __call__(self, request: Request) -> None:
        try:
            with self.context.running_request():
                self.context.check_open()
                answer = await self._answer(request)
                if isinstance(answer, Response):
                    await self._send(request, answer)
                    return
            page, stream = answer
            await stream.run(page, request)
        except Refused as refusal:
            await request.refuse(refusal)
        except PolymniaError as exc:  # a malformed form, or a stream that the user may not see
            await request.refuse(Refused(_status(exc), exc.public))
        finally:
            request.release()

    async def _send(self, request: Request, response: Response) -> None:
        if response.file is None:
            await request.respond(response.status, response.body, response.all_headers)
            return
        with response.file as file:
            await request.start(response.status, response.all_headers)
            while data := await self.context.run(lambda: file.read(_PIECE_BYTES)):
                await request.write(data, more=True)
            await request.write(b"", more=False)

    async def _answer(self, request: Request) -> Response | tuple[Page, StreamRoute]:
        """Return the response to a request, or the stream that answers it. Raise Refused."""
        self.context.guard.check_host(request)
        self._check_origin(request)
        path = request.path.removeprefix(UI_PATH) or "/"
        if path.startswith(_STATIC):
            request.scope[PAGE] = f"{UI_PATH}{_STATIC}"
            found = await self.context.run(lambda: self.templates.assets.find(path))
            return found or _NOT_FOUND
        routes = await self.context.run(lambda: self.routes)
        method = "GET" if request.method in _READS else request.method
        if (method, path) not in routes:
            return _NOT_FOUND
        request.scope[PAGE] = f"{UI_PATH}{path}"
        route, spec = routes[method, path]
        return await self._run_route(request, route, spec, path)

    async def _run_route(
        self, request: Request, route: Route | StreamRoute, spec: PageSpec, path: str
    ) -> Response | tuple[Page, StreamRoute]:
        cookie = self._cookie(request)
        principal = self._principal(request, cookie)
        if principal is None and not (isinstance(route, Route) and route.is_public):
            return self._to_login(request, path)
        form, upload = Fields([]), None
        if request.method == "POST":
            form, upload = await self._read_form(request, route, principal, cookie)
        page = Page(
            self,
            principal or NOBODY,
            spec=spec,
            path=path,
            query=parse_query(request.query),
            form=form,
            upload=upload,
            cookie=cookie,
            is_fragment=_is_fragment(request),
            peer=request.peer,
            came_from=request.header(b"hx-current-url") or request.header(b"referer") or "",
        )
        if isinstance(route, StreamRoute):
            return page, route
        return await self.context.run(lambda: self._run(route, page))

    async def _read_form(
        self,
        request: Request,
        route: Route | StreamRoute,
        principal: Principal | None,
        cookie: SessionCookie,
    ) -> tuple[Fields, Upload | None]:
        """Return the fields of a form and its files. Raise Refused if it is forged."""

        def check(fields: Fields) -> None:
            if principal is not None:
                self._check_form_token(request, cookie, fields)

        content_type = request.header(b"content-type") or ""
        if (
            isinstance(route, Route)
            and route.takes_files
            and (boundary := parse_boundary(content_type))
        ):
            if principal is None or not principal.may(route.needed):
                raise Refused(403, f"uploading files needs {route.needed}")
            return await receive_upload(request, self.context, boundary, check)
        limit = _MAX_LOGIN_BYTES if principal is None else self.context.max_message_bytes
        body = await request.body(limit=limit, budget=self.context.budget)
        is_short = len(body) <= _MAX_INLINE_BYTES
        form = (
            parse_form(content_type, body)
            if is_short
            else await self.context.run(lambda: parse_form(content_type, body))
        )
        check(form)
        return form, None

    def _run(self, route: Route, page: Page) -> Response:
        """Run a page on this thread. Return an error page if it fails."""
        try:
            if not route.is_public:
                page.principal.require(route.needed, "this")
            return route.run(page)
        except NoWorkspace:
            return page.render("parts/no_workspace.html", fragment="parts/no_workspace.html")
        except PolymniaError as exc:
            status = _status(exc)
            if status == 503:
                logger.error("a page failed: %s", exc)
            message = str(exc) if page.may("admin") else exc.public
            return page.render(
                "parts/error.html",
                fragment="parts/error_notice.html",
                status=status,
                message=message,
            )

    def _cookie(self, request: Request) -> SessionCookie:
        """Return the cookie of this server: browsers send one server's cookies to every port of its host."""
        port = urlsplit(f"//{request.header(b'host') or ''}").port
        name = f"polymnia_{port or 'ui'}"
        value = read_cookie(request.header(b"cookie"), name)
        is_secure = self.parts.public_origin.startswith("https:")
        return SessionCookie(name=name, value=value, path=self.root, is_secure=is_secure)

    def _principal(self, request: Request, cookie: SessionCookie) -> Principal | None:
        """Return who asks: by the session, or anybody if the server needs no token. None if they must log in."""
        found = self.parts.sessions.find(cookie.value) if cookie.value else None
        if found is None:
            try:
                found = self.context.guard.admit(None, peer=request.peer)
            except NotAdmitted:
                return None
        request.connection.admit()
        request.record.principal = found
        return found

    def _check_origin(self, request: Request) -> None:
        """Raise Refused if another site's page sends the request."""
        origin = request.header(b"origin")
        if origin is None and request.method in _READS:
            return
        own = request.header(b"host") or ""
        if (
            origin != self.parts.public_origin
            and urlsplit(origin or "").netloc.lower() != own.lower()
        ):
            raise Refused(403, "only pages of this server may use the web interface")

    def _check_form_token(self, request: Request, cookie: SessionCookie, form: Fields) -> None:
        given = request.header(FORM_TOKEN_HEADER) or form.get(FORM_TOKEN_FIELD)
        if not self.parts.sessions.is_form_token(cookie.value, given):
            raise Refused(403, "the page is out of date: reload it and try again")

    def _to_login(self, request: Request, path: str) -> Response:
        if _is_fragment(request):
            return Response(status=401, headers={"hx-refresh": "true"})
        here = f"{self.root}{path}" + (
            f"?{request.query.decode('latin-1')}" if request.query else ""
        )
        if request.header(b"sec-fetch-site") == "cross-site" and request.method in _READS:
            # A browser sends the cookie of a session only if one of our pages leads here.
            return html(self.templates.render("parts/bounce.html", Page(self, NOBODY), to=here))
        return redirect(
            Page(self, NOBODY).url("/login", to=here if request.method in _READS else "")
        )


def _status(exc: PolymniaError) -> int:
    return next(status for kind, status in _STATUSES if isinstance(exc, kind))


def _is_fragment(request: Request) -> bool:
    """Return True if htmx asks for a part of a page."""
    return (
        request.header(b"hx-request") == "true"
        and request.header(b"hx-history-restore-request") != "true"
    )
