"""Run the commands and programs that the documentation shows, and compare what they print with what
it says.

A page is one session: its blocks run in order, in one home directory. A block of text after a block
of shell is what the commands print; `...` stands for anything.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from polymnia.clients.table import CLIENTS
from tests.cli.commands import run
from tests.clients.schemas import SCHEMAS
from tests.groups import mostly_matrix
from tests.processes import TIMEOUT_S
from tests.transports.running import Running

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the snippets are for a POSIX shell"
)
# What tests/test_newcomer.py runs: installing takes a network and a minute.
_INSTALLING = ("uv tool install", "pipx install", "python3 -m venv")


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: Path, section: str = "") -> list[Block]:
    """Return the fenced blocks of a page, or of one of its sections."""
    text = page.read_text("utf-8")
    if section:
        text = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [
        Block(*found)
        for found in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]


class Reader:
    """A user who types what a page shows."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "bin").mkdir()
        command = home / "bin" / "polymnia"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m polymnia "$@"\n', "utf-8")
        command.chmod(0o755)
        moved = (
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "CODEX_HOME",
            "CLAUDE_CONFIG_DIR",
            "POLYMNIA_STORE",
        )
        self.environment = {name: value for name, value in os.environ.items() if name not in moved}
        self.environment |= {
            "HOME": str(home),
            "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def shell(self, text: str) -> str:
        return self._run(["bash", "-ec", text])

    def python(self, text: str) -> str:
        return self._run([sys.executable, "-c", text])

    def call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Call a tool of the server that `polymnia install` added to Claude Code."""
        entry = json.loads((self.home / ".claude.json").read_text("utf-8"))["mcpServers"]["memory"]
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        reply = json.loads(
            self._run([entry["command"], *entry["args"]], json.dumps(message) + "\n")
        )
        result: dict[str, Any] = reply["result"]
        return result

    def _run(self, command: list[str], given: str = "") -> str:
        done = subprocess.run(
            command,
            input=given,
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def matches(shown: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def test_the_tutorial_works_as_written(reader: Reader) -> None:
    printed = ""
    for block in blocks(DOCS / "tutorial.md"):
        if block.language == "sh" and not block.text.startswith(_INSTALLING):
            printed = reader.shell(block.text)
        elif block.language == "text":
            assert matches(block.text, printed), (
                f"the page shows\n{block.text}\nbut this is printed\n{printed}"
            )
        elif block.language == "python":
            reader.python(block.text)
        elif block.language == "json":
            assert not reader.call(json.loads(block.text)).get("isError")


@pytest.mark.parametrize("name", mostly_matrix(CLIENTS, unmarked=["claude-code"]))
def test_the_commands_on_the_page_of_a_client_work(name: str, reader: Reader) -> None:
    page = DOCS / "clients" / f"{name}.md"
    token = run(
        "token", "create", "me", "--can", "write", "--store", "team.db", directory=reader.home
    ).stdout.strip()
    inline = [
        found
        for found in re.findall(r"`(polymnia [^`]+)`", page.read_text("utf-8"))
        if "--print" not in found
    ]
    # In another directory than home, so that the project's file is not the user's.
    commands = [f"mkdir -p project && cd project && {item}" for item in inline]
    commands += [block.text for block in blocks(page) if block.language == "sh"]
    with Running(reader.home / "team.db") as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        for command in commands:
            here = command.replace("https://memory.example.com/mcp", url).replace("TOKEN", token)
            results = ["the server works: "]
            if "--hooks" in here:
                results = ["has hooks for ", "is the plugin; start "]
            elif "--rules" in here:
                here += " && cat AGENTS.md"
                results = ["Call `briefing` at the start of a task."]
            printed = reader.shell(here)
            assert any(result in printed for result in results), printed


@pytest.mark.parametrize("name", CLIENTS)
def test_the_entries_on_the_page_of_a_client_are_what_it_accepts(name: str) -> None:
    from jsonschema import Draft202012Validator

    client = CLIENTS[name]
    shown = [
        block.text
        for block in blocks(DOCS / "clients" / f"{name}.md")
        if block.language == client.form
    ]
    assert len(shown) == (2 if client.remote else 1)
    for text in shown:
        entry = tomllib.loads(text) if client.form == "toml" else json.loads(text)
        Draft202012Validator(SCHEMAS[name]).validate(entry)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "page", sorted((DOCS / "dialects").glob("*.md")), ids=lambda page: page.stem
)
def test_the_command_on_the_page_of_a_dialect_starts_a_server(page: Path, reader: Reader) -> None:
    for block in blocks(page):
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        printed = reader.shell(f"{block.text.strip()} <<'END'\n{message}\nEND")
        listed = json.loads(printed.splitlines()[-1])["result"]["tools"]
        assert [
            tool["name"] for tool in listed if f"`{tool['name']}`" not in page.read_text("utf-8")
        ] == []


@pytest.mark.matrix
@pytest.mark.parametrize("page", ["backup.md", "tokens.md"])
def test_the_commands_on_the_pages_about_operations_exist(page: str, reader: Reader) -> None:
    shown = [
        line
        for block in blocks(DOCS / page)
        for line in block.text.splitlines()
        if line.startswith("polymnia ") and "postgresql://" not in line
    ]
    assert shown
    reader.shell(
        "polymnia serve --store memory.db </dev/null; "
        "polymnia serve --dialect project --data-dir data </dev/null"
    )
    for line in shown:
        reader.shell(line)


def test_the_calls_that_the_readme_shows_work(reader: Reader) -> None:
    (block,) = blocks(ROOT / "README.md", "What an agent does with it")
    named = [
        (found[1], block.text[found.end() :])
        for found in re.finditer(r"^(\w+)\s+(?=\{)", block.text, re.MULTILINE)
    ]
    assert len(named) > 2
    reader.shell("polymnia install claude-code")
    for name, rest in named:
        arguments, _ = json.JSONDecoder().raw_decode(rest)
        result = reader.call({"name": name, "arguments": arguments})
        assert not result.get("isError"), result


def test_the_commands_in_the_table_of_the_readme_exist(reader: Reader) -> None:
    rows = re.findall(
        r"^\| (`polymnia .*?) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
    )
    named = re.findall(r"`polymnia ([a-z]+)", " ".join(rows))
    assert len(named) == 10
    for name in named:
        assert f"polymnia {name}" in reader.shell(f"polymnia {name} --help")
