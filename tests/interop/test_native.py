"""The official Python SDK on `polymnia serve` without options: a whole session in a project, and the user's memory."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.dialects.trial import REMEMBERED

from .transcript import TIMEOUT_S

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

JSON = dict[str, Any]
MODES = ("legacy", "2026-07-28")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git work tree; the user's data directory is beside it."""
    root = tmp_path / "my-app"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def talk(project: Path, mode: str, conversation: Callable[[Client], Awaitable[None]]) -> None:
    home = str(project.parent)
    settings = {"HOME": home, "XDG_DATA_HOME": f"{home}/data", "POLYMNIA_EMBEDDER": "none"}
    environment = {**settings, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "polymnia", "serve"], cwd=project, env=environment
    )

    async def connected() -> None:
        async with Client(server, mode=mode, read_timeout_seconds=TIMEOUT_S) as client:
            await conversation(client)

    anyio.run(connected)


async def ask(client: Client, tool: str, **arguments: Any) -> JSON:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found: JSON = result.structured_content
    return found


@pytest.mark.parametrize("mode", MODES)
def test_a_session_ends_in_the_right_state(project: Path, mode: str) -> None:
    async def session(client: Client) -> None:
        assert (await ask(client, "briefing"))["items"] == []
        await ask(client, "remember", entities=REMEMBERED)
        await ask(client, "remember", entities=[{"name": "me", "facts": ["prefers tabs"]}], workspace="personal")
        (hit, *_) = (await ask(client, "recall", query="What does Ada drink?"))["items"]
        assert (hit["name"], hit["workspace"], "dark coffee" in hit["text"]) == ("Ada", "my-app", True)
        await ask(client, "revise", name="Ben", facts=[{"old": "2", "new": "moved to Porto in June 2026"}])
        (gone,) = (await ask(client, "forget", name="style", whole=True))["items"]
        await ask(client, "undo", changes=[gone["change"]])
        changes = (await ask(client, "history"))["items"]
        assert [each["operation"] for each in changes] == ["undo", "forget", "revise", "remember"]

    async def later(client: Client) -> None:
        names = {each["name"]: each["workspace"] for each in (await ask(client, "briefing"))["items"]}
        assert (names["me"], names["Ben"]) == ("personal", "my-app")
        facts = [each.get("text", "") for each in (await ask(client, "open", names=["Ben", "style"]))["items"]]
        assert "moved to Porto in June 2026" in facts
        assert "moved to Lisbon in March 2026" not in facts
        assert "Lines have 120 characters" in facts

    talk(project, mode, session)
    talk(project, mode, later)
    assert {path.name for path in (project.parent / "data" / "polymnia" / "workspaces" / "projects").glob("*.db")}
