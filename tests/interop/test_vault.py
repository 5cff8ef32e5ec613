"""Check the official Python SDK on the vault dialect, over stdio and HTTP, in both eras of the
protocol.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import IncomingMessage
from mcp.types import (
    ResourceListChangedNotification,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    TextResourceContents,
)

from tests.processes import TIMEOUT_S
from tests.transports.process import POLYMNIA, Process
from tests.transports.web import Web

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

JSON = dict[str, Any]
T = TypeVar("T")
MODERN = "2026-07-28"
COMMAND = (*POLYMNIA[:-1], "--dialect", "vault")
VECTOR = [1.0, 0.0, 0.0]
# A stateless client names its session in each request.
NAMED: Any = {"polymnia/sessionId": "named"}
KEY_TEMPLATE = ResourceTemplateReference(type="ref/resource", uri="memory://vault/{key}")

Talk = Callable[[Callable[[Client], Awaitable[Any]]], Any]


class Heard:
    """The notifications so far."""

    def __init__(self) -> None:
        self.lists = 0
        self.updated: list[str] = []

    async def __call__(self, message: IncomingMessage) -> None:
        if isinstance(message, ResourceListChangedNotification):
            self.lists += 1
        if isinstance(message, ResourceUpdatedNotification):
            self.updated.append(message.params.uri)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture(params=["stdio", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StdioServerParameters | str]:
    """Run a server and yield how the SDK reaches it."""
    settings = {"POLYMNIA_EMBEDDING_DIMENSION": "3"}
    if request.param == "stdio":
        yield StdioServerParameters(
            command=COMMAND[0], args=list(COMMAND[1:]), env=settings, cwd=tmp_path
        )
        return
    command = (*COMMAND, "--transport", "http", "--port", "0")
    process = Process(command, tmp_path, stdin=DEVNULL, stdout=DEVNULL, **settings)
    yield f"http://{Web(process).host}/mcp"
    process.end()


@pytest.fixture(params=["legacy", MODERN])
def talk(request: pytest.FixtureRequest, place: StdioServerParameters | str, heard: Heard) -> Talk:
    """Return a function that connects and runs a conversation."""

    def talking(conversation: Callable[[Client], Awaitable[T]]) -> T:
        async def connected() -> T:
            async with Client(
                place, mode=request.param, message_handler=heard, read_timeout_seconds=TIMEOUT_S
            ) as client:
                return await conversation(client)

        return anyio.run(connected)

    return talking


async def done(client: Client, tool: str, **arguments: Any) -> JSON:
    """Call a tool and return its structured content, which the SDK has checked against the output
    schema.
    """
    result = await client.call_tool(tool, arguments, meta=NAMED)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def read(client: Client, uri: str) -> Any:
    [content] = (await client.read_resource(uri, meta=NAMED, cache_mode="bypass")).contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/json"
    return json.loads(content.text)


def test_the_tools_commit_search_and_prune(talk: Talk) -> None:
    async def conversation(client: Client) -> list[JSON]:
        await client.list_tools()  # the SDK checks answers against the schemas it has seen
        return [
            await done(
                client,
                "commit_memory",
                scope="vault",
                key="v",
                content="some word",
                embedding=VECTOR,
            ),
            await done(
                client, "commit_memory", scope="session", key="s", content="some word", tags=["t"]
            ),
            await done(client, "search_memories", query="word", query_embedding=VECTOR),
            await done(client, "search_memories", query="word", scope="session", tags=["t"]),
            await done(client, "prune_memory", scope="session"),
            await done(client, "prune_memory", scope="vault", key="v"),
            await done(client, "search_memories", query="word"),
        ]

    first, second, both, tagged, *pruned, nothing = talk(conversation)
    assert first == {"committed": True, "key": "v", "scope": "vault"}
    assert second == {"committed": True, "key": "s", "scope": "session"}
    assert {(result["key"], result["scope"]) for result in both["results"]} == {
        ("v", "vault"),
        ("s", "session"),
    }
    assert both["total_searched"] == 2
    assert [result["key"] for result in tagged["results"]] == ["s"]
    assert pruned == [{"pruned_count": 1}, {"pruned_count": 1}]
    assert nothing == {"results": [], "total_searched": 0}


def test_pruning_the_whole_vault_is_a_protocol_error(talk: Talk) -> None:
    async def conversation(client: Client) -> tuple[int, str]:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("prune_memory", {"scope": "vault"})
        return refused.value.error.code, refused.value.error.message

    assert talk(conversation) == (-32602, "Bulk vault prune requires at least one filter.")


def test_the_resources_can_be_read(talk: Talk) -> None:
    async def conversation(client: Client) -> list[Any]:
        for number in range(3):
            await done(client, "commit_memory", scope="vault", key=f"a/{number}", content="text")
        await done(
            client, "set_session_id", session_id="named"
        ) if client.protocol_version != MODERN else None
        await done(client, "commit_memory", scope="session", key="s", content="text")
        templates = (await client.list_resource_templates()).resource_templates
        completed = (
            await client.complete(KEY_TEMPLATE, {"name": "key", "value": "a/"})
        ).completion.values
        page = await read(client, "memory://vault?offset=1&limit=1")
        one = await read(client, "memory://vault/a%2F2")
        session = await read(client, "memory://session/named")
        return [
            len(await read(client, "memory://vault")),
            [item["key"] for item in page],
            (one["key"], one["scope"]),
            [item["key"] for item in session],
            [template.uri_template for template in templates],
            completed,
        ]

    count, page, one, session, templates, completed = talk(conversation)
    assert (count, page, one, session) == (3, ["a/1"], ("a/2", "vault"), ["s"])
    assert templates == [
        "memory://session/{session_id}",
        "memory://vault{?offset,limit}",
        "memory://vault/{key}",
    ]
    assert completed == ["a/0", "a/1", "a/2"]


def test_another_session_cannot_be_read(talk: Talk) -> None:
    async def conversation(client: Client) -> str:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("memory://session/somebody", meta=NAMED)
        return refused.value.error.message

    assert talk(conversation).startswith("a client may read only its own session")


def test_a_client_is_notified_of_what_it_subscribed_to(talk: Talk, heard: Heard) -> None:
    async def conversation(client: Client) -> None:
        if client.protocol_version == MODERN:
            wanted = client.listen(
                resource_subscriptions=["memory://vault/a"], resources_list_changed=True
            )
            async with wanted as subscription:
                await done(client, "commit_memory", scope="vault", key="a", content="text")
                with anyio.fail_after(TIMEOUT_S):
                    [await anext(subscription), await anext(subscription)]
            return
        await client.subscribe_resource("memory://vault/a")
        await done(client, "commit_memory", scope="vault", key="a", content="text")
        await done(client, "commit_memory", scope="vault", key="b", content="text")
        with anyio.fail_after(TIMEOUT_S):
            while heard.lists < 2:
                await client.send_ping()

    talk(conversation)
    assert set(heard.updated) == {"memory://vault/a"}
    assert heard.lists >= 1
