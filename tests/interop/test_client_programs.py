"""`polymnia install`, seen by the clients' own programs and schemas.

None of them needs a login for this. Claude Code, Codex and Gemini CLI list the server themselves.
Continue and VS Code publish their schemas on npm, and VS Code also reads the files of Claude
Desktop, Cursor and Windsurf. Zed publishes no package; its form is checked in tests/clients.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.interop.install import client_programs
from tests.processes import TIMEOUT_S
from tests.transports.running import Running

REMOTE = ("--http", "https://memory.example.com/mcp", "--token", "secret")


@pytest.fixture(scope="session")
def programs(cache: Path) -> Path:
    return client_programs(cache)


def run(home: Path, *command: str | Path, given: str = "") -> str:
    """Run a command at home, with a text on its standard input, and return what it prints."""
    moved = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in moved}
    environment |= {
        "HOME": str(home),
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=home,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def polymnia(home: Path, *arguments: str) -> str:
    return run(home, sys.executable, "-m", "polymnia", *arguments)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_claude_code_connects_to_what_was_installed(
    scope: str, programs: Path, tmp_path: Path
) -> None:
    claude = programs / "node_modules" / ".bin" / "claude"
    run(
        tmp_path,
        "node",
        programs / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs",
    )
    polymnia(tmp_path, "install", "claude-code", "--scope", scope)
    listed = run(tmp_path, claude, "mcp", "list")
    # A project's servers wait for the user's approval.
    state = "Connected" if scope == "user" else "Pending approval"
    assert re.search(rf"^memory: .*polymnia serve - .*{state}", listed, re.MULTILINE), listed
    polymnia(tmp_path, "install", "claude-code", "--scope", scope, "--remove")
    assert "memory:" not in run(tmp_path, claude, "mcp", "list")


def test_codex_lists_what_was_installed(programs: Path, tmp_path: Path) -> None:
    codex = programs / "node_modules" / ".bin" / "codex"
    polymnia(tmp_path, "install", "codex")
    shown = run(tmp_path, codex, "mcp", "get", "memory")
    assert re.search(r"command: \S*polymnia\n  args: serve\n", shown), shown
    polymnia(tmp_path, "install", "codex", "--remove")
    assert "memory" not in run(tmp_path, codex, "mcp", "list")


def test_gemini_connects_to_what_was_installed(programs: Path, tmp_path: Path) -> None:
    gemini = programs / "node_modules" / ".bin" / "gemini"
    polymnia(tmp_path, "install", "gemini")
    # It starts servers in folders that the user trusts.
    (tmp_path / ".gemini" / "trustedFolders.json").write_text(
        json.dumps({str(tmp_path): "TRUST_FOLDER"})
    )
    list_servers = ("sh", "-c", f"'{gemini}' mcp list 2>&1")
    listed = run(tmp_path, *list_servers)
    assert re.search(r"memory: .*polymnia serve \(stdio\) - Connected", listed), listed
    polymnia(tmp_path, "install", "gemini", "--remove")
    assert "memory:" not in run(tmp_path, *list_servers)


@pytest.mark.parametrize("program", ["copilot", "opencode"])
def test_copilot_and_opencode_list_what_was_installed(
    program: str, programs: Path, tmp_path: Path
) -> None:
    command = programs / "node_modules" / ".bin" / program
    list_servers = ("sh", "-c", f"'{command}' mcp list 2>&1")
    polymnia(tmp_path, "install", program)
    assert re.search(r"\bmemory\b", run(tmp_path, *list_servers))
    polymnia(tmp_path, "install", program, "--remove")
    assert not re.search(r"\bmemory\b", run(tmp_path, *list_servers))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """Start a server that asks for a token, and yield the options with which to install it."""
    home = tmp_path_factory.mktemp("team")
    token = polymnia(home, "token", "create", "me", "--can", "write", "--store", "team.db").strip()
    with Running(home / "team.db") as server:
        yield "--http", f"http://127.0.0.1:{server.port}/mcp", "--token", token


def test_claude_code_connects_to_the_server_of_a_team(
    team: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    run(
        tmp_path,
        "node",
        programs / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs",
    )
    polymnia(tmp_path, "install", "claude-code", *team)
    listed = run(tmp_path, programs / "node_modules" / ".bin" / "claude", "mcp", "list")
    assert re.search(rf"^memory: {team[1]} \(HTTP\) - .*Connected", listed, re.MULTILINE), listed


def test_codex_reads_the_server_of_a_team(
    team: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    polymnia(tmp_path, "install", "codex", *team)
    shown = json.loads(
        run(
            tmp_path, programs / "node_modules" / ".bin" / "codex", "mcp", "get", "memory", "--json"
        )
    )
    assert shown["transport"]["url"] == team[1]
    assert shown["transport"]["http_headers"] == {"Authorization": f"Bearer {team[3]}"}


def test_gemini_connects_to_the_server_of_a_team(
    team: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    polymnia(tmp_path, "install", "gemini", *team)
    (tmp_path / ".gemini" / "trustedFolders.json").write_text(
        json.dumps({str(tmp_path): "TRUST_FOLDER"})
    )
    listed = run(tmp_path, "sh", "-c", f"'{programs}/node_modules/.bin/gemini' mcp list 2>&1")
    assert re.search(rf"memory: {team[1]} \(http\) - Connected", listed), listed


@pytest.mark.parametrize("options", [(), REMOTE])
def test_the_schema_of_vscode_accepts_what_was_installed(
    options: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    schema = json.loads(run(tmp_path, "node", programs / "vscode_schema.mjs"))
    entry = json.loads(polymnia(tmp_path, "install", "vscode", "--print", *options))
    validator = Draft202012Validator(schema)
    validator.validate(entry)
    wrong = {"servers": {"memory": {**entry["servers"]["memory"], "no_such_field": 1}}}
    assert not validator.is_valid(wrong)


@pytest.mark.parametrize("client", ["claude-desktop", "cursor", "windsurf"])
def test_vscode_finds_what_was_installed_for_another_client(
    client: str, programs: Path, tmp_path: Path
) -> None:
    polymnia(tmp_path, "install", client)
    found = json.loads(run(tmp_path, "node", programs / "vscode_discovery.mjs", client, tmp_path))
    (server,) = found["servers"]
    assert (server["label"], Path(server["command"]).name, server["args"]) == (
        "memory",
        "polymnia",
        ["serve"],
    )


@pytest.mark.parametrize("options", [(), REMOTE])
def test_continue_reads_every_field_that_was_installed(
    options: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    written = polymnia(tmp_path, "install", "continue", "--print", *options)
    assert json.loads(
        run(tmp_path, "node", programs / "read_continue.mjs", given=written)
    ) == json.loads(written)
