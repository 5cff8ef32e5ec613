"""`polymnia install`: real configuration files in a home directory of their own, and a real
handshake.
"""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from polymnia.clients.table import CLIENTS
from tests.auth.oauth import LoginServer
from tests.cli.commands import run
from tests.groups import mostly_matrix
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.running import Running

REFERENCE = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
LINES = '{"type":"entity","name":"Ada","entityType":"person","observations":["writes programs"]}\n'


# Variables that would move a client's directory or our own.
MOVING = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "POLYMNIA_STORE")


def install(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    places = {"HOME": str(home), "USERPROFILE": str(home), **environment}
    given = {**dict.fromkeys(MOVING), **places}
    return run("install", *arguments, directory=home, environment=given)


def servers(path: Path, key: str = "mcpServers") -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(path.read_text("utf-8"))[key]
    return found


@pytest.mark.parametrize("client", mostly_matrix(CLIENTS, unmarked=["claude-code", "codex"]))
def test_a_client_gets_an_entry_with_an_absolute_command_that_works(
    client: str, tmp_path: Path
) -> None:
    done = install(tmp_path, client)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the server works: " in done.stdout
    listed = json.loads(install(tmp_path, "--list", "--json").stdout)
    (found,) = [item for item in listed if item["client"] == client]
    assert (found["scope"], found["state"]) == ("user", "installed")
    text = Path(found["file"]).read_text("utf-8")
    assert (
        json.dumps(str(Path(sys.executable).with_name("polymnia"))) in text
        or json.dumps(sys.executable) in text
    )


def test_the_former_file_is_kept_and_its_comments_too(tmp_path: Path) -> None:
    path = tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  // dark at night\n  "theme": "dark"\n}\n', "utf-8")
    said = install(tmp_path, "gemini").stdout
    (kept,) = path.parent.glob("settings.json.bak-*")
    assert f"the former file is {kept}" in said
    assert kept.read_text("utf-8") == '{\n  // dark at night\n  "theme": "dark"\n}\n'
    assert '{\n  // dark at night\n  "theme": "dark",\n  "mcpServers": {' in path.read_text("utf-8")


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    install(tmp_path, "cursor")
    again = install(tmp_path, "cursor").stdout
    assert "has it already" in again
    assert [path.name for path in (tmp_path / ".cursor").iterdir()] == ["mcp.json"]


def test_an_entry_is_removed(tmp_path: Path) -> None:
    install(tmp_path, "cursor")
    assert "removed memory" in install(tmp_path, "cursor", "--remove").stdout
    assert json.loads((tmp_path / ".cursor" / "mcp.json").read_text("utf-8")) == {"mcpServers": {}}
    again = install(tmp_path, "cursor", "--remove")
    assert (again.returncode, "has no server 'memory'" in again.stderr) == (1, True)


def test_another_server_is_not_removed_without_consent(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(
        '{"mcpServers": {"memory": {"command": "x"}}}', "utf-8"
    )
    done = install(tmp_path, "cursor", "--remove")
    assert (done.returncode, "is another server" in done.stderr) == (1, True)
    assert install(tmp_path, "cursor", "--remove", "--yes").returncode == 0


def test_the_project_has_a_file_of_its_own(tmp_path: Path) -> None:
    install(tmp_path, "claude-code", "--scope", "project")
    assert servers(tmp_path / ".mcp.json")["memory"]["args"] == ["serve"]
    refused = install(tmp_path, "windsurf", "--scope", "project")
    assert "Windsurf has no configuration for one project" in refused.stderr


def test_printing_changes_nothing(tmp_path: Path) -> None:
    done = install(
        tmp_path,
        "vscode",
        "--print",
        "--dialect",
        "graph",
        "--store",
        "team.db",
        "--workspace",
        "w",
    )
    entry = json.loads(done.stdout)["servers"]["memory"]
    store = f"sqlite:{tmp_path / 'team.db'}"
    assert entry["args"] == ["serve", "--dialect", "graph", "--store", store, "--workspace", "w"]
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_start_is_not_installed(tmp_path: Path) -> None:
    done = install(
        tmp_path,
        "cursor",
        "--store",
        "memory.db",
        "--workspace",
        "elsewhere",
        POLYMNIA_TRANSPORT="x",
    )
    assert (done.returncode, (tmp_path / ".cursor").exists()) == (1, False)


def test_the_reference_server_is_replaced_and_its_memory_imported(tmp_path: Path) -> None:
    path, memory = tmp_path / ".cursor" / "mcp.json", tmp_path / "old.jsonl"
    path.parent.mkdir()
    memory.write_text(LINES, "utf-8")
    entry = {**REFERENCE, "env": {"MEMORY_FILE_PATH": str(memory)}}
    path.write_text(
        json.dumps({"mcpServers": {"memory": entry, "web": {"command": "web"}}}), "utf-8"
    )
    refused = install(tmp_path, "cursor")
    assert (
        refused.returncode,
        "is the reference memory server. Replace it?" in refused.stderr,
    ) == (1, True)
    done = install(tmp_path, "cursor", "--yes")
    assert "imported 1 entity (1 new)" in done.stdout
    assert servers(path)["memory"]["args"] == ["serve"]
    assert servers(path)["web"] == {"command": "web"}
    assert memory.read_text("utf-8") == LINES


def test_the_reference_server_under_another_name_stays_without_consent(tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"knowledge": REFERENCE}}), "utf-8")
    done = install(tmp_path, "cursor")
    assert "kept the reference memory server knowledge" in done.stderr
    assert list(servers(path)) == ["knowledge", "memory"]
    install(tmp_path, "cursor", "--yes")
    assert list(servers(path)) == ["memory"]


def test_a_file_with_a_mistake_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {\n', "utf-8")
    done = install(tmp_path, "cursor")
    assert (done.returncode, f"{path}: line 2: " in done.stderr) == (1, True)
    assert path.read_text("utf-8") == '{"mcpServers": {\n'


def test_a_team_server_is_tried_with_its_token(tmp_path: Path) -> None:
    token = run(
        "token", "create", "me", "--can", "write", "--store", "team.db", directory=tmp_path
    ).stdout.strip()
    with Running(tmp_path / "team.db") as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        wrong = install(tmp_path, "vscode", "--http", url, "--token", "guess")
        assert (wrong.returncode, "it needs a token, or this one is not valid" in wrong.stderr) == (
            1,
            True,
        )
        done = install(tmp_path, "vscode", "--scope", "project", "--http", url, "--token", token)
    assert done.returncode == 0, done.stderr
    entry = servers(tmp_path / ".vscode" / "mcp.json", "servers")["memory"]
    assert entry == {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    dead = install(tmp_path, "vscode", "--http", url, "--token", token)
    assert (dead.returncode, "cannot be reached" in dead.stderr) == (1, True)


def test_a_server_with_logins_needs_no_token_in_the_file(tmp_path: Path) -> None:
    run("token", "create", "me", "--store", "other.db", directory=tmp_path)
    with Running(tmp_path / "other.db") as server:
        done = install(tmp_path, "cursor", "--http", f"http://127.0.0.1:{server.port}/mcp")
        assert (done.returncode, "it needs a token" in done.stderr) == (1, True)
    with LoginServer(tmp_path / "team.db") as server:
        url = f"{server.issuer}/mcp"
        done = install(tmp_path, "cursor", "--http", url)
        assert done.returncode == 0, done.stderr
        assert "lets you log in" in done.stdout
    assert servers(tmp_path / ".cursor" / "mcp.json")["memory"] == {"url": url}


def test_a_client_must_be_named(tmp_path: Path) -> None:
    done = install(tmp_path)
    assert (done.returncode, done.stderr.startswith("polymnia: name a client: claude-code, ")) == (
        1,
        True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize(
    ("answer", "args"), [("y", ["serve"]), ("n", ["-y", REFERENCE["args"][1]])]
)
def test_in_a_terminal_the_user_is_asked(answer: str, args: list[str], tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"memory": REFERENCE}}), "utf-8")
    ours, theirs = pty.openpty()
    command = polymnia_command("install", "cursor")
    env = {name: value for name, value in os.environ.items() if name not in MOVING}
    env["HOME"] = str(tmp_path)
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdin=theirs, stdout=subprocess.PIPE
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    os.close(theirs)
    assert servers(path)["memory"]["args"] == args


def test_past_sessions_are_counted_and_the_command_imports_them(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        said = {"role": "user", "content": "We deploy on Fridays"}
        line = {"type": "user", "sessionId": name, "message": said}
        line["timestamp"] = "2026-03-01T10:00:00Z"
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    printed = install(tmp_path, "cursor").stdout
    assert f"found Claude Code sessions: 2 files (0.3 kB) in {folder.parent}" in printed
    assert "to store them: polymnia install --import " in printed
    assert (
        "would import 2 new entities with 2 facts"
        in install(tmp_path, "--import", "--dry-run").stdout
    )
    assert "imported 2 new entities with 2 facts" in install(tmp_path, "--import").stdout
    assert "removed 2 facts from personal" in install(tmp_path, "--import", "--undo").stdout


def test_without_past_sessions_nothing_is_offered(tmp_path: Path) -> None:
    assert "--import" not in install(tmp_path, "cursor").stdout
