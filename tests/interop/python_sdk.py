"""The official Python SDK.

Connecting to a server over each transport, in each mode of the client.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp.client.session import IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ResourceUpdatedNotification

from tests.processes import TIMEOUT_S

from .server import Place

MODERN = "2026-07-28"
NEGOTIATES = {"legacy": "2025-11-25", "auto": MODERN, MODERN: MODERN}
"""The revision that the client negotiates in each mode."""

T = TypeVar("T")


class Announcements:
    """The URIs of the updated resources so far, and an event for the first."""

    def __init__(self) -> None:
        self.first = anyio.Event()
        self._uris: list[str] = []

    async def __call__(self, message: IncomingMessage) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self._uris.append(message.params.uri)
            self.first.set()

    def take(self) -> tuple[str, ...]:
        taken, self._uris = self._uris, []
        return tuple(taken)


def talk(
    server: Place,
    mode: str,
    conversation: Callable[[Client], Awaitable[T]],
    announced: Announcements | None = None,
) -> T:
    """Connect to the server, run the conversation and disconnect."""

    async def connected() -> T:
        async with Client(
            transport_to(server),
            mode=mode,
            message_handler=announced,
            read_timeout_seconds=TIMEOUT_S,
        ) as client:
            return await conversation(client)

    return anyio.run(connected)


def transport_to(server: Place) -> StdioServerParameters | Transport:
    if server.transport == "stdio":
        return StdioServerParameters(command=server.command[0], args=list(server.command[1:]))
    return (
        sse_client(server.url, headers=authorization(server))
        if server.transport == "sse"
        else streamable(server)
    )


@asynccontextmanager
async def streamable(server: Place) -> AsyncIterator[Any]:
    async with (
        create_mcp_http_client(headers=authorization(server)) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams


def authorization(server: Place) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}"} if server.token else {}
