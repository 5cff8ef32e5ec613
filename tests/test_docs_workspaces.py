"""Run every command of docs/workspaces.md: from nothing to two agents that share a workspace."""

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from tests.dialects.isolation import Caller
from tests.embedders.ollama import serve_ollama
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.process import Process, call

PAGE = Path(__file__).parent.parent / "docs" / "workspaces.md"
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for line in block.splitlines()
]


class LongProcess(Process):
    lifetime_s = 10.0 * TIMEOUT_S


SERVE = "polymnia serve --dialect workspace --transport http"


@pytest.fixture
def embedder() -> Iterator[str]:
    with serve_ollama() as ollama:
        yield f"ollama:bag@{ollama.url}"


def test_the_page_takes_a_team_from_nothing_to_a_shared_workspace(
    tmp_path: Path, embedder: str
) -> None:
    tokens: dict[str, str] = {}
    server: Process | None = None
    host = ""
    for line in COMMANDS:
        command = polymnia_command(*shlex.split(line)[1:])
        if line.startswith(SERVE):
            host = f"127.0.0.1:{free_port()}"
            more = ("--port", host.partition(":")[2], "--embedder", embedder)
            server = LongProcess((*command, *more), tmp_path, stdin=DEVNULL, stdout=DEVNULL)
            assert server.log.address == host
            share_a_workspace(config_with_token("TOKEN"), host, tokens)
        elif line.startswith("polymnia serve"):
            use_stdio(Process((*command, "--embedder", embedder), tmp_path))
        else:
            said = run(command, tmp_path, embedder)
            if " token create " in line:
                tokens[shlex.split(line)[3]] = said.strip()
    assert set(tokens) == {"alice", "bob", "carol"}
    assert Caller(host, tokens["carol"], "billing").call("get_stats", {})[0] is True
    assert Caller(host, tokens["carol"], "search").call("get_stats", {})[0] is False
    assert server is not None
    server.end()


def run(command: list[str], directory: Path, embedder: str) -> str:
    environment = {**os.environ, "POLYMNIA_EMBEDDER": embedder}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def config_with_token(placeholder: str) -> dict[str, Any]:
    """Return the client's entry on the page."""
    (block,) = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    entry: dict[str, Any] = json.loads(block)["mcpServers"]["memory"]
    assert entry["headers"]["Authorization"] == f"Bearer {placeholder}"
    assert entry["url"].endswith(":8765/mcp")
    return entry


def share_a_workspace(entry: dict[str, Any], host: str, tokens: dict[str, str]) -> None:
    """Let one agent write and the other read, as the page's client configuration says."""
    workspace = entry["headers"]["X-Memory-Workspace"]
    alice, bob = (Caller(host, tokens[name], workspace) for name in ("alice", "bob"))
    node = {
        "name": "billing service",
        "entity_type": "service",
        "observations": ["charges customers every month"],
    }
    assert alice.call("create_entities", {"entities": [node]})[0] is False
    is_error, text = bob.call("search_nodes", {"query": "customers", "mode": "text"})
    assert (is_error, "charges customers every month" in text) == (False, True)


def use_stdio(process: Process) -> None:
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    process.ask({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert process.ask(call(2, "get_stats"))["result"]["structuredContent"]["node_count"] == 1
    process.end()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
