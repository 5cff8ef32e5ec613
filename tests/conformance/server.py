"""The server the suites are pointed at: their dialect behind the real HTTP transport."""

import sys

from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import OneWorkspace
from polymnia.mcp.server import Server
from polymnia.model import OWNER
from polymnia.stores.memory import MemoryStore
from polymnia.transports.http.gate import Gate
from polymnia.transports.http.serve import Options, listen, serve_http
from tests.conformance.dialect import CONFORMING


def main() -> None:
    server = Server(CONFORMING, OneWorkspace(Memory(MemoryStore())))
    listener = listen("127.0.0.1", 0)
    print(f"serving {CONFORMING.name} at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    gate = Gate(admit=lambda token: OWNER)
    serve_http({CONFORMING.name: server}, CONFORMING.name, [listener], gate, Options(limit=1 << 20), check=server.check)


if __name__ == "__main__":
    main()
