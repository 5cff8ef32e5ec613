"""A dialect of the tests behind the real HTTP transport, in a process that prints its address."""

import sys

from polymnia.dialects.base import Dialect
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.server import Server
from polymnia.model import OWNER
from polymnia.transports.address import listen
from polymnia.transports.http.guard import RequestGuard
from polymnia.transports.http.serve import HttpOptions, serve_http
from tests.oracle import MemoryStore


def serve(dialect: Dialect, memory: Memory | None = None) -> None:
    """Serve until a signal asks to stop."""
    server = Server(dialect, one_workspace(memory or Memory(MemoryStore())))
    listener = listen("127.0.0.1", 0)
    print(
        f"serving {dialect.name} at http://127.0.0.1:{listener.getsockname()[1]}/mcp",
        file=sys.stderr,
        flush=True,
    )
    guard = RequestGuard(admit=lambda token, peer, resource: OWNER)
    serve_http(
        {dialect.name: server},
        dialect.name,
        [listener],
        guard,
        HttpOptions(limit=1 << 20),
        check=server.check,
    )
