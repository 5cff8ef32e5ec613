"""The first run on this machine: connect a client, import sessions, and see the first fact."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec import Struct

from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command
from tests.ui.client import Visitor, make_token

ROOT = Path(__file__).parents[2]


class Machine(Struct):
    """A home directory with programs in it, and a user who opened `polymnia ui` there."""

    home: Path
    store: str
    owner: Visitor


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    home = tmp_path_factory.mktemp("home")
    (home / ".cursor").mkdir()
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{ not json")
    sessions = home / ".claude" / "projects" / "boats"
    sessions.mkdir(parents=True)
    sample = ROOT / "tests" / "importers" / "samples" / "claude-code.jsonl"
    (sessions / "one.jsonl").write_bytes(sample.read_bytes())
    store = str(home / "memory.db")
    environment = {**os.environ, "HOME": str(home), "PATH": os.defpath}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    command = polymnia_command("ui", "--no-browser", "--embedder", "none")
    with subprocess.Popen(
        [*command, "--store", store],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=end_with_parent,
    ) as process:
        assert process.stdout is not None
        link = urlsplit(process.stdout.readline().strip())
        assert link.port
        owner = Visitor(link.port)
        owner.get(f"{link.path}?{link.query}")
        yield Machine(home, store, owner)
        process.send_signal(signal.SIGINT)
        process.wait(TIMEOUT_S)


def test_a_client_is_connected_and_disconnected_in_one_click(machine: Machine) -> None:
    shown = machine.owner.get("/ui/")
    assert "This memory is empty" in shown.words
    assert "Connect Cursor" in shown.words
    assert f"{machine.home}/.cursor/mcp.json" in shown.words
    shown = machine.owner.post("/ui/start/connect", client="cursor")
    assert "Connected Cursor" in shown.words
    file = machine.home / ".cursor" / "mcp.json"
    entry = json.loads(file.read_text())["mcpServers"]["memory"]
    assert entry["args"][-2:] == ["--store", f"sqlite:{machine.store}"]
    assert "Disconnected" in machine.owner.post("/ui/start/disconnect", client="cursor").words
    assert json.loads(file.read_text()) == {"mcpServers": {}}


def test_a_damaged_file_is_named_and_left_alone(machine: Machine) -> None:
    shown = machine.owner.get("/ui/start")
    assert "settings.json" in shown.words
    assert machine.owner.post("/ui/start/connect", client="gemini").status == 400
    assert (machine.home / ".gemini" / "settings.json").read_text() == "{ not json"


def test_another_server_of_that_name_is_not_replaced(machine: Machine) -> None:
    file = machine.home / ".cursor" / "mcp.json"
    former = '{"mcpServers": {"memory": {"command": "other"}}}'
    file.write_text(former)
    shown = machine.owner.post("/ui/start/connect", client="cursor")
    assert (shown.status, "polymnia install cursor" in shown.words) == (400, True)
    assert file.read_text() == former


def test_only_the_owner_of_the_machine_changes_its_files(machine: Machine) -> None:
    guest = Visitor(machine.owner.port)
    guest.log_in(make_token(machine.store, "guest", "admin"))
    assert str(machine.home) not in guest.get("/ui/start").text.replace(machine.store, "")
    for path, field in (("connect", "client"), ("disconnect", "client"), ("check", "source")):
        assert guest.post(f"/ui/start/{path}", **{field: "cursor"}).status == 403


def test_sessions_are_checked_imported_and_the_first_fact_is_shown(machine: Machine) -> None:
    owner = machine.owner
    assert "Waiting for the first fact" in owner.get("/ui/start/wait", HX_Request="true").words
    shown = owner.get("/ui/start")
    assert "Claude Code sessions" in shown.words
    source = shown.text.split('name="source" value="')[1].split('"')[0]
    assert owner.post("/ui/start/check", source="/etc/passwd").status == 400
    shown = owner.post("/ui/start/check", source=source)
    assert "new, 0 extended" in shown.words
    number = shown.text.split('name="id" value="')[1].split('"')[0]
    assert "Imported." in owner.post("/ui/import/run", id=number).words
    shown = owner.get("/ui/start/wait", HX_Request="true")
    assert "The memory works" in shown.words
    assert "Waiting" not in shown.words
