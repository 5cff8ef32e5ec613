"""A minimal server on the official SDK, with one tool that returns a constant."""

import logging
import sys

from mcp.server.mcpserver import MCPServer

from bench.floor import GRAPH

server = MCPServer("canned")


@server.tool()
def open_nodes(names: list[str]) -> dict[str, object]:
    """Always the same graph."""
    return GRAPH


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    server.run("streamable-http", port=int(sys.argv[1]), json_response=True)
