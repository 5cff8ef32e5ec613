"""The official Python SDK on `polymnia serve` without a dialect: a new user's questions, a session,
subscriptions.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from tests.dialects.trial import QUESTIONS, REMEMBERED
from tests.processes import TIMEOUT_S

from . import install
from .python_sdk import MODERN, Announcements

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

JSON = dict[str, Any]
MODES = ("legacy", MODERN)
MAX_LIST_TOKENS = 2_800
ADA, BRIEFING = "polymnia://entity/Ada", "polymnia://briefing"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git work tree; the user's data directory is beside it."""
    root = tmp_path / "my-app"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def talk(
    project: Path,
    mode: str,
    conversation: Callable[[Client], Awaitable[None]],
    *options: str,
    embedder: str = "none",
    announced: Announcements | None = None,
) -> None:
    server = polymnia(project, *options, embedder=embedder)

    async def connected() -> None:
        async with Client(
            server, mode=mode, message_handler=announced, read_timeout_seconds=TIMEOUT_S
        ) as client:
            await conversation(client)

    anyio.run(connected)


def polymnia(project: Path, *options: str, embedder: str = "none") -> StdioServerParameters:
    """Return how a client starts a server in the project."""
    home = str(project.parent)
    settings = {"HOME": home, "XDG_DATA_HOME": f"{home}/data", "POLYMNIA_EMBEDDER": embedder}
    environment = {**settings, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    arguments = ["-m", "polymnia", "serve", *options]
    return StdioServerParameters(
        command=sys.executable, args=arguments, cwd=project, env=environment
    )


async def ask(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def ask_by_meaning(client: Client, question: str) -> str:
    """Ask until the server has embedded the memory and the question; a note says if it has not."""
    with anyio.fail_after(TIMEOUT_S):
        while "embedded" in (reply := await ask(client, "recall", query=question)):
            pass
    return reply


def test_the_list_of_tools_has_at_most_2800_tokens(project: Path, node_packages: Path) -> None:
    listed: list[JSON] = []

    async def session(client: Client) -> None:
        tools = (await client.list_tools()).tools
        listed.extend(
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
        )

    talk(project, MODERN, session)
    assert len(listed) == 10
    script = [install.node(), str(node_packages / "count_tokens.mjs")]
    done = subprocess.run(
        script, input=json.dumps(listed), capture_output=True, text=True, check=True
    )
    counts = json.loads(done.stdout)
    assert set(counts) == {"claude", "o200k_base"}
    assert {name: count for name, count in counts.items() if not 0 < count <= MAX_LIST_TOKENS} == {}


@pytest.mark.parametrize("mode", MODES)
def test_a_new_users_questions_find_the_fact_first(project: Path, mode: str) -> None:
    firsts: dict[str, str] = {}

    async def trial(client: Client) -> None:
        await ask(client, "remember", entities=REMEMBERED)
        for question in QUESTIONS:
            firsts[question] = (await ask_by_meaning(client, question)).partition("  #")[2]

    talk(project, mode, trial, embedder="local")
    assert {
        question: fact for question, fact in QUESTIONS.items() if fact not in firsts[question]
    } == {}
    assert len(firsts) == 10


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the options for a store with many workspaces.

    None for the user's data directory, or an empty database.
    """
    return (
        ()
        if request.param == "sqlite"
        else ("--store", request.getfixturevalue("postgres_database"))
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_session_ends_in_the_right_state(
    project: Path, mode: str, store: tuple[str, ...]
) -> None:
    talk(project, mode, play_session, *store)
    talk(project, mode, check_session, *store)
    files = list((project.parent / "data").rglob("*.db"))
    assert bool(files) == (not store)  # each kind of store has everything


async def play_session(client: Client) -> None:
    """Go from an empty briefing to the history."""
    assert "0 entities" in await ask(client, "briefing")
    await ask(client, "remember", entities=REMEMBERED)
    await ask(
        client,
        "remember",
        entities=[{"name": "me", "facts": ["prefers tabs"]}],
        workspace="personal",
    )
    found = await ask(client, "recall", query="What does Ada drink?")
    assert re.search(r"In my-app, .*\nAda \(person\).*\n  #1 drinks dark coffee", found)
    await ask(
        client, "revise", name="Ben", facts=[{"old": "2", "new": "moved to Porto in June 2026"}]
    )
    forgotten = await ask(client, "forget", name="style", whole=True, confirm=True)
    await ask(client, "undo", changes=[forgotten.split()[0]])
    changes = await ask(client, "history")
    made = re.findall(r"^- ([\w-]+):\d+, .*?, .*?, (\w+):", changes, re.M)
    assert made == [
        ("my-app", "undo"),
        ("my-app", "forget"),
        ("my-app", "revise"),
        ("personal", "remember"),
        ("my-app", "remember"),
    ]


async def check_session(client: Client) -> None:
    """Check, in a server of its own, what `play_session` left."""
    briefing = await ask(client, "briefing")
    assert "(me, personal)" in briefing
    assert "(Ben)" in briefing
    facts = await ask(client, "open", names=["Ben", "style"])
    assert "moved to Porto in June 2026" in facts
    assert "moved to Lisbon in March 2026" not in facts
    assert "Lines have 120 characters" in facts


@pytest.mark.parametrize("workspace", ["project", "personal"])
@pytest.mark.parametrize("mode", MODES)
def test_a_subscriber_hears_of_a_write_to_an_entity_and_the_briefing(
    project: Path, mode: str, workspace: str
) -> None:
    announced = Announcements()

    async def session(client: Client) -> None:
        async with subscribed(client):
            await ask(
                client,
                "remember",
                entities=[{"name": "Ben", "facts": ["sails"]}],
                workspace=workspace,
            )
            assert await hear(client, announced, {BRIEFING}) == {BRIEFING}
            await ask(
                client,
                "remember",
                entities=[{"name": "Ada", "facts": ["likes tea"]}],
                workspace=workspace,
            )
            assert await hear(client, announced, {ADA, BRIEFING}) == {ADA, BRIEFING}

    talk(project, mode, session, announced=announced)


@pytest.mark.parametrize("workspace", ["project", "personal"])
def test_a_subscriber_hears_of_what_another_server_writes(project: Path, workspace: str) -> None:
    announced = Announcements()
    write = {"entities": [{"name": "Ada", "facts": ["likes tea"]}], "workspace": workspace}

    async def session(client: Client) -> None:
        async with (
            subscribed(client),
            Client(polymnia(project), read_timeout_seconds=TIMEOUT_S) as other,
        ):
            await ask(other, "remember", **write)
            await hear(client, announced, {ADA, BRIEFING})

    async def earlier(client: Client) -> None:
        await ask(
            client, "remember", entities=[{"name": "Ben", "facts": ["sails"]}], workspace=workspace
        )

    talk(project, MODERN, earlier)
    talk(project, MODERN, session, announced=announced)


async def hear(client: Client, announced: Announcements, expected: set[str]) -> set[str]:
    """Return the addresses that were announced once all of the expected ones were."""
    heard: set[str] = set()
    with anyio.fail_after(TIMEOUT_S):
        while not expected <= heard:
            await client.list_tools(
                cache_mode="bypass"
            )  # what the server sent before has then arrived
            heard.update(announced.take())
    return heard


def subscribed(client: Client) -> AbstractAsyncContextManager[object]:
    if client.protocol_version == MODERN:
        return client.listen(resource_subscriptions=[ADA, BRIEFING])
    return subscribed_by_request(client)


@asynccontextmanager
async def subscribed_by_request(client: Client) -> AsyncIterator[None]:
    for uri in (ADA, BRIEFING):
        await client.subscribe_resource(uri)
    yield
