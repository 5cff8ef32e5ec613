"""Check the official Python SDK on the workspace dialect.

Every tool over HTTP, in both eras, and over SSE.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.dialects.workspace import CALLS, RETURNS, TEAM, check_shape, prepare_workspaces
from tests.embedders.ollama import serve_ollama
from tests.processes import TIMEOUT_S
from tests.transports.process import POLYMNIA, Process
from tests.transports.web import Web

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

T = TypeVar("T")
MODERN = "2026-07-28"
Talk = Callable[[str | None, Callable[[Client], Awaitable[Any]]], Any]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Run a server over a directory with an embedded workspace, and yield its address."""
    with serve_ollama() as ollama:
        embedder = f"ollama:bag@{ollama.url}"
        store = prepare_workspaces(f"{tmp_path}/data/", embedder, TEAM)
        options = (
            "--dialect",
            "workspace",
            "--transport",
            "http",
            "--port",
            "0",
            "--embedder",
            embedder,
        )
        process = Process((*POLYMNIA, store, *options), tmp_path, stdin=DEVNULL, stdout=DEVNULL)
        yield Web(process).host
        process.end()


@pytest.fixture(
    params=[("http", "legacy"), ("http", MODERN), ("sse", "legacy")], ids=lambda way: "-".join(way)
)
def talk(request: pytest.FixtureRequest, host: str) -> Talk:
    """Return a function that connects to a workspace, or to none, and runs a conversation."""
    transport, mode = request.param

    def talking(workspace: str | None, conversation: Callable[[Client], Awaitable[T]]) -> T:
        headers = {"X-Memory-Workspace": workspace} if workspace else {}

        async def connected() -> T:
            way: AbstractAsyncContextManager[Any] = (
                sse_client(f"http://{host}/sse", headers=headers)
                if transport == "sse"
                else streamable(f"http://{host}/mcp", headers)
            )
            async with Client(way, mode=mode, read_timeout_seconds=TIMEOUT_S) as client:
                return await conversation(client)

        return anyio.run(connected)

    return talking


@asynccontextmanager
async def streamable(url: str, headers: dict[str, str]) -> AsyncIterator[Any]:
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def test_every_tool_returns_what_the_specification_says(talk: Talk) -> None:
    async def conversation(client: Client) -> list[tuple[str, Any]]:
        await client.list_tools()  # the SDK checks answers against the schemas it has seen
        results = []
        for tool, arguments in CALLS:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, (tool, result.content)
            results.append((tool, result.structured_content))
        return results

    results = talk(TEAM, conversation)
    assert {tool for tool, _ in results} == set(RETURNS)
    for tool, structured in results:
        value = structured["result"] if isinstance(RETURNS[tool], list) else structured
        check_shape(value, RETURNS[tool], tool)


@pytest.mark.parametrize(
    ("workspace", "problem"),
    [
        (None, "no workspace selected: send its name"),
        ("unknown", "there is no workspace 'unknown'"),
    ],
)
def test_a_missing_or_unknown_workspace_is_an_error_that_the_model_reads(
    talk: Talk, workspace: str | None, problem: str
) -> None:
    async def conversation(client: Client) -> tuple[bool, str]:
        result = await client.call_tool("get_stats", {})
        return bool(result.is_error), getattr(result.content[0], "text", "")

    is_error, text = talk(workspace, conversation)
    assert is_error
    assert text.startswith(problem)


def test_the_tools_are_listed_without_a_workspace(talk: Talk) -> None:
    async def conversation(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    assert talk(None, conversation) == set(RETURNS)
