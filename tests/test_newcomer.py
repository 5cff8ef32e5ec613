"""The newcomer's path: what the README says, in a fresh clone and after a release.

A fresh clone starts with Python alone, on a machine without uv and pipx. For the commands that need
a released package, a directory of wheels stands for the package index.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from polymnia.dialects.registry import DEFAULT_DIALECT
from tests.interop.install import client_programs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
# The call of an agent that remembers something, by the dialect that is served.
FIRST_MEMORY = {
    "native": {
        "name": "remember",
        "arguments": {"entities": [{"name": "Ada", "type": "person", "facts": ["likes tea"]}]},
    },
    "reference": {
        "name": "create_entities",
        "arguments": {
            "entities": [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
        },
    },
}
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the paths are those of a POSIX system"
)


class Newcomer:
    """A user with a home directory of their own, Python and pip."""

    def __init__(self, home: Path, wheels: Path) -> None:
        self.home = home
        self.directory = home
        kept = (
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "PIP_CERT",
            "REQUESTS_CA_BUNDLE",
            "HTTPS_PROXY",
            "PIP_INDEX_URL",
        )
        # Programs of the system, this Python, and what the user installs.
        path = os.pathsep.join(
            [f"{home}/tools/bin", f"{home}/.local/bin", Path(sys.executable).parent.as_posix()]
        )
        self.environment = {name: os.environ[name] for name in kept if name in os.environ} | {
            "HOME": str(home),
            "PATH": f"{path}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin",
            "PIP_FIND_LINKS": f"{os.environ.get('PIP_FIND_LINKS', '')} {wheels}".strip(),
            "UV_FIND_LINKS": str(wheels),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "POLYMNIA_EMBEDDER": "local",
        }

    def run(self, line: str, given: str = "") -> str:
        """Run a line of shell with this on standard input and return what it prints."""
        done = subprocess.run(
            ["bash", "-c", line],
            input=given,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def has_tools(self, *names: str) -> None:
        """Give the user uv or pipx, in an environment of its own."""
        venv.create(self.home / "tools", with_pip=True)
        self.run(f"{self.home}/tools/bin/pip install -q {' '.join(names)}")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheels")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(directory),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    return directory


@pytest.fixture
def newcomer(wheels: Path, tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path, wheels)


@pytest.fixture
def clone(tmp_path: Path) -> Newcomer:
    """Return a user with a fresh clone, Python and git, but without uv and pipx."""
    home = tmp_path / "home"
    programs = home / "programs"
    programs.mkdir(parents=True)
    base = Path(sys.executable).resolve()
    (programs / "python3").symlink_to(base)
    for name in ("bash", "sh", "git"):
        (programs / name).symlink_to(str(shutil.which(name)))
    subprocess.run(["git", "clone", "-q", str(ROOT), str(home / "polymnia")], check=True)
    somebody = Newcomer(home, home)
    somebody.environment |= {"PATH": str(programs), "PIP_FIND_LINKS": ""}
    somebody.directory = home / "polymnia"
    return somebody


def readme_blocks(section: str) -> list[str]:
    """Return the blocks of shell in a section of the README."""
    text = README.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)\n```", text, re.DOTALL)


def test_the_first_blocks_of_the_readme_work_in_a_fresh_clone(clone: Newcomer) -> None:
    first, second, _ = readme_blocks("Start")
    assert "\n" not in first
    tour = clone.run(first)
    assert "Ines Duarte [person]: prefers tea to coffee" in tour
    assert "undone as change harbour:" in tour
    assert not (clone.home / ".local").exists()
    assert "the server works: " in clone.run(second)
    entry = json.loads((clone.home / ".claude.json").read_text("utf-8"))["mcpServers"]["memory"]
    remember(clone, entry)
    hits = clone.run(".venv/bin/polymnia recall what does Ada drink")
    assert "Ada [person]: likes tea" in hits
    assert "searched polymnia and personal" in hits


def test_the_test_command_of_the_readme_works_in_a_fresh_clone(clone: Newcomer) -> None:
    (command,) = readme_blocks("Test")
    assert " passed" in clone.run(f"{command} -n 0 tests/test_settings.py")


@pytest.mark.parametrize("tool", ["uv tool install", "pipx install"])
def test_a_clone_is_installed_by_a_tool(tool: str, clone: Newcomer) -> None:
    (command,) = set(re.findall(rf"`({tool} '[.]\[semantic]')`", README))
    clone.environment["PATH"] += f"{os.pathsep}/usr/bin{os.pathsep}/bin"
    clone.environment["PATH"] = f"{clone.home}/tools/bin:{clone.environment['PATH']}"
    clone.has_tools(tool.split()[0])
    clone.run(command)
    assert clone.run(f"{clone.home}/.local/bin/polymnia --version").startswith("polymnia ")


def documented(start: str) -> str:
    """Return the command of the README's first steps that begins like this."""
    blocks = re.findall(
        r"```sh\n(.*?)```", README.partition("## Start")[2].partition("\n## ")[0], re.DOTALL
    )
    lines = [line for block in blocks for line in block.splitlines()]
    either = [part.strip() for line in lines for part in line.split("# or:")]
    return str(next(part for part in either if part.startswith(start)))


def test_uv_installs_the_command(newcomer: Newcomer) -> None:
    newcomer.has_tools("uv")
    newcomer.run(documented("uv tool install"))
    assert newcomer.run("polymnia --version").startswith("polymnia ")


def test_pipx_installs_the_command(newcomer: Newcomer) -> None:
    newcomer.has_tools("pipx")
    newcomer.run(documented("pipx install"))
    assert newcomer.run("polymnia --version").startswith("polymnia ")


def test_uvx_runs_the_demo_and_the_server_without_installing_them(newcomer: Newcomer) -> None:
    newcomer.has_tools("uv")
    assert "prefers tea to coffee" in newcomer.run(documented("uvx"))
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert '"tools"' in newcomer.run("uvx polymnia serve", json.dumps(hello) + "\n")
    entry = json.loads(newcomer.run("uvx polymnia install cursor --print"))["mcpServers"]["memory"]
    assert (Path(entry["command"]).name, entry["args"]) == ("uvx", ["polymnia", "serve"])


def test_claude_code_connects_to_what_pip_installed(
    newcomer: Newcomer, pytestconfig: pytest.Config
) -> None:
    newcomer.run("python3 -m venv .venv && .venv/bin/pip install -q 'polymnia[semantic]'")
    polymnia = newcomer.home / ".venv" / "bin" / "polymnia"
    assert "the server works: " in newcomer.run(f"{polymnia} install claude-code")
    entry = json.loads((newcomer.home / ".claude.json").read_text("utf-8"))["mcpServers"]["memory"]
    assert entry["command"] == str(polymnia)
    programs = client_programs(pytestconfig.rootpath / ".test-cache") / "node_modules"
    newcomer.run(f"node {programs}/@anthropic-ai/claude-code/install.cjs")
    assert re.search(
        r"^memory: .* - .*Connected",
        newcomer.run(f"{programs}/.bin/claude mcp list"),
        re.MULTILINE,
    )


def remember(newcomer: Newcomer, entry: dict[str, Any]) -> None:
    """Store the first memory as the client would: start the entry's command and call its tool."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": FIRST_MEMORY[DEFAULT_DIALECT],
    }
    reply = json.loads(
        newcomer.run(" ".join([entry["command"], *entry["args"]]), json.dumps(message) + "\n")
    )
    assert not reply["result"].get("isError"), reply
