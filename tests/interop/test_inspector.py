"""Check the command line of MCP Inspector, a generic client."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from polymnia.dialects import DIALECTS
from tests.processes import TIMEOUT_S, polymnia_command

from . import install
from .conversation import GRAPH_URI, JSON, TOOLS, entity, pretty
from .server import NETWORK, Command, NewPlace, Place, guarded, place, running

ADA = entity("Ada Lovelace", "person", 'Said "naïve" \\ 数学 🦊')
AUTH_REQUIRED = 3

Inspect = Callable[..., subprocess.CompletedProcess[str]]
MANY = {"name": "Ada", "facts": [f"fact {number}" for number in range(40)]}


@pytest.fixture(scope="module")
def inspect(judges: Path, tmp_path_factory: pytest.TempPathFactory) -> Inspect:
    """Return a function that runs the Inspector with its own home directory."""
    launcher = (
        judges / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    )
    environment = {**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}

    def inspect(server: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = (install.node_of(judges), str(launcher), "--cli", *_target(server), *arguments)
        return subprocess.run(
            command, env=environment, capture_output=True, encoding="utf-8", timeout=3 * TIMEOUT_S
        )

    return inspect


def _target(server: Place) -> Command:
    if server.transport not in NETWORK:
        return server.command
    return (
        server.url,
        *(("--header", f"Authorization: Bearer {server.token}") if server.token else ()),
    )


def printed(done: subprocess.CompletedProcess[str]) -> JSON:
    assert done.returncode == 0, done.stderr
    result: JSON = json.loads(done.stdout)
    return result


def test_a_second_inspector_reads_what_the_first_one_wrote(
    new_place: NewPlace, inspect: Inspect
) -> None:
    server = new_place()
    tool = ("--tool-name", "create_entities", "--tool-arg", f"entities={json.dumps([ADA])}")
    written = printed(inspect(server, "--method", "tools/call", *tool))
    assert (written["content"], written["structuredContent"]) == (
        [{"type": "text", "text": pretty([ADA])}],
        {"entities": [ADA]},
    )
    [read] = printed(inspect(server, "--method", "resources/read", "--uri", GRAPH_URI))["contents"]
    assert (read["uri"], json.loads(read["text"])) == (
        GRAPH_URI,
        {"entities": [ADA], "relations": []},
    )


def test_the_inspector_lists_tools_and_resources(new_place: NewPlace, inspect: Inspect) -> None:
    server = new_place()
    assert [
        tool["name"] for tool in printed(inspect(server, "--method", "tools/list"))["tools"]
    ] == list(TOOLS)
    [resource] = printed(inspect(server, "--method", "resources/list"))["resources"]
    assert resource["uri"] == GRAPH_URI


@pytest.mark.parametrize("transport", NETWORK)
def test_without_a_token_the_inspector_is_told_to_authenticate(
    transport: str, inspect: Inspect, tmp_path: Path
) -> None:
    with guarded(tmp_path / "memory.db", transport) as server:
        without_token = Place(transport, url=server.url)
        assert (
            inspect(without_token, "--method", "tools/list", "--stored-auth-only").returncode
            == AUTH_REQUIRED
        )


@pytest.mark.parametrize("name", DIALECTS)
def test_the_schemas_of_a_dialect_pass_the_strict_check(name: str, inspect: Inspect) -> None:
    """The Inspector warns of JSON Schema keywords that some clients cannot handle."""
    options = ("--store", ":memory:", "--workspace", "own", "--dialect", name)
    command = polymnia_command("serve", *options)
    server = Place("stdio", command)
    done = inspect(server, "--method", "tools/list", "--strict")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def mcpdo(judges: Path, tmp_path: Path) -> Iterator[Callable[..., JSON]]:
    """Return a function that runs mcpdo, the Inspector's client that keeps connections, and reads
    what it prints.
    """
    script = judges / "node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js"
    environment = {**os.environ, "HOME": str(tmp_path), "MCP_INSPECTOR_SECRET_STORE": "memory"}

    def mcpdo(*arguments: str) -> JSON:
        command = (install.node_of(judges), str(script), "--format", "json", *arguments)
        return printed(
            subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                timeout=3 * TIMEOUT_S,
            )
        )

    yield mcpdo
    mcpdo("daemon", "stop")


@pytest.mark.parametrize("transport", ["stdio", *NETWORK])
def test_the_inspector_tells_its_roots_and_answers_a_question(
    transport: str, mcpdo: Callable[..., JSON], tmp_path: Path
) -> None:
    project = tmp_path / "my-project"
    project.mkdir()
    options = ("--dialect", "native", "--store", f"{tmp_path}/store/", "--workspace", "personal")
    command = polymnia_command("serve", *options)
    with ExitStack() as stack:
        if transport == "stdio":
            entry: JSON = {"command": command[0], "args": list(command[1:])}
        else:
            base = stack.enter_context(
                running((*command, "--transport", "http", "--bind", "127.0.0.1:0"))
            )
            entry = {"type": transport, "url": place(base, transport).url}
        (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"memory": entry}}))
        mcpdo("--config", str(tmp_path / "servers.json"), "connect", "memory")
        to = ("--connection", "memory")
        mcpdo(*to, "roots/set", "--roots-json", json.dumps([{"uri": project.as_uri()}]))
        written = mcpdo(
            *to, "tools/call", "remember", "--tool-args-json", json.dumps({"entities": [MANY]})
        )
        assert written["content"][0]["text"].startswith("my-project:1 stored ")
        asked = mcpdo(*to, "tools/call", "forget", "name:=Ada", "whole:=true")["elicitationPending"]
        assert asked["message"] == "Forget Ada: 41 facts and relations in all?"
        done = mcpdo(*to, "elicitation/respond", asked["elicitationId"], "confirmed:=true")
        assert "40 facts in all" in done["content"][0]["text"]
        known = mcpdo(*to, "tools/call", "open", "--tool-args-json", json.dumps({"names": ["Ada"]}))
        assert "There is no entity Ada" in known["content"][0]["text"]
        mcpdo("disconnect", "memory")
