"""The paths of a server, put together: every dialect it speaks, and what is around them."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from polymnia.errors import Refused
from polymnia.mcp.jsonrpc import encode
from polymnia.mcp.server import Server
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.legacy import Legacy
from polymnia.transports.http.operations import App, Operations
from polymnia.transports.http.streamable import Streamable
from polymnia.transports.http.visit import Receive, Send, Visit

METADATA_PATH = "/.well-known/oauth-protected-resource"
_OUR_HEADERS = (
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "X-Memory-Workspace",
    "Last-Event-ID",
)


def make_app(
    servers: Mapping[str, Server],
    chosen: str,
    desk: Desk,
    *,
    check: Callable[[], None],
    metrics: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> App:
    """The ASGI application: the chosen dialect at /mcp and /sse, each by its name at /NAME/mcp and /NAME/sse."""
    routes = _dialect_routes("", servers[chosen], desk)
    for name, server in servers.items():
        routes += _dialect_routes(f"/{name}", server, desk)
    if metadata is not None:
        routes += _metadata_routes(metadata, list(servers))
    app = Starlette(routes=[*routes, Route("/{path:path}", _Nowhere(servers))], middleware=_cors(desk))
    return Operations(app, desk, check, metrics=metrics, paths=[each.path for each in routes])


def _dialect_routes(prefix: str, server: Server, desk: Desk) -> list[Route]:
    streamable, legacy = Streamable(server, desk), Legacy(server, desk, f"{prefix}/sse")
    return [
        Route(f"{prefix}/mcp", streamable),
        Route(f"{prefix}/mcp/", streamable),
        Route(f"{prefix}/sse", legacy),
        Route(f"{prefix}/sse/messages", legacy),
        Route(f"{prefix}/sse/messages/", legacy),
    ]


def _metadata_routes(metadata: Mapping[str, Any], names: list[str]) -> list[Route]:
    """Each protected path says of itself where to get a token: clients refuse a document about another."""
    base = str(metadata["resource"]).removesuffix("/mcp")
    paths = [f"{prefix}{end}" for prefix in ("", *(f"/{name}" for name in names)) for end in ("/mcp", "/sse")]
    own = [Route(METADATA_PATH + path, _Document({**metadata, "resource": base + path})) for path in paths]
    return [Route(METADATA_PATH, _Document(metadata)), *own]


def _cors(desk: Desk) -> list[Middleware]:
    """Pages may read answers only where their origins were named."""
    if not desk.gate.origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=sorted(desk.gate.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", *_OUR_HEADERS],
            expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
        )
    ]


class _Document:
    """A JSON document anybody may read."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._body = encode(contents)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        await Visit(scope, receive, send).answer(200, self._body, {"access-control-allow-origin": "*"})


class _Nowhere:
    """Every other path: says where the memory is."""

    def __init__(self, servers: Mapping[str, Server]) -> None:
        paths = ["/mcp", "/sse", *(f"/{name}/mcp" for name in servers)]
        self._message = f"there is nothing here; this server speaks MCP at {', '.join(paths)}"

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        await Visit(scope, receive, send).refuse(Refused(404, self._message))
