"""The web interface at /ui. Pages, Jinja2 and Starlette's routing load with the first request."""

from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from polymnia.auth.grants import Grants
    from polymnia.auth.people import People, WebSessions
    from polymnia.auth.provider import Provider
    from polymnia.auth.tokens import Tokens
    from polymnia.engine.facts.secrets import SecretRule
    from polymnia.engine.workspaces import Workspaces
    from polymnia.mcp.server import RateLimiter
    from polymnia.stores.contract import WebStateStore
    from polymnia.transports.http.context import HttpContext
    from polymnia.web.site import Site


class SiteParts(Struct, frozen=True, kw_only=True):
    """What the web interface shows and uses.

    `workspace` is where users start. `public_origin` is the origin of the public URL, or empty.
    Clients reach the server at `mcp_url`. `backups` is the folder for backups if it is not the
    usual one, and `secrets` says what an import does with keys and tokens. With `requires_login`
    (`polymnia ui`) the pages ask for a login even if there are no tokens, and end with the command.
    `state` is where a database keeps dismissed findings. `people` have accounts, or log
    in at the `provider`, and `grants` lets programs in, on servers with a public URL. `limiter`
    counts the calls of each token. Uploads are kept below `scratch`, which ends with the server.
    """

    workspaces: "Workspaces"
    workspace: str | None
    sessions: "WebSessions"
    tokens: "Tokens | None" = None
    people: "People | None" = None
    provider: "Provider | None" = None
    grants: "Grants | None" = None
    state: "WebStateStore | None" = None
    limiter: "RateLimiter | None" = None
    public_origin: str = ""
    store: str = ""
    backups: str = ""
    secrets: "SecretRule" = "warn"
    mcp_url: str = ""
    requires_login: bool = False
    scratch: str = ""


class WebInterface:
    """The endpoint of /ui. Most servers never get a request for it, so it loads with the first."""

    def __init__(self, parts: SiteParts, context: "HttpContext") -> None:
        self._parts = parts
        self._context = context
        self._lock = Lock()
        self._site: Site | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        from polymnia.transports.http.request import HttpRequest

        site = self._site
        if site is None:
            site = await self._context.run(self._load)
        await site(HttpRequest(scope, receive, send))

    def _load(self) -> "Site":
        from polymnia.web.site import Site

        with self._lock:  # two first requests must not make two sites
            if self._site is None:
                self._site = Site(self._parts, self._context)
            return self._site
