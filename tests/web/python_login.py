"""Log in to the server at a URL with the official Python SDK, and call a tool.

It prints the address that a person has to open, and waits for the browser at its own redirect.
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.to_thread import run_sync
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl


class Memory:
    """What the SDK keeps between its steps."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Callback(HTTPServer):
    """Where the browser comes back."""

    query: dict[str, list[str]]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Callback)
        self.server.query = parse_qs(urlsplit(self.path).query)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"back in the program")


async def log_in(url: str) -> None:
    with Callback() as callback:
        redirect = AnyUrl(f"http://127.0.0.1:{callback.server_port}/callback")

        async def show(address: str) -> None:
            print(address, flush=True)

        async def wait() -> AuthorizationCodeResult:
            await run_sync(callback.handle_request)
            query = callback.query
            return AuthorizationCodeResult(
                code=query["code"][0], state=query["state"][0], iss=query["iss"][0]
            )

        metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=[redirect])
        provider = OAuthClientProvider(url, metadata, Memory(), show, wait)
        async with create_mcp_http_client(auth=provider) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport) as client:
                reply = await client.call_tool("read_graph", {})
        print(reply.model_dump_json())
        assert not reply.is_error


if __name__ == "__main__":
    anyio.run(log_in, sys.argv[1])
