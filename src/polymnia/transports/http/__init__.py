"""MCP over HTTP: streamable HTTP of both eras, legacy SSE, health checks and metrics."""
