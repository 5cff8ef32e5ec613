"""MCP clients: where each keeps its configuration, and how to add a server to it."""
