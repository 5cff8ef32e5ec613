"""The routes of a server: its dialects, metadata for clients, health checks, the web interface."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from polymnia.auth.grants import Grants
from polymnia.errors import Refused
from polymnia.mcp.server import Server
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.endpoint import Streamable
from polymnia.transports.http.legacy_sse import LegacySse
from polymnia.transports.http.oauth import metadata_routes, server_routes
from polymnia.transports.http.operations import UI_PATH, AccessLog, Metrics, operator_routes
from polymnia.transports.http.request import HttpRequest

_OUR_HEADERS = (
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "X-Memory-Workspace",
    "Last-Event-ID",
    "X-Request-Id",
)


def make_app(
    servers: Mapping[str, Server],
    chosen: str,
    context: HttpContext,
    *,
    check: Callable[[], None],
    shows_metrics: bool = False,
    provider: Mapping[str, Any] | None = None,
    grants: Grants | None = None,
    store: str = "",
    ui: ASGIApp | None = None,
) -> ASGIApp:
    """Return the ASGI application.

    The chosen dialect is at /mcp and /sse, every dialect at /NAME/mcp and /NAME/sse, and the web
    interface `ui` at /ui. `check` raises if the store cannot be read. Clients log in at an identity
    `provider`, or at our own authorization server, which gives out `grants`.
    """
    routes = _dialect_routes("", servers[chosen], context)
    for name, server in servers.items():
        routes += _dialect_routes(f"/{name}", server, context)
    dialect_paths = {route.path for route in routes}
    prefixes = ["", *(f"/{name}" for name in servers)]
    protected = [f"{prefix}{path}" for prefix in prefixes for path in ("/mcp", "/sse")]
    routes += metadata_routes(context, provider, grants, protected)
    if grants is not None:
        routes += server_routes(context, grants)
    ui_url = f"{context.public_path}{UI_PATH}/" if ui else ""
    paths = ["/mcp", "/sse", *(f"/{name}/mcp" for name in servers)]
    not_found: ASGIApp = _NotFound(paths, ui_url)
    known_paths = frozenset(route.path for route in routes)
    if context.guard.origins:
        # Pages of these origins may read the responses.
        allow_origin = partial(
            CORSMiddleware,
            allow_origins=sorted(context.guard.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", *_OUR_HEADERS],
            expose_headers=["Mcp-Session-Id", "WWW-Authenticate", "X-Request-Id"],
        )
        routes = [Route(route.path, allow_origin(route.app)) for route in routes]
        not_found = allow_origin(not_found)
    tools = {name for server in servers.values() for name in server.dialect.tools}
    metrics = Metrics(context, tools, store, servers[chosen])
    quiet = operator_routes(context, check, metrics if shows_metrics else None)
    if ui is not None:
        routes += [Route(UI_PATH, ui), Route(UI_PATH + "/{page:path}", ui)]
    return AccessLog(
        Router([*routes, *quiet], default=not_found, redirect_slashes=False),
        context,
        metrics,
        endpoints={route.path: route.app for route in routes if route.path in dialect_paths},
        known_paths=known_paths,
        quiet_paths=frozenset(route.path for route in quiet),
    )


def _dialect_routes(prefix: str, server: Server, context: HttpContext) -> list[Route]:
    streamable, legacy = Streamable(server, context), LegacySse(server, context, f"{prefix}/sse")
    return [
        Route(f"{prefix}/mcp", streamable),
        Route(f"{prefix}/mcp/", streamable),
        Route(f"{prefix}/sse", legacy),
        Route(f"{prefix}/sse/messages", legacy),
        Route(f"{prefix}/sse/messages/", legacy),
    ]


class _NotFound:
    """Answers every other path with the paths of the endpoints."""

    def __init__(self, paths: list[str], ui_url: str) -> None:
        self._message = f"nothing is here; this server speaks MCP at {', '.join(paths)}"
        self._ui_url = ui_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        # A person who types the server's name looks for the web interface.
        is_browser = b"text/html" in request.fields.get(b"accept", b"")
        if self._ui_url and is_browser and request.path == "/":
            await request.respond(303, headers={"location": self._ui_url})
            return
        await request.refuse(Refused(404, self._message))
