"""The yardstick for HTTP: a bare Starlette application that returns the body of a request."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def echo(request: Request) -> Response:
    """Return the body unchanged."""
    return Response(await request.body(), media_type="application/json")


if __name__ == "__main__":
    app = Starlette(routes=[Route("/mcp", echo, methods=["POST"])])
    uvicorn.run(app, port=int(sys.argv[1]), http="httptools", access_log=False, log_level="error")
