"""Check the command line of MCP Inspector, a generic client."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from polymnia.dialects import DIALECTS

from . import install
from .conversation import GRAPH_URI, JSON, TOOLS, entity, pretty
from .server import NETWORK, NewPlace, Place, guarded
from .transcript import TIMEOUT_S

ADA = entity("Ada Lovelace", "person", 'Said "naïve" \\ 数学 🦊')
AUTH_REQUIRED = 3

Inspect = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def inspect(judges: Path, tmp_path_factory: pytest.TempPathFactory) -> Inspect:
    """Return a function that runs the Inspector with its own home directory."""
    launcher = judges / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    environment = {**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}

    def inspect(server: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = (install.node_of(judges), str(launcher), "--cli", *_target(server), *arguments)
        return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=3 * TIMEOUT_S)

    return inspect


def _target(server: Place) -> tuple[str, ...]:
    if server.transport not in NETWORK:
        return server.command
    return (server.url, *(("--header", f"Authorization: Bearer {server.token}") if server.token else ()))


def printed(done: subprocess.CompletedProcess[str]) -> JSON:
    assert done.returncode == 0, done.stderr
    result: JSON = json.loads(done.stdout)
    return result


def test_a_second_inspector_reads_what_the_first_one_wrote(new_place: NewPlace, inspect: Inspect) -> None:
    server = new_place()
    tool = ("--tool-name", "create_entities", "--tool-arg", f"entities={json.dumps([ADA])}")
    written = printed(inspect(server, "--method", "tools/call", *tool))
    assert (written["content"], written["structuredContent"]) == (
        [{"type": "text", "text": pretty([ADA])}],
        {"entities": [ADA]},
    )
    [read] = printed(inspect(server, "--method", "resources/read", "--uri", GRAPH_URI))["contents"]
    assert (read["uri"], json.loads(read["text"])) == (GRAPH_URI, {"entities": [ADA], "relations": []})


def test_the_inspector_lists_tools_and_resources(new_place: NewPlace, inspect: Inspect) -> None:
    server = new_place()
    assert [each["name"] for each in printed(inspect(server, "--method", "tools/list"))["tools"]] == list(TOOLS)
    [resource] = printed(inspect(server, "--method", "resources/list"))["resources"]
    assert resource["uri"] == GRAPH_URI


@pytest.mark.parametrize("transport", NETWORK)
def test_without_a_token_the_inspector_is_told_to_authenticate(
    transport: str, inspect: Inspect, tmp_path: Path
) -> None:
    with guarded(tmp_path / "memory.db", transport) as server:
        without_token = Place(transport, url=server.url)
        assert inspect(without_token, "--method", "tools/list", "--stored-auth-only").returncode == AUTH_REQUIRED


@pytest.mark.parametrize("name", DIALECTS)
def test_the_schemas_of_a_dialect_pass_the_strict_check(name: str, inspect: Inspect) -> None:
    """The Inspector warns of JSON Schema keywords that some clients cannot handle."""
    options = ("--store", ":memory:", "--workspace", "own", "--dialect", name)
    command = (sys.executable, "-m", "polymnia", "serve", *options)
    server = Place("stdio", command)
    done = inspect(server, "--method", "tools/list", "--strict")
    assert (done.returncode, done.stderr) == (0, "")
