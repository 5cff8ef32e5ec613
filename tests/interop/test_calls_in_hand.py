"""Check long calls over HTTP and SSE.

Every client gets their progress, and a cancellation reaches the tool.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.processes import TIMEOUT_S

from . import install
from .python_sdk import NEGOTIATES, talk
from .server import NETWORK, Place, place, running
from .transcript import run
from .typescript_sdk import CLIENTS, TypeScriptClient

PATIENT = (sys.executable, "-m", "tests.interop.patient_server")
STEPS = [[1, 3, "step 1"], [2, 3, "step 2"], [3, 3, "step 3"]]


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with running(PATIENT) as base:
        yield base


@pytest.fixture(params=NETWORK)
def server(request: pytest.FixtureRequest, base: str) -> Place:
    return place(base, request.param)


@pytest.mark.parametrize("mode", NEGOTIATES)
def test_the_python_sdk_gets_progress(server: Place, mode: str) -> None:
    assert talk(server, mode, counted) == STEPS


@pytest.mark.parametrize("mode", NEGOTIATES)
def test_the_python_sdk_cancels_a_call(server: Place, mode: str) -> None:
    assert talk(server, mode, cancelled) == "cancelled"


def test_version_1_of_the_python_sdk_gets_progress(server: Place, python_with_sdk_v1: Path) -> None:
    script = (str(python_with_sdk_v1), str(install.SCRIPTS / "sdk_v1.py"))
    assert run(script, {"task": "count", "mode": "2025-11-25", "steps": 3}, server) == {
        "heard": STEPS
    }


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_typescript_sdk_gets_progress(
    server: Place, client: TypeScriptClient, node_packages: Path
) -> None:
    script = (install.node(), str(node_packages / f"{client.script}.mjs"))
    assert run(script, {"task": "count", "mode": client.mode, "steps": 3}, server) == {
        "heard": STEPS
    }


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_typescript_sdk_cancels_a_call(
    server: Place, client: TypeScriptClient, node_packages: Path
) -> None:
    script = (install.node(), str(node_packages / f"{client.script}.mjs"))
    heard = run(script, {"task": "cancel", "mode": client.mode}, server)
    assert heard == {"given": "up", "noticed": "cancelled"}


async def counted(client: Client) -> list[list[Any]]:
    heard: list[list[Any]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        heard.append([progress, total, message])
        tasks.start_soon(client.call_tool, "go_on", {})

    async with anyio.create_task_group() as tasks:
        await client.call_tool("count", {"steps": 3}, progress_callback=report)
    return heard


async def cancelled(client: Client) -> str:
    """Cancel a call once it reports that it has begun, and ask the server whether it noticed."""
    with anyio.fail_after(TIMEOUT_S), anyio.CancelScope() as scope:

        async def give_up(progress: float, total: float | None, message: str | None) -> None:
            scope.cancel()

        await client.call_tool("wait", {}, progress_callback=give_up)
    said: str = (await client.call_tool("was_cancelled", {})).content[0].text  # type: ignore[union-attr]  # it is a text
    return said
