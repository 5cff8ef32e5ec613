"""The routes of a server: its dialects, metadata for clients, and the web interface."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from starlette.middleware.cors import CORSMiddleware

from polymnia.errors import Refused
from polymnia.mcp.message import encode
from polymnia.mcp.server import Server
from polymnia.transports.http.context import HttpContext
from polymnia.transports.http.legacy_sse import LegacySse
from polymnia.transports.http.operations import (
    UI_PATH,
    App,
    Endpoint,
    Metrics,
    Operations,
    Scope,
)
from polymnia.transports.http.request import Message, Receive, Request, Send
from polymnia.transports.http.streamable import Streamable

METADATA_PATH = "/.well-known/oauth-protected-resource"
# The key of a request in the scope that the middleware passes on.
_REQUEST = "polymnia.request"
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
    metadata: Mapping[str, Any] | None = None,
    store: str = "",
    ui: Endpoint | None = None,
) -> App:
    """Return the ASGI application.

    The chosen dialect is at /mcp and /sse, every dialect at /NAME/mcp and /NAME/sse, and the web
    interface `ui` at /ui.
    """
    routes = _dialect_routes("", servers[chosen], context)
    for name, server in servers.items():
        routes |= _dialect_routes(f"/{name}", server, context)
    if metadata is not None:
        routes |= _metadata_routes(metadata, list(servers))
    not_found: Endpoint = _NotFound(servers, f"{context.public_path}{UI_PATH}/" if ui else "")
    if context.guard.origins:
        routes = {path: _CrossOrigin(endpoint, context) for path, endpoint in routes.items()}
        not_found = _CrossOrigin(not_found, context)
    tools = {name for server in servers.values() for name in server.dialect.tools}
    metrics = Metrics(context, tools, store)
    return Operations(
        routes, not_found, context, metrics, check=check, shows_metrics=shows_metrics, ui=ui
    )


def _dialect_routes(prefix: str, server: Server, context: HttpContext) -> dict[str, Endpoint]:
    streamable, legacy = Streamable(server, context), LegacySse(server, context, f"{prefix}/sse")
    return {
        f"{prefix}/mcp": streamable,
        f"{prefix}/mcp/": streamable,
        f"{prefix}/sse": legacy,
        f"{prefix}/sse/messages": legacy,
        f"{prefix}/sse/messages/": legacy,
    }


def _metadata_routes(metadata: Mapping[str, Any], names: list[str]) -> dict[str, Endpoint]:
    """Return one document per protected path: clients refuse a document about another path."""
    routes: dict[str, Endpoint] = {METADATA_PATH: _Document(metadata)}
    base = str(metadata["resource"]).removesuffix("/mcp")
    for prefix in ["", *(f"/{name}" for name in names)]:
        for path in (f"{prefix}/mcp", f"{prefix}/sse"):
            routes[METADATA_PATH + path] = _Document({**metadata, "resource": base + path})
    return routes


class _CrossOrigin:
    """Lets pages of the allowed origins read the responses of an endpoint."""

    def __init__(self, endpoint: Endpoint, context: HttpContext) -> None:
        self._endpoint = endpoint
        self._middleware = cast(
            App,
            CORSMiddleware(
                cast(Any, self._answer),
                allow_origins=sorted(context.guard.origins),
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["Authorization", "Content-Type", *_OUR_HEADERS],
                expose_headers=["Mcp-Session-Id", "WWW-Authenticate", "X-Request-Id"],
            ),
        )

    async def __call__(self, request: Request) -> None:
        if b"origin" not in request.headers:
            await self._endpoint(request)
            return
        send = request.send

        async def note_status(message: Message) -> None:
            """Send a message. The middleware answers preflight requests itself."""
            request.record.status = message.get("status", request.record.status)
            await send(message)

        await self._middleware({**request.scope, _REQUEST: request}, request.receive, note_status)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the headers that the middleware adds."""
        request: Request = scope[_REQUEST]
        request.send = send
        await self._endpoint(request)


class _Document:
    """A JSON document that needs no token."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._body = encode(contents)

    async def __call__(self, request: Request) -> None:
        await request.respond(200, self._body, {"access-control-allow-origin": "*"})


class _NotFound:
    """Answers every other path with the paths of the endpoints."""

    def __init__(self, servers: Mapping[str, Server], ui_url: str) -> None:
        paths = ["/mcp", "/sse", *(f"/{name}/mcp" for name in servers)]
        self._message = f"nothing is here; this server speaks MCP at {', '.join(paths)}"
        self._ui_url = ui_url

    async def __call__(self, request: Request) -> None:
        # A person who types the server's name looks for the web interface.
        is_browser = b"text/html" in request.headers.get(b"accept", b"")
        if self._ui_url and is_browser and request.path == "/":
            await request.respond(303, headers={"location": self._ui_url})
            return
        await request.refuse(Refused(404, self._message))
