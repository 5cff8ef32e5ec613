"""The official Python SDK is asked by a real tool, before much is deleted.

Over every transport, in both eras.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from tests.processes import TIMEOUT_S, polymnia_command

from .python_sdk import transport_to
from .server import Place, place, running

ADA = {"name": "Ada", "type": "person", "facts": [f"fact {number}" for number in range(40)]}


@contextmanager
def served(store: Path, transport: str) -> Iterator[Place]:
    command = polymnia_command("serve", "--dialect", "native", "--store", str(store))
    if transport == "stdio":
        yield Place("stdio", command=command)
        return
    with running((*command, "--transport", "http", "--bind", "127.0.0.1:0")) as base:
        yield place(base, transport)


async def forget(server: Place, mode: str, *, agrees: bool) -> tuple[list[str], str]:
    """Forget Ada. Return what the user was asked, and what is still known."""
    asked: list[str] = []

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return (
            ElicitResult(action="accept", content={"confirmed": True})
            if agrees
            else ElicitResult(action="decline")
        )

    async with Client(
        transport_to(server), mode=mode, elicitation_callback=answer, read_timeout_seconds=TIMEOUT_S
    ) as client:
        await client.call_tool("remember", {"entities": [ADA]})
        await client.call_tool("forget", {"name": "Ada", "whole": True})
        found = await client.call_tool("open", {"names": ["Ada"]})
        return asked, str(found.content)


@pytest.mark.parametrize("agrees", [True, False], ids=["agrees", "declines"])
@pytest.mark.parametrize(
    ("transport", "mode"),
    [
        ("stdio", "legacy"),
        ("stdio", "auto"),
        ("http", "legacy"),
        ("http", "auto"),
        ("sse", "legacy"),
    ],
)
def test_the_user_is_asked_before_much_is_forgotten(
    tmp_path: Path, transport: str, mode: str, agrees: bool
) -> None:
    with served(tmp_path / "memory.db", transport) as server:
        asked, known = anyio.run(lambda: forget(server, mode, agrees=agrees))
    assert [item.startswith("Forget Ada") for item in asked] == [True]
    assert ("fact 1" in known) != agrees
