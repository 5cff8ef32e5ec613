"""One request as a page sees it: who asks, for which workspace, what was sent, how to answer."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NoWorkspace, PolymniaError
from polymnia.model import NOBODY, Capability, Principal, is_own_workspace, join_actor
from polymnia.transports.http.operations import UI_PATH

if TYPE_CHECKING:
    from polymnia.web.imports import Upload
    from polymnia.web.site import Site

T = TypeVar("T")

# The most rows that a page shows.
ROWS = 50
# The client in the history of changes that people make in the web interface.
CLIENT = "polymnia ui"
WORKSPACE, TOAST, FORM_TOKEN_FIELD = "w", "toast", "form_token"
# The key in a request's scope that holds the transport's request.
TRANSPORT = "polymnia.request"
# No inline script, style or eval; nothing from other hosts; no framing.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # `no-referrer` would make browsers send `Origin: null` with forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


class PageSpec(Struct, frozen=True, kw_only=True):
    """A row of the table of pages.

    `group` is its place in the navigation; a page without one is reached by links. Users without
    the capability `needs` do not see it. `in_tabs` puts it into the tab bar of phones.
    """

    key: str
    title: str
    path: str
    icon: str
    group: Literal["Memory", "Server", ""] = ""
    needs: Capability = "read"
    in_tabs: bool = False


class Handler(Struct, frozen=True, kw_only=True):
    """The function that answers a method and path below /ui.

    `run` blocks, so it runs on a worker thread. A public handler needs no login. One that takes
    files finds them in `page.upload`.
    """

    method: Literal["GET", "POST"]
    path: str
    needs: Capability
    run: "Callable[[Page], Response]"
    is_public: bool = False
    takes_files: bool = False


# Filled by the decorators below when the modules in `pages/` are imported.
HANDLERS: list[Handler] = []


def get(path: str, **options: Any) -> "Callable[[PageFunction], PageFunction]":
    """Make the function answer GET, which must not change anything and needs `read`."""
    return _handle("GET", path, **{"needs": "read", **options})


def post(path: str, **options: Any) -> "Callable[[PageFunction], PageFunction]":
    """Make the function answer POST, which needs `write` unless the options say otherwise."""
    return _handle("POST", path, **{"needs": "write", **options})


def _handle(method: Any, path: str, **options: Any) -> "Callable[[PageFunction], PageFunction]":
    def register(run: "PageFunction") -> "PageFunction":
        HANDLERS.append(Handler(method=method, path=path, run=run, **options))
        return run

    return register


class Fields(ImmutableMultiDict[str, str]):
    """The fields of a query or a form. A missing one is empty, or an error by its index."""

    def __getitem__(self, name: str) -> str:
        """Return a value. Raise BadInput if there is none."""
        if name not in self:
            raise BadInput(f"the field {name} is missing")
        return super().__getitem__(name)

    def get(self, key: Any, default: Any = "") -> Any:
        return self._dict.get(key, default)

    def choice(self, name: str, values: Sequence[T]) -> T:
        """Return a value that is one of some. Raise BadInput."""
        text = self[name]
        for value in values:
            if value == text:
                return value
        expected = ", ".join(map(str, values))
        raise BadInput(f"{name}: expected one of {expected}, got {text[:40]!r}")

    def number(self, name: str) -> int | None:
        """Return a whole number, or None if the field is missing or empty. Raise BadInput."""
        numbers = self.numbers(name)
        return numbers[-1] if numbers else None

    def numbers(self, name: str) -> list[int]:
        """Return the whole numbers of a repeated field, without empty ones. Raise BadInput."""
        numbers = []
        for value in self.getlist(name):
            text = value.strip()
            if text and not (text.isascii() and text.isdigit() and len(text) < 19):
                raise BadInput(f"{name}: expected a number, got {text[:40]!r}")
            if text:
                numbers.append(int(text))
        return numbers


def parse_fields(data: bytes) -> Fields:
    """Return the fields of a query or a form, with line feeds as line ends. Raise BadInput."""
    try:
        pairs = parse_qsl(
            data.decode("ascii"),
            keep_blank_values=True,
            # Starlette's parser replaces invalid bytes, which would change the user's text.
            errors="strict",
            max_num_fields=10_000,
            separator="&",
        )
    except ValueError as exc:
        raise BadInput("the form is not valid: expected URL-encoded UTF-8") from exc
    return Fields([(name, value.replace("\r\n", "\n")) for name, value in pairs])


class Toast(Struct, frozen=True):
    """What happened, and the changes that a button takes back together.

    The button says Redo if the change was itself an undo.
    """

    text: str
    changes: tuple[int, ...] = ()
    workspace: str = ""
    is_undo: bool = False


class Toasts:
    """Messages for the page after a redirect, by a key in its address. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: OrderedDict[str, Toast] = OrderedDict()

    def put(self, toast: Toast) -> str:
        """Keep a message and return its key."""
        key = secrets.token_urlsafe(9)
        with self._lock:
            self._waiting[key] = toast
            while len(self._waiting) > 1_000:
                self._waiting.popitem(last=False)
        return key

    def take(self, key: str) -> Toast | None:
        """Return a message once."""
        with self._lock:
            return self._waiting.pop(key, None)


class Page:
    """A request to a page. Everything here may block: pages run on worker threads."""

    def __init__(self, site: "Site", request: Request) -> None:
        self.site = site
        self.request = request
        self.path = request.scope["path"].removeprefix(UI_PATH) or "/"
        self.query = parse_fields(request.scope["query_string"])
        self.form = Fields()
        self.upload: Upload | None = None
        self.principal: Principal = NOBODY
        # Browsers send the cookies of a host to all its ports, so the name has the port.
        port = urlsplit(f"//{request.headers.get('host', '')}").port
        self.cookie_name = f"polymnia_{port or 'ui'}"
        self.session = request.cookies.get(self.cookie_name, "")
        self._came_from = (
            request.headers.get("hx-current-url") or request.headers.get("referer") or ""
        )

    @property
    def is_fragment(self) -> bool:
        """True if htmx asks for a part of the page."""
        headers = self.request.headers
        is_restored = headers.get("hx-history-restore-request") == "true"
        return headers.get("hx-request") == "true" and not is_restored

    @property
    def spec(self) -> PageSpec | None:
        """The row of this page in the table of pages; None for a page that only links lead to."""
        for spec in self.site.templates.pages:
            if self.path == spec.path or self.path.startswith(f"{spec.path}/"):
                return spec
        return None

    def may(self, needed: Capability) -> bool:
        """Return True if the user has the capability."""
        return self.principal.may(needed)

    @property
    def form_token(self) -> str:
        """The token that every form of this user must send."""
        return self.site.parts.sessions.form_token(self.session)

    def log_in(self, principal: Principal) -> None:
        """Open a session for the principal, who uses this page from now on."""
        self.principal = principal
        self.session = self.site.parts.sessions.open(principal)

    def set_cookie(self, response: Response) -> Response:
        """Let the browser keep the session until it is closed, out of reach of scripts."""
        response.set_cookie(
            self.cookie_name,
            self.session,
            path=self.site.root,
            httponly=True,
            samesite="strict",
            secure=self.site.parts.public_origin.startswith("https:"),
        )
        return response

    @property
    def by(self) -> str:
        """How changes of this user are signed."""
        return join_actor(CLIENT, self.principal.name)

    @cached_property
    def workspaces(self) -> list[str]:
        """The active workspaces that the user may enter, by name."""
        active = self.site.parts.workspaces.find_entered(self.principal.workspaces)
        return [workspace.name for workspace in active]

    @property
    def shared_workspaces(self) -> list[str]:
        """The workspaces that are not another person's own."""
        own = self.principal.own_workspace
        return [name for name in self.workspaces if name == own or not is_own_workspace(name)]

    @cached_property
    def workspace(self) -> str:
        """The chosen workspace: that in the address, the server's, or the first.

        Raise NoWorkspace, NotAllowed.
        """
        named = self._named_workspace
        if named:
            self.principal.require_entry(named)
            return named
        if self.default_workspace is None:
            raise NoWorkspace("there is no workspace yet: the first agent that writes creates one")
        return self.default_workspace

    @property
    def chosen(self) -> str | None:
        """The workspace in the address if the user may enter it, else the default one."""
        named = self._named_workspace
        return named if named and self.principal.enters(named) else self.default_workspace

    @property
    def _named_workspace(self) -> str:
        name: str = self.query.get(WORKSPACE) or self.form.get(WORKSPACE)
        return name

    @cached_property
    def default_workspace(self) -> str | None:
        """The workspace for addresses that name none."""
        preferred = self.principal.choose_workspace(self.site.parts.workspace)
        if preferred in self.workspaces:
            return preferred
        return next(iter(self.shared_workspaces or self.workspaces), None)

    @property
    def memory(self) -> Memory:
        """The memory of the chosen workspace.

        Raise NoWorkspace, NotAllowed, WorkspaceNotFound, WorkspaceArchived.
        """
        return self.memory_of(self.workspace)

    def memory_of(self, workspace: str) -> Memory:
        """Return the memory of a workspace that the user may enter."""
        self.principal.require_entry(workspace)
        return self.site.parts.workspaces.memory(workspace)

    def url(self, path: str, **fields: Any) -> str:
        """Return the address of a page in the chosen workspace, without empty fields."""
        pairs: list[tuple[str, str]] = []
        for name, value in fields.items():
            values = value if isinstance(value, list | tuple) else [value]
            pairs += [(name, str(item)) for item in values if item is not None and item != ""]
        if WORKSPACE not in fields and self.chosen not in (None, self.default_workspace):
            pairs.append((WORKSPACE, str(self.chosen)))
        return f"{self.site.root}{path}" + (f"?{urlencode(pairs)}" if pairs else "")

    def url_with(self, **fields: Any) -> str:
        """Return the address of this page with some fields changed. None removes a field."""
        kept = {name: self.query.getlist(name) for name in self.query if name != TOAST}
        return self.url(self.path, **{**kept, **fields})

    def query_fields(self, *names: str) -> dict[str, list[str]]:
        """Return the values that the address has for some fields, for another address."""
        return {name: self.query.getlist(name) for name in names if name in self.query}

    @property
    def back(self) -> str:
        """The address of the page that the user came from, or of the first page."""
        parts = urlsplit(self._came_from)
        if not parts.path.startswith(f"{self.site.root}/"):
            return self.url("/")
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        kept = [(name, value) for name, value in pairs if name != TOAST]
        return parts.path + (f"?{urlencode(kept)}" if kept else "")

    def own_address(self, address: str) -> str:
        """Return the address if it is a page of this site, else that of the first page."""
        starts_here = address.startswith(f"{self.site.root}/")
        # Browsers take a backslash for a slash, and //host leads to another site.
        is_plain = "\\" not in address and address.isprintable()
        return address if starts_here and is_plain else self.url("/")

    def render(
        self, template: str, /, *, fragment: str = "", status: int = 200, **values: Any
    ) -> Response:
        """Return a whole page, or only the template of its part if htmx asks for that."""
        toast = self.site.toasts.take(self.query.get(TOAST)) if TOAST in self.query else None
        name = fragment if fragment and self.is_fragment else template
        html = self.site.templates.render(name, self, toast=toast, **values)
        return HTMLResponse(html, status)

    def done(self, toast: Toast | str, to: str, *, fragment: str = "", **values: Any) -> Response:
        """Answer a write: the changed part with a toast, or a redirect to an address."""
        message = Toast(toast) if isinstance(toast, str) else toast
        if self.is_fragment and fragment:
            html = self.site.templates.render(fragment, self, **values)
            html += self.site.templates.render("parts/toast_swap.html", self, toast=message)
            return HTMLResponse(html, headers={"hx-trigger": "written"})
        joint = "&" if "?" in to else "?"
        return self.redirect(f"{to}{joint}{TOAST}={self.site.toasts.put(message)}")

    def redirect(self, url: str) -> Response:
        """Send the browser to another page, by GET."""
        if self.is_fragment:
            # htmx would follow a redirect and swap a whole page into a part of one.
            return Response(headers={"hx-redirect": url})
        return RedirectResponse(url, 303)

    def toast(self, text: str, *changes: int) -> Toast:
        """Return a message about changes in the chosen workspace. 0 means no change."""
        return Toast(text, tuple(change for change in changes if change), self.workspace)

    @cached_property
    def findings_count(self) -> int:
        """How many findings of Curation wait for this user, as far as they are computed."""
        if not self.may("write") or not self.chosen:
            return 0
        try:
            memory = self.memory_of(self.chosen)
            scan, _, _ = self.site.findings.latest(memory, is_badge=True)
            dismissed = self.site.state.read(self.chosen).dismissed
        except PolymniaError:  # the page itself says what is wrong with the workspace
            return 0
        return scan.count({tuple(key) for key in dismissed}) if scan else 0


PageFunction = Callable[[Page], Response]
