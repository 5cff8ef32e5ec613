"""One request as a page sees it: who asks, in which workspace, what was sent, and the ways to answer."""

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import NoWorkspace
from polymnia.model import Capability, Principal, join_actor
from polymnia.web.forms import Fields
from polymnia.web.login import NO_COOKIE, SessionCookie
from polymnia.web.response import Response, html, redirect
from polymnia.web.routes import PageSpec
from polymnia.web.toasts import Toast

if TYPE_CHECKING:
    from polymnia.web.site import Site
    from polymnia.web.uploads import Upload

# The most rows that a page shows.
ROWS = 50
# The client in the history of changes that people make in the web interface.
CLIENT = "polymnia ui"
WORKSPACE, TOAST = "w", "toast"


class Page:
    """A request to a page. Everything here may block: pages run on worker threads."""

    def __init__(
        self,
        site: "Site",
        principal: Principal,
        *,
        spec: PageSpec | None = None,
        path: str = "",
        query: Fields | None = None,
        form: Fields | None = None,
        upload: "Upload | None" = None,
        cookie: SessionCookie = NO_COOKIE,
        is_fragment: bool = False,
        peer: str = "",
        came_from: str = "",
    ) -> None:
        """`is_fragment` means that htmx asks for a part of the page. `path` is below /ui.

        `came_from` is the address of the page with the link or form.
        """
        self.site = site
        self.principal = principal
        self.spec = spec
        self.path = path
        self.query = query or Fields([])
        self.form = form or Fields([])
        self.upload = upload
        self.cookie = cookie
        self.is_fragment = is_fragment
        self.peer = peer
        self._came_from = came_from

    def may(self, needed: Capability) -> bool:
        """Return True if the user has the capability."""
        return self.principal.may(needed)

    @property
    def form_token(self) -> str:
        """The token that every form of this user must send."""
        return self.site.parts.sessions.form_token(self.cookie.value)

    def log_in(self, principal: Principal) -> dict[str, str]:
        """Open a session for another principal, who uses this page from now on. Return the headers to send."""
        self.principal = principal
        self.cookie = replace(self.cookie, value=self.site.parts.sessions.open(principal))
        return self.cookie.set(self.cookie.value)

    @property
    def by(self) -> str:
        """How changes of this user are signed."""
        return join_actor(CLIENT, self.principal.name)

    @cached_property
    def workspaces(self) -> list[str]:
        """The active workspaces that the user may enter, by name."""
        found = self.site.parts.workspaces.find_all("active")
        return [each.name for each in found if self.principal.enters(each.name)]

    @cached_property
    def workspace(self) -> str:
        """The chosen workspace: the one in the address, the server's, or the first. Raise NoWorkspace, NotAllowed."""
        named = self.query.get(WORKSPACE) or self.form.get(WORKSPACE)
        if named:
            self.principal.require_entry(named)
            return named
        first = self.default_workspace
        if first is None:
            raise NoWorkspace("there is no workspace yet: the first agent that writes creates one")
        return first

    @cached_property
    def default_workspace(self) -> str | None:
        """The workspace for addresses that name none."""
        preferred = self.site.parts.workspace
        return preferred if preferred in self.workspaces else next(iter(self.workspaces), None)

    @property
    def memory(self) -> Memory:
        """The memory of the chosen workspace. Raise NoWorkspace, NotAllowed, WorkspaceNotFound, WorkspaceArchived."""
        return self.memory_of(self.workspace)

    def memory_of(self, workspace: str) -> Memory:
        """Return the memory of a workspace that the user may enter."""
        self.principal.require_entry(workspace)
        return self.site.parts.workspaces.memory(workspace)

    def url(self, path: str, **fields: Any) -> str:
        """Return the address of a page in the chosen workspace. Empty fields and None are left out."""
        pairs: list[tuple[str, str]] = []
        for name, value in fields.items():
            values = value if isinstance(value, list | tuple) else [value]
            pairs += [(name, str(each)) for each in values if each is not None and each != ""]
        if WORKSPACE not in fields and self.chosen not in (None, self.default_workspace):
            pairs.append((WORKSPACE, str(self.chosen)))
        return f"{self.site.root}{path}" + (f"?{urlencode(pairs)}" if pairs else "")

    @property
    def chosen(self) -> str | None:
        """The workspace in the address if the user may enter it, else the default one."""
        named = self.query.get(WORKSPACE) or self.form.get(WORKSPACE)
        return named if named and self.principal.enters(named) else self.default_workspace

    def url_with(self, **fields: Any) -> str:
        """Return the address of this page with some fields of its query changed. None removes a field."""
        kept = {
            name: self.query.all(name)
            for name, _ in self.query.pairs()
            if name not in (TOAST, *fields)
        }
        return self.url(self.path, **kept, **fields)

    def query_fields(self, *names: str) -> dict[str, list[str]]:
        """Return the values that the address has for some fields, for another address."""
        return {name: self.query.all(name) for name in names if name in self.query}

    @property
    def back(self) -> str:
        """The address of the page that the user came from, or of the first page."""
        parts = urlsplit(self._came_from)
        if not parts.path.startswith(f"{self.site.root}/"):
            return self.url("/")
        kept = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != TOAST]
        return parts.path + (f"?{urlencode(kept)}" if kept else "")

    def own_address(self, address: str) -> str:
        """Return the address if it is a page of this site, else that of the first page."""
        is_own = (
            address.startswith(f"{self.site.root}/")
            and "\\" not in address
            and address.isprintable()
        )
        return address if is_own else self.url("/")

    def render(
        self, template: str, /, *, fragment: str = "", status: int = 200, **values: Any
    ) -> Response:
        """Return a whole page, or only the template of its part if htmx asks for that."""
        toast = self.site.toasts.take(self.query.get(TOAST)) if TOAST in self.query else None
        name = fragment if fragment and self.is_fragment else template
        return html(self.site.templates.render(name, self, toast=toast, **values), status=status)

    def done(self, toast: Toast | str, to: str, *, fragment: str = "", **values: Any) -> Response:
        """Answer a write: the template of the changed part with a toast, or a redirect to an address."""
        message = Toast(toast) if isinstance(toast, str) else toast
        if self.is_fragment and fragment:
            text = self.site.templates.render(fragment, self, **values)
            return html(
                text + self.site.templates.render("parts/toast_swap.html", self, toast=message)
            )
        joint = "&" if "?" in to else "?"
        url = f"{to}{joint}{TOAST}={self.site.toasts.put(message)}"
        # htmx would follow a redirect and swap a whole page into a part of one.
        return Response(headers={"hx-redirect": url}) if self.is_fragment else redirect(url)

    def toast(self, text: str, change: int = 0) -> Toast:
        """Return a message about a change in the chosen workspace."""
        return Toast(text, change, self.workspace)
