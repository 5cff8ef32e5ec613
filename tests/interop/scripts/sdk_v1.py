"""Plays the conversation asked for on stdin through the first official SDK and prints what was
heard.

It runs in a virtual environment of its own, which holds `mcp` 1.x, so it imports nothing from the
tests.
"""

import json
import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl, BaseModel

JSON = dict[str, Any]


class Announcements:
    """The URIs of updated resources so far, and the moment of the first."""

    def __init__(self) -> None:
        self.first = anyio.Event()
        self._uris: list[str] = []

    async def __call__(self, message: object) -> None:
        notification = getattr(message, "root", None)
        if isinstance(notification, types.ResourceUpdatedNotification):
            self._uris.append(str(notification.params.uri))
            self.first.set()

    def taken(self) -> list[str]:
        taken, self._uris = self._uris, []
        return taken


async def run(request: JSON) -> JSON:
    announced = Announcements()
    types.LATEST_PROTOCOL_VERSION = request[
        "mode"
    ]  # the SDK asks for no other revision than its newest
    async with (
        way_to(request["server"]) as (read, write, *_),
        ClientSession(read, write, message_handler=announced) as session,
    ):
        shaken = await session.initialize()
        if request["task"] == "watch":
            return await watch(session, announced, request)
        if request["task"] == "count":
            return await count(session, request)
        return {"revision": shaken.protocolVersion, **await play(session, request)}


def way_to(server: JSON) -> Any:
    if server["transport"] == "stdio":
        command, *args = server["command"]
        return stdio_client(StdioServerParameters(command=command, args=args))
    client = sse_client if server["transport"] == "sse" else streamablehttp_client
    return client(
        server["url"],
        headers={"Authorization": f"Bearer {server['token']}"} if server["token"] else {},
    )


async def play(session: ClientSession, request: JSON) -> JSON:
    return {
        "tools": dumped((await session.list_tools()).tools),
        "replies": dumped([await call(session, item) for item in request["calls"]]),
        "resources": dumped((await session.list_resources()).resources),
        "contents": dumped((await session.read_resource(AnyUrl(request["uri"]))).contents),
    }


async def watch(session: ClientSession, announced: Announcements, request: JSON) -> JSON:
    uri = AnyUrl(request["uri"])
    before, during, after = request["writes"]
    heard = {"before": await announced_by(session, announced, before)}
    await session.subscribe_resource(uri)
    await call(session, during)
    with anyio.fail_after(request["patience"]):
        await announced.first.wait()
    await session.list_tools()
    heard["during"] = announced.taken()
    await session.unsubscribe_resource(uri)
    heard["after"] = await announced_by(session, announced, after)
    return heard


async def count(session: ClientSession, request: JSON) -> JSON:
    """What a call reports on its way, which it goes on when it hears that it was heard."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        tasks.start_soon(session.call_tool, "go_on", {})

    async with anyio.create_task_group() as tasks:
        await session.call_tool("count", {"steps": request["steps"]}, progress_callback=report)
    return {"heard": heard}


async def announced_by(session: ClientSession, announced: Announcements, write: JSON) -> list[str]:
    """What a write announces before the reply to the next request."""
    await call(session, write)
    await session.list_tools()
    return announced.taken()


async def call(session: ClientSession, call: JSON) -> types.CallToolResult:
    return await session.call_tool(call["tool"], call["arguments"])


def dumped(values: list[Any]) -> list[JSON]:
    return [_dump(value) for value in values]


def _dump(value: BaseModel) -> JSON:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


if __name__ == "__main__":
    print(json.dumps(anyio.run(run, json.load(sys.stdin))))
