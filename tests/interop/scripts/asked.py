"""Talks to the servers named on stdin through a Python client that they may ask, and prints what
was heard.

`client` is `mcp`, the official SDK 2.x, or `fastmcp`. It may run in a virtual environment of its
own, so it imports nothing from the tests.
"""

import json
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

JSON = dict[str, Any]


class Answers:
    """The answers to the server's questions, by method, and what was asked."""

    def __init__(self, answers: JSON) -> None:
        self._answers = answers
        self.asked: list[JSON] = []

    def give(self, method: str, params: Any) -> JSON:
        """Note the question and return its answer."""
        told = (
            params.model_dump(mode="json", by_alias=True, exclude_none=True)
            if params is not None
            else {}
        )
        self.asked.append({"method": method, "params": told})
        answer: JSON = self._answers[method]
        return answer


def official(server: JSON, mode: str, answers: Answers) -> AbstractAsyncContextManager[Any]:
    """Return a client of the official SDK."""
    from mcp import Client, StdioServerParameters, types
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    async def elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult.model_validate(answers.give("elicitation/create", params))

    async def sample(context: Any, params: Any) -> Any:
        return types.CreateMessageResult.model_validate(
            answers.give("sampling/createMessage", params)
        )

    async def list_roots(context: Any) -> Any:
        return types.ListRootsResult.model_validate(answers.give("roots/list", None))

    ways = {
        "stdio": lambda: StdioServerParameters(
            command=server["command"][0], args=server["command"][1:]
        ),
        "http": lambda: streamable_http_client(server["url"]),
        "sse": lambda: sse_client(server["url"]),
    }
    return Client(
        ways[server["transport"]](),
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=list_roots,
    )


def fastmcp(server: JSON, mode: str, answers: Answers) -> AbstractAsyncContextManager[Any]:
    """Return fastmcp's client."""
    from fastmcp import Client
    from fastmcp.client.elicitation import ElicitResult
    from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

    async def elicit(message: str, response_type: Any, params: Any, context: Any) -> Any:
        answer = answers.give("elicitation/create", params)
        return ElicitResult(action=answer["action"], content=answer.get("content"))

    async def sample(messages: Any, params: Any, context: Any) -> str:
        text: str = answers.give("sampling/createMessage", params)["content"]["text"]
        return text

    async def list_roots(context: Any) -> list[str]:
        return [root["uri"] for root in answers.give("roots/list", None)["roots"]]

    ways = {
        "stdio": lambda: StdioTransport(
            server["command"][0], server["command"][1:], keep_alive=False
        ),
        "http": lambda: StreamableHttpTransport(server["url"]),
        "sse": lambda: SSETransport(server["url"]),
    }
    return Client(
        ways[server["transport"]](),
        mode=mode,
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=list_roots,
    )


# How each client is made, the method that calls a tool, and the argument that takes its progress.
CLIENTS = {
    "mcp": (official, "call_tool", "progress_callback"),
    "fastmcp": (fastmcp, "call_tool_mcp", "progress_handler"),
}


class Talk:
    """A connected client, and how it calls tools."""

    def __init__(self, client: Any, kind: str) -> None:
        _, method, self._progress = CLIENTS[kind]
        self._call = getattr(client, method)

    async def call(self, call: JSON, heard: Any = None) -> JSON:
        """Return the result of a tool."""
        given = {self._progress: heard} if heard else {}
        result = await self._call(call["tool"], call["arguments"], **given)
        told: JSON = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return told

    async def watch(self, watched: JSON) -> JSON:
        """Hear the progress of a call, then cancel it when it has begun."""
        progress: list[float] = []

        async def hear(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        await self.call(watched, hear)
        given = "an answer"
        with anyio.CancelScope() as scope:

            async def give_up(done: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await self.call(watched, give_up)
        if scope.cancelled_caught:
            given = "up"
        return {
            "progress": progress,
            "given": given,
            "after": await self.call({"tool": "history", "arguments": {}}),
        }


async def converse(request: JSON) -> JSON:
    """Talk to each server in turn."""
    heard = []
    for item in request["talks"]:
        answers = Answers(item["answers"])
        async with CLIENTS[request["client"]][0](
            item["server"], request["mode"], answers
        ) as client:
            talk = Talk(client, request["client"])
            replies = [await talk.call(call) for call in item["calls"]]
            watched = await talk.watch(item["watched"]) if item.get("watched") else {}
        heard.append({"asked": answers.asked, "replies": replies, **watched})
    return {"heard": heard}


if __name__ == "__main__":
    print(json.dumps(anyio.run(converse, json.load(sys.stdin))))
