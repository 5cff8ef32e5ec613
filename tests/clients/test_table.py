"""The table of clients.

Every entry has the form that the client documents, and lies where it looks.
"""

import json
import tomllib
from base64 import b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jsonschema import Draft202012Validator

from docs.generate import cursor_link, vscode_link
from polymnia.clients.configuration import edit
from polymnia.clients.table import (
    CLIENTS,
    is_polymnia,
    is_reference_server,
)
from polymnia.errors import BadInput
from polymnia.settings import ClientRoots, client_roots
from tests.clients.schemas import SCHEMAS

COMMAND = ["/home/me/.local/bin/polymnia", "serve"]
ROOTS = ClientRoots(
    home=Path("/h"),
    applications=Path("/a"),
    claude=Path("/h"),
    codex=Path("/c"),
    copilot=Path("/g"),
    opencode=Path("/o"),
    zed=Path("/z"),
)


def document(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the parsed file that has just this entry."""
    text = edit(CLIENTS[name], "", {"memory": entry})
    parsed: dict[str, Any] = (
        tomllib.loads(text) if CLIENTS[name].form == "toml" else json.loads(text)
    )
    return parsed


def test_every_client_has_a_schema() -> None:
    assert list(SCHEMAS) == list(CLIENTS)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_local_entry_is_what_the_client_accepts(name: str) -> None:
    client = CLIENTS[name]
    found = document(name, client.local_entry(COMMAND, {"POLYMNIA_LOG_LEVEL": "info"}))
    Draft202012Validator(SCHEMAS[name]).validate(found)
    command = found[client.key]["memory"]["command"]
    assert command == (COMMAND if client.has_command_array else COMMAND[0])


@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if client.remote])
def test_a_remote_entry_is_what_the_client_accepts(name: str) -> None:
    client = CLIENTS[name]
    found = document(name, client.remote_entry("https://memory.example.com/mcp", "secret"))
    Draft202012Validator(SCHEMAS[name]).validate(found)
    assert "Bearer secret" in json.dumps(found)


def test_claude_desktop_takes_no_url_in_its_file() -> None:
    with pytest.raises(BadInput, match="has no servers over HTTP"):
        CLIENTS["claude-desktop"].remote_entry("https://memory.example.com/mcp", "")


@pytest.mark.parametrize(
    ("name", "user", "project"),
    [
        ("claude-code", "/h/.claude.json", "/p/.mcp.json"),
        ("claude-desktop", "/a/Claude/claude_desktop_config.json", None),
        ("cursor", "/h/.cursor/mcp.json", "/p/.cursor/mcp.json"),
        ("vscode", "/a/Code/User/mcp.json", "/p/.vscode/mcp.json"),
        ("codex", "/c/config.toml", "/p/.codex/config.toml"),
        ("windsurf", "/h/.codeium/windsurf/mcp_config.json", None),
        ("gemini", "/h/.gemini/settings.json", "/p/.gemini/settings.json"),
        ("copilot", "/g/mcp-config.json", None),
        ("opencode", "/o/opencode.json", "/p/opencode.json"),
        ("zed", "/z/settings.json", "/p/.zed/settings.json"),
        (
            "continue",
            "/h/.continue/mcpServers/polymnia.json",
            "/p/.continue/mcpServers/polymnia.json",
        ),
    ],
)
def test_the_files_are_where_the_client_looks(name: str, user: str, project: str | None) -> None:
    client = CLIENTS[name]
    assert client.path("user", ROOTS, Path("/p")) == Path(user)
    assert client.path("project", ROOTS, Path("/p")) == (Path(project) if project else None)


def test_the_clients_own_variables_move_their_directories() -> None:
    roots = client_roots({"CLAUDE_CONFIG_DIR": "/x", "CODEX_HOME": "/y"})
    assert (roots.claude, roots.codex) == (Path("/x"), Path("/y"))


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/opt/bin/polymnia", "args": ["serve"]},
        {"command": "C:/tools/polymnia.exe", "args": ["serve"]},
        {"command": "uvx", "args": ["polymnia", "serve"]},
        {"command": "python", "args": ["-m", "polymnia", "serve"]},
        {"command": ["/opt/bin/polymnia", "serve"]},
    ],
)
def test_an_entry_of_ours_is_recognized(entry: dict[str, Any]) -> None:
    assert (is_polymnia(entry), is_reference_server(entry)) == (True, False)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@latest"]},
        {"command": "docker", "args": ["run", "-i", "--rm", "mcp/memory"]},
        {"command": {"path": "npx", "args": ["@modelcontextprotocol/server-memory"]}},
    ],
)
def test_an_entry_of_the_reference_server_is_recognized(entry: dict[str, Any]) -> None:
    assert (is_polymnia(entry), is_reference_server(entry)) == (False, True)


@pytest.mark.parametrize(
    "entry", [{}, None, "text", {"url": "https://x/mcp"}, {"command": 1, "args": "x"}]
)
def test_an_entry_of_any_form_can_be_looked_at(entry: Any) -> None:
    assert (is_polymnia(entry), is_reference_server(entry)) == (False, False)


def test_the_links_carry_the_entry() -> None:
    cursor = parse_qs(urlsplit(cursor_link("memory", ["uvx", "polymnia", "serve"])).query)
    assert json.loads(b64decode(cursor["config"][0])) == {
        "command": "uvx",
        "args": ["polymnia", "serve"],
    }
    vscode = parse_qs(urlsplit(vscode_link("memory", ["uvx", "polymnia", "serve"])).query)
    assert json.loads(vscode["config"][0])["args"] == ["polymnia", "serve"]
    assert (cursor["name"], vscode["name"]) == (["memory"], ["memory"])
