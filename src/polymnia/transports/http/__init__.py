"""MCP over HTTP: streamable HTTP of both eras, legacy SSE, and what operators need around them."""
