"""Check the official Python SDK over each of its transports, in both eras of the protocol."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, ServerEvent
from mcp.types import TextResourceContents
from pydantic import BaseModel

from tests.processes import TIMEOUT_S

from . import claims
from .conversation import CALLS, GRAPH_URI, JSON, WRITES, Call
from .python_sdk import MODERN, NEGOTIATES, Announcements, talk
from .server import NewPlace
from .transcript import Transcript, Watch, parse_transcript

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture(scope="module", params=NEGOTIATES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def transcript(new_place: NewPlace, mode: str) -> Transcript:
    return talk(new_place(), mode, play)


@pytest.fixture(scope="module")
def watch(new_place: NewPlace, mode: str) -> Watch:
    announced = Announcements()
    return talk(new_place(), mode, lambda client: watch_writes(client, announced), announced)


def test_the_client_negotiates_its_newest_revision(transcript: Transcript, mode: str) -> None:
    assert transcript.revision == NEGOTIATES[mode]


@pytest.mark.parametrize("claim", claims.ABOUT_A_CONVERSATION)
def test_a_conversation(claim: Callable[[Transcript], None], transcript: Transcript) -> None:
    claim(transcript)


@pytest.mark.parametrize("claim", claims.ABOUT_A_SUBSCRIPTION)
def test_a_subscription(claim: Callable[[Watch], None], watch: Watch) -> None:
    claim(watch)


def test_a_resource_shows_a_write_between_two_reads(new_place: NewPlace, mode: str) -> None:
    first, second = talk(new_place(), mode, read_around_a_write)
    assert first != second


def test_a_listener_is_granted_the_resource_that_it_requests(new_place: NewPlace) -> None:
    assert talk(new_place(), MODERN, granted_resources) == [GRAPH_URI]


def test_a_listener_receives_changes(new_place: NewPlace) -> None:
    assert talk(new_place(), MODERN, first_event) == ResourceUpdated(GRAPH_URI)


async def play(client: Client) -> Transcript:
    return parse_transcript(
        {
            "revision": client.protocol_version,
            "tools": dump_all((await client.list_tools()).tools),
            "replies": dump_all(
                [await client.call_tool(call.tool, call.arguments) for call in CALLS]
            ),
            "resources": dump_all((await client.list_resources()).resources),
            "contents": dump_all((await client.read_resource(GRAPH_URI)).contents),
        }
    )


async def watch_writes(client: Client, announced: Announcements) -> Watch:
    before, during, after = WRITES
    unasked = await announced_by(client, announced, before)
    async with subscribed(client):
        await client.call_tool(during.tool, during.arguments)
        with anyio.fail_after(TIMEOUT_S):
            await announced.first.wait()
    await round_trip(client)  # leaving only schedules the SDK's cancellation; this sends it
    asked = announced.take()
    return Watch(unasked, asked, await announced_by(client, announced, after))


async def announced_by(client: Client, announced: Announcements, write: Call) -> tuple[str, ...]:
    """Return the updates announced between a write and the reply to the next request."""
    await client.call_tool(write.tool, write.arguments)
    await round_trip(client)
    return announced.take()


async def round_trip(client: Client) -> None:
    """Wait until everything that the server has sent so far has arrived."""
    await client.list_tools(cache_mode="bypass")


def subscribed(client: Client) -> AbstractAsyncContextManager[object]:
    if client.protocol_version == MODERN:
        return client.listen(resource_subscriptions=[GRAPH_URI])
    return subscribed_by_request(client)


@asynccontextmanager
async def subscribed_by_request(client: Client) -> AsyncIterator[None]:
    await client.subscribe_resource(GRAPH_URI)
    yield
    await client.unsubscribe_resource(GRAPH_URI)


async def read_around_a_write(client: Client) -> tuple[str, str]:
    first = await graph_text(client)
    await client.call_tool(WRITES[0].tool, WRITES[0].arguments)
    return first, await graph_text(client)


async def graph_text(client: Client) -> str:
    [content] = (await client.read_resource(GRAPH_URI)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def granted_resources(client: Client) -> list[str] | None:
    async with client.listen(resource_subscriptions=[GRAPH_URI]) as subscription:
        return subscription.honored.resource_subscriptions


async def first_event(client: Client) -> ServerEvent:
    async with client.listen(resource_subscriptions=[GRAPH_URI]) as subscription:
        await client.call_tool(WRITES[0].tool, WRITES[0].arguments)
        with anyio.fail_after(TIMEOUT_S):
            return await anext(subscription)


def dump_all(values: Sequence[BaseModel]) -> list[JSON]:
    return [_dump(value) for value in values]


def _dump(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
